package realtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// RedisServer is a redis-server of the test's own on a loopback port, with an
// empty data folder and no saving unless told to.
type RedisServer struct {
	*Proc
	Addr string // host:port
	Dir  string // where a BGSAVE writes dump.rdb
}

// Redis starts a redis-server and returns when it answers. args are further
// configuration in the manner of its command line, such as "--io-threads", "2".
func Redis(t testing.TB, args ...string) *RedisServer {
	t.Helper()
	path := Tool(t, RedisTools)
	port := freePort(t)
	s := &RedisServer{Addr: net.JoinHostPort("127.0.0.1", port), Dir: t.TempDir()}
	args = append([]string{
		"--bind", "127.0.0.1", "--port", port, "--dir", s.Dir, "--save", "", "--appendonly", "no", "--daemonize", "no",
	}, args...)
	s.Proc = StartCommand(t, exec.Command(path, args...))
	s.waitAnswer(s.Addr, func() error {
		answer, err := s.Do("PING")
		if err == nil && answer != "PONG" {
			err = fmt.Errorf("PING answered %q", answer)
		}
		return err
	})
	return s
}

// Do sends one command on a connection of its own and returns the reply: the
// text of a simple or bulk string, the digits of an integer, "" for nil. A
// reply that is an error, or an array, is returned as an error.
func (s *RedisServer) Do(words ...string) (string, error) {
	c, err := dialRedis(context.Background(), s.Addr)
	if err != nil {
		return "", err
	}
	reply, err := c.do(words...)
	return reply, errors.Join(err, c.Close())
}

// Bench runs redis-benchmark with args until it ends or ctx does, and returns
// what it printed. An end by ctx is not an error.
func (s *RedisServer) Bench(ctx context.Context, args ...string) (string, error) {
	host, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "redis-benchmark", append([]string{"-h", host, "-p", port}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil && ctx.Err() == nil {
		return string(out), fmt.Errorf("redis-benchmark %q: %w\n%s", args, err, out)
	}
	return string(out), nil
}

// Load keeps clients connections writing and reading back keys of their own
// until ctx ends, and returns how many replies were checked, with an error for
// the first wrong one.
func (s *RedisServer) Load(ctx context.Context, clients int) (replies int64, err error) {
	return runLoad(ctx, clients, func(ctx context.Context, client int) (n int64, err error) {
		c, err := dialRedis(ctx, s.Addr)
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, c.Close()) }()
		for ; ctx.Err() == nil; n += 2 {
			key := fmt.Sprintf("load:%d:%d", client, n%512)
			value := strings.Repeat(strconv.FormatInt(n, 36)+".", 1+int(n%40))
			if got, err := c.do("SET", key, value); err != nil || got != "OK" {
				return n, wrongReply("SET", got, "OK", err)
			}
			if got, err := c.do("GET", key); err != nil || got != value {
				return n, wrongReply("GET", got, value, err)
			}
		}
		return n, nil
	})
}

func wrongReply(command, got, want string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	return fmt.Errorf("%s answered %.80q, want %.80q", command, got, want)
}

// redisConn speaks RESP 2, as far as these tests need it.
type redisConn struct {
	net.Conn
	in *bufio.Reader
}

func dialRedis(ctx context.Context, addr string) (*redisConn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &redisConn{Conn: conn, in: bufio.NewReader(conn)}, nil
}

func (c *redisConn) do(words ...string) (string, error) {
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	if _, err := io.WriteString(c, b.String()); err != nil {
		return "", err
	}
	line, err := c.in.ReadString('\n')
	if err != nil {
		return "", err
	}
	kind, rest := line[0], strings.TrimSuffix(line[1:], "\r\n")
	switch kind {
	case '+', ':':
		return rest, nil
	case '-':
		return "", fmt.Errorf("redis: %s", rest)
	case '$':
		return c.bulk(rest)
	}
	return "", fmt.Errorf("redis: reply %q is of no kind that is read here", line)
}

func (c *redisConn) bulk(digits string) (string, error) {
	n, err := strconv.Atoi(digits)
	if err != nil || n < -1 || n > 1<<26 {
		return "", fmt.Errorf("redis: bulk length %q", digits)
	}
	if n == -1 {
		return "", nil
	}
	body := make([]byte, n+2)
	if _, err := io.ReadFull(c.in, body); err != nil {
		return "", err
	}
	return string(body[:n]), nil
}
