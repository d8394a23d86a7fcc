package causes

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// redisClient is one connection to redis.
type redisClient struct {
	conn net.Conn
	in   *bufio.Reader
}

// do sends a command and reads its reply, which is thrown away.
func (c *redisClient) do(words ...string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	if _, err := io.WriteString(c.conn, b.String()); err != nil {
		return err
	}
	return c.reply()
}

func (c *redisClient) reply() error {
	line, err := c.in.ReadString('\n')
	if err != nil {
		return err
	}
	n, _ := strconv.Atoi(strings.TrimSpace(line[1:]))
	switch line[0] {
	case '-':
		return fmt.Errorf("redis: %s", strings.TrimSpace(line))
	case '$':
		if n >= 0 {
			_, err = io.CopyN(io.Discard, c.in, int64(n)+2)
		}
	case '*':
		for range max(n, 0) {
			if err := c.reply(); err != nil {
				return err
			}
		}
	}
	return err
}

// redisPlant has the steps of a redis plant: what is stored at first, and what clients do.
type redisPlant struct {
	options []string
	fill    func(*redisClient) error
	beside  func(ctx context.Context, dir string) error // what others do on the machine; may be nil
	clients []func(context.Context, *redisClient, *requests) error
	slow    time.Duration // for the clients' log
}

func (plant redisPlant) start(ctx context.Context, p *place) (*Instance, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	i := &Instance{}
	args := append([]string{"--bind", "127.0.0.1", "--port", port, "--save", "", "--dir", p.dir, "--loglevel", "warning"}, plant.options...)
	r, err := i.run(exec.CommandContext(ctx, p.found[0], args...))
	if err != nil {
		return nil, err
	}
	i.PID = r.cmd.Process.Pid
	var clients []*redisClient
	for range len(plant.clients) + 1 {
		conn, err := dial(r, port)
		if err != nil {
			i.Kill()
			return nil, err
		}
		clients = append(clients, &redisClient{conn, bufio.NewReader(conn)})
	}
	if plant.fill != nil {
		if err := plant.fill(clients[len(plant.clients)]); err != nil {
			i.Kill()
			return nil, err
		}
	}
	var log requests
	i.load = func(ctx context.Context) error {
		var run []func() error
		for k, client := range plant.clients {
			run = append(run, func() error { return client(ctx, clients[k], &log) })
		}
		if plant.beside != nil {
			run = append(run, func() error { return plant.beside(ctx, p.dir) })
		}
		err := together(run...)
		for _, c := range clients {
			err = errors.Join(err, c.conn.Close())
		}
		return err
	}
	i.log = func() Log { return log.log(plant.slow) }
	i.begin(ctx)
	return i, nil
}

// ordinaryRedis is a client with commands as they are usual.
func ordinaryRedis(seed int, pause time.Duration) func(context.Context, *redisClient, *requests) error {
	return func(ctx context.Context, c *redisClient, log *requests) error {
		return repeat(ctx, seed, pause, func(n int, chance *rand.Rand) error {
			key := fmt.Sprintf("key:%d", chance.IntN(20000))
			return log.time(false, func() error {
				switch n % 4 {
				case 0:
					return c.do("SET", key, strings.Repeat("v", 20+chance.IntN(100)))
				case 1:
					return c.do("INCR", "counter:"+key)
				default:
					return c.do("GET", key)
				}
			})
		})
	}
}

// rare is a client that does something every now and then.
func rare(every time.Duration, do func(c *redisClient, n int) error) func(context.Context, *redisClient, *requests) error {
	return func(ctx context.Context, c *redisClient, log *requests) error {
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(every):
			}
			if err := log.time(true, func() error { return do(c, n) }); err != nil {
				return err
			}
		}
	}
}

// unseen is a client whose own requests aren't the ones that are slow.
func unseen(client func(context.Context, *redisClient, *requests) error) func(context.Context, *redisClient, *requests) error {
	return func(ctx context.Context, c *redisClient, _ *requests) error { return client(ctx, c, &requests{}) }
}

// populate makes keys in the server itself.
func populate(keys, size int) func(*redisClient) error {
	return func(c *redisClient) error {
		return c.do("DEBUG", "POPULATE", strconv.Itoa(keys), "key", strconv.Itoa(size))
	}
}

func redis() []Plant {
	// keysCommand is too short for a probe in some builds, and what it calls stands in its stead.
	plant := func(name, handler string, slow time.Duration, t Truth, r redisPlant) Plant {
		r.slow = slow
		r.options = append(r.options, "--enable-debug-command", "yes")
		return Plant{Name: "redis: " + name, Handler: handler, Slow: slow, Truth: t, needs: need("redis-server"), start: r.start}
	}
	const pause = 200 * time.Microsecond
	type clients = []func(context.Context, *redisClient, *requests) error
	return []Plant{
		plant("KEYS of another client", "readQueryFromClient", 5*ms, Truth{Path: []string{"keysCommand", "stringmatchlen"}, Kinds: fresh, States: []string{CPU}}, redisPlant{
			fill: populate(60000, 20),
			clients: clients{ordinaryRedis(1, pause), ordinaryRedis(2, pause), ordinaryRedis(3, pause),
				rare(350*time.Millisecond, func(c *redisClient, _ int) error { return c.do("KEYS", "*:77*1") })},
		}),
		plant("copy on write after BGSAVE", "setrangeCommand", 2*ms, Truth{Path: []string{"*memcpy*", "*memmove*", "sdsgrowzero"}, Kinds: working, States: []string{CPU}}, redisPlant{
			options: []string{"--rdbcompression", "no"},
			fill: func(c *redisClient) error {
				return c.do("SETBIT", "bits", strconv.Itoa(32<<23), "1")
			},
			clients: clients{unseen(overwrites), unseen(rare(1200*time.Millisecond, func(c *redisClient, _ int) error {
				_ = c.do("BGSAVE") // one may still be on
				return nil
			}))},
		}),
		plant("fork for BGSAVE", "call", 2*ms, Truth{Path: []string{"bgsaveCommand", "rdbSaveBackground", "redisFork"}, Kinds: fresh, States: []string{CPU}}, redisPlant{
			options: []string{"--rdbcompression", "no"},
			fill:    populate(300000, 600),
			clients: clients{ordinaryRedis(1, pause), ordinaryRedis(2, pause), rare(700*time.Millisecond, func(c *redisClient, _ int) error {
				_ = c.do("BGSAVE") // one may still be on
				return nil
			})},
		}),
		plant("append-only file synced", "beforeSleep", 4*ms, Truth{Path: []string{"fdatasync", "fsync"}, Kinds: []string{SlowerCalls, Self, NewPath}, States: []string{Blocked}}, redisPlant{
			options: []string{"--appendonly", "yes", "--appendfsync", "always"},
			clients: clients{ordinaryRedis(1, 3*time.Millisecond)},
			beside:  writesMuch,
		}),
		plant("script of another client", "readQueryFromClient", 5*ms, Truth{Path: []string{"eval*Command*", "scriptCall*", "luaCallFunction", "lua_*", "luaV_*", "luaD_*"}, Kinds: fresh, States: []string{CPU}}, redisPlant{
			clients: clients{ordinaryRedis(1, pause), ordinaryRedis(2, pause), rare(350*time.Millisecond, func(c *redisClient, _ int) error {
				return c.do("EVAL", "local x = 0; for i = 1, 1000000 do x = x + i % 7 end; return x", "0")
			})},
		}),
		plant("union of large sets", "call", 3*ms, Truth{Path: []string{"sunion*"}, Kinds: fresh, States: []string{CPU}}, redisPlant{
			fill: func(c *redisClient) error { return errors.Join(fillSet(c, 0, 9000), fillSet(c, 1, 9000)) },
			clients: clients{ordinaryRedis(1, pause), ordinaryRedis(2, pause), rare(350*time.Millisecond, func(c *redisClient, _ int) error {
				return c.do("SUNION", "set:0", "set:1")
			})},
		}),
		plant("HGETALL of a large hash", "call", 2*ms, Truth{Path: []string{"hgetallCommand", "genericHgetallCommand"}, Kinds: fresh, States: []string{CPU}}, redisPlant{
			options: []string{"--hash-max-listpack-entries", "16"},
			fill:    func(c *redisClient) error { return fillHash(c, 0, 15000) },
			clients: clients{ordinaryRedis(1, pause), ordinaryRedis(2, pause), rare(350*time.Millisecond, func(c *redisClient, _ int) error {
				return c.do("HGETALL", "hash:0")
			})},
		}),
		plant("keys that expire at once", "serverCron", 3*ms, Truth{Path: []string{"activeExpireCycle*", "deleteExpiredKey*", "databasesCron"}, Kinds: []string{MoreCalls, SlowerCalls, Self, NewPath}, States: []string{CPU}}, redisPlant{
			options: []string{"--hz", "20"},
			clients: clients{ordinaryRedis(1, pause), rare(700*time.Millisecond, func(c *redisClient, n int) error {
				return c.do("EVAL", "for i = 1, 1500 do redis.call('SET', 'short:' .. ARGV[1] .. ':' .. i, 'v', 'PX', 150) end", "0", strconv.Itoa(n))
			})},
		}),
		plant("command that sleeps", "call", 8*ms, Truth{Path: []string{"debugCommand"}, Kinds: fresh, States: []string{Blocked}}, redisPlant{
			clients: clients{ordinaryRedis(1, pause), ordinaryRedis(2, pause), rare(350*time.Millisecond, func(c *redisClient, _ int) error {
				return c.do("DEBUG", "SLEEP", "0.02")
			})},
		}),
		plant("SORT of a large list", "call", 3*ms, Truth{Path: []string{"sortCommand*"}, Kinds: fresh, States: []string{CPU}}, redisPlant{
			fill: func(c *redisClient) error {
				words := []string{"RPUSH", "list:0"}
				for k := range 20000 {
					words = append(words, strconv.Itoa(k*7919%20011))
				}
				return c.do(words...)
			},
			clients: clients{ordinaryRedis(1, pause), ordinaryRedis(2, pause), rare(350*time.Millisecond, func(c *redisClient, _ int) error {
				return c.do("SORT", "list:0", "LIMIT", "0", "10")
			})},
		}),
		plant("DEL of a large hash", "call", 3*ms, Truth{Path: []string{"delCommand", "delGenericCommand", "dbDelete", "dbGenericDelete", "freeHashObject", "dictRelease"}, Kinds: []string{MoreCalls, SlowerCalls, Self, NewPath},
			States: []string{CPU}}, redisPlant{
			options: []string{"--hash-max-listpack-entries", "16"},
			fill: func(c *redisClient) error {
				for n := range 24 {
					if err := fillHash(c, n, 15000); err != nil {
						return err
					}
				}
				return nil
			},
			clients: clients{ordinaryRedis(1, pause), ordinaryRedis(2, pause), rare(300*time.Millisecond, func(c *redisClient, n int) error {
				return c.do("DEL", "hash:"+strconv.Itoa(n))
			})},
		}),
	}
}

func fillHash(c *redisClient, n, fields int) error {
	words := []string{"HSET", "hash:" + strconv.Itoa(n)}
	for k := range fields {
		words = append(words, "field:"+strconv.Itoa(k), "a value that is stored by itself "+strconv.Itoa(k))
	}
	return c.do(words...)
}

func fillSet(c *redisClient, n, members int) error {
	words := []string{"SADD", "set:" + strconv.Itoa(n)}
	for k := range members {
		words = append(words, "member:"+strconv.Itoa(k*(n+1)))
	}
	return c.do(words...)
}

// overwrites writes over some megabytes of one large value. Most of what a client sees of it is the payload on its way.
func overwrites(ctx context.Context, c *redisClient, log *requests) error {
	payload := strings.Repeat("7", 4<<20)
	return repeat(ctx, 5, 12*time.Millisecond, func(_ int, chance *rand.Rand) error {
		at := strconv.Itoa(chance.IntN(28 << 20))
		return log.time(false, func() error { return c.do("SETRANGE", "bits", at, payload) })
	})
}

// writesMuch is a neighbour on the same disk: what it writes has to be there before anybody else's sync is done.
func writesMuch(ctx context.Context, dir string) error {
	data := make([]byte, 24<<20)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(350 * time.Millisecond):
		}
		f, err := os.Create(filepath.Join(dir, "neighbour"))
		if err != nil {
			return err
		}
		_, err = f.Write(data)
		if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
			return err
		}
	}
}

// quietRedis has no cause.
func quietRedis() Plant {
	r := redisPlant{options: []string{"--enable-debug-command", "yes"}, fill: populate(20000, 50)}
	r.clients = append(r.clients, ordinaryRedis(1, 400*time.Microsecond), ordinaryRedis(2, 400*time.Microsecond))
	return Plant{Name: "redis", Handler: "call", needs: need("redis-server"), start: r.start}
}
