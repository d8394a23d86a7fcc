package programs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// startRedis has redis-server carry out commands of many kinds.
func startRedis(ctx context.Context, p *place) (*Instance, error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	commands, err := source.ReadFile("source/work.redis")
	if err != nil {
		return nil, err
	}
	i := &Instance{portion: strings.Repeat(string(commands), 20) + "ECHO " + marker + "\n"}
	cmd := exec.CommandContext(ctx, p.found[0], "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--dir", p.dir)
	r, err := i.run(cmd)
	if err != nil {
		return nil, err
	}
	r.stop = syscall.SIGTERM
	conn, err := dial(r, port)
	if err != nil {
		return nil, err
	}
	i.PID, i.in, i.out = cmd.Process.Pid, conn, bufio.NewReader(conn)
	return i, nil
}

// dial connects to a server that has just been started.
func dial(p *proc, port string) (net.Conn, error) {
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", port))
		if err == nil {
			return conn, nil
		}
		select {
		case <-p.ended:
			return nil, fmt.Errorf("%s: %v: %s", p.cmd.Path, p.cmd.ProcessState, p.stderr.String())
		default:
			if time.Since(start) > patience {
				return nil, errors.Join(err, p.cmd.Process.Kill())
			}
		}
	}
}

// FreePort returns a port of this machine that nobody listens at.
func FreePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}

// startPostgres has a backend of postgres answer queries.
func startPostgres(ctx context.Context, p *place) (*Instance, error) {
	i := &Instance{}
	data := filepath.Join(p.dir, "data")
	as := func(cmd *exec.Cmd) (*exec.Cmd, error) { return cmd, nil }
	if os.Getuid() == 0 { // with which it does not run
		id, err := anotherUser()
		if err != nil {
			return nil, err
		}
		if err := errors.Join(os.Chown(p.dir, int(id[0]), int(id[1])), open(filepath.Dir(p.dir))); err != nil {
			return nil, err
		}
		as = func(cmd *exec.Cmd) (*exec.Cmd, error) { asUser(cmd, id[0], id[1]); cmd.Dir = p.dir; return cmd, nil }
	}
	initdb, err := as(exec.CommandContext(ctx, filepath.Join(filepath.Dir(p.found[0]), "initdb"), "-D", data, "-U", "work", "-A", "trust", "--no-sync", "--locale=C", "-E", "UTF8"))
	if err != nil {
		return nil, err
	}
	if said, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, said)
	}
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	server, err := as(exec.CommandContext(ctx, p.found[0], "-D", data, "-p", port, "-c", "listen_addresses=127.0.0.1",
		"-c", "unix_socket_directories=", "-c", "fsync=off", "-c", "autovacuum=off"))
	if err != nil {
		return nil, err
	}
	r, err := i.run(server)
	if err != nil {
		return nil, err
	}
	r.stop = syscall.SIGINT
	conn, err := dial(r, port)
	if err != nil {
		return nil, err
	}
	queries, err := source.ReadFile("source/work.sql")
	if err := errors.Join(err, conn.Close()); err != nil {
		return nil, err
	}
	var client *Instance
	for start := time.Now(); ; time.Sleep(50 * time.Millisecond) { // it listens before it takes clients
		client, err = converse(ctx, "\\o\nSELECT 'backend ' || pg_backend_pid();\n\\echo "+marker+"\n", p.found[1], "-qAtX", "-h", "127.0.0.1", "-p", port, "-U", "work", "postgres")
		if err != nil {
			return nil, err
		}
		said := ""
		client.clean = func(line string) string { said += line; return line }
		_, err = client.Work()
		if pid, found := strings.CutPrefix(said, "backend "); err == nil && found {
			if i.PID, err = strconv.Atoi(pid); err != nil {
				return nil, err
			}
			break
		}
		client.Kill()
		if time.Since(start) > patience {
			i.Kill()
			return nil, fmt.Errorf("psql: %w", err)
		}
	}
	i.procs = append(i.procs, client.procs...)
	i.portion, i.in, i.out = string(queries)+"\\echo "+marker+"\n", client.in, client.out
	return i, nil
}

// anotherUser returns the IDs of a user and group that are not root's.
func anotherUser() ([2]uint32, error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return [2]uint32{}, err
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		return [2]uint32{uint32(uid), uint32(gid)}, err
	}
	return [2]uint32{}, errors.New("no user that isn't root: postgres, nobody")
}

// open lets other users pass through a folder.
func open(dir string) error { return os.Chmod(dir, 0o755) }

const nginxConf = `daemon off; worker_processes 1; pid %[1]s/pid; error_log stderr error;
events { worker_connections 64; }
http {
	access_log off; gzip on; gzip_min_length 1; gzip_types *;
	client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
	server {
		listen 127.0.0.1:%[2]s; root %[1]s/www; server_tokens off;
		location / { autoindex off; }
		location ~ ^/re/(.*)$ { rewrite ^/re/([a-z]*)-(.*)$ /$2?$1 last; return 404; }
		location /moved { return 301 /file-1; }
		location /said { default_type text/plain; return 200 "$request_method $arg_a $http_x_work\n"; }
	}
}
`

// startNginx has a worker of nginx serve files and more.
func startNginx(ctx context.Context, p *place) (*Instance, error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(open(filepath.Dir(p.dir)), open(p.dir), os.Mkdir(filepath.Join(p.dir, "www"), 0o755)); err != nil {
		return nil, err
	}
	for k := range 5 {
		text := strings.Repeat(fmt.Sprintf("file %d\n", k), 1<<(3*k))
		if err := os.WriteFile(filepath.Join(p.dir, "www", fmt.Sprintf("file-%d", k)), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	conf := filepath.Join(p.dir, "nginx.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, nginxConf, p.dir, port), 0o644); err != nil {
		return nil, err
	}
	i := &Instance{}
	r, err := i.run(exec.CommandContext(ctx, p.found[0], "-p", p.dir, "-c", conf, "-e", "stderr"))
	if err != nil {
		return nil, err
	}
	r.stop = syscall.SIGQUIT
	conn, err := dial(r, port)
	if err != nil {
		return nil, err
	}
	if err := conn.Close(); err != nil {
		return nil, err
	}
	if i.PID, err = childOf(r.cmd.Process.Pid); err != nil {
		return nil, err
	}
	client := &http.Client{Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	i.ask = func() (string, error) {
		var said strings.Builder
		for n := range 300 {
			path := []string{"/file-%d", "/re/x-file-%d", "/moved", "/said?a=%d", "/nosuch-%d"}[n%5]
			if strings.Contains(path, "%d") {
				path = fmt.Sprintf(path, n/5%5)
			}
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+port+path, nil)
			if err != nil {
				return "", err
			}
			req.Header.Set("X-Work", "yes")
			resp, err := client.Do(req)
			if err != nil {
				return said.String(), fmt.Errorf("nginx: %w%s", err, i.last())
			}
			body, err := io.ReadAll(resp.Body)
			if err := errors.Join(err, resp.Body.Close()); err != nil {
				return said.String(), fmt.Errorf("nginx: %w%s", err, i.last())
			}
			fmt.Fprintf(&said, "%s %d %s\n", path, resp.StatusCode, body)
		}
		return digest(strings.ReplaceAll(said.String(), port, "PORT")), nil
	}
	return i, nil
}

// childOf waits for the first child of a process.
func childOf(pid int) (int, error) {
	for start := time.Now(); time.Since(start) < patience; time.Sleep(10 * time.Millisecond) {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
		if err != nil {
			return 0, err
		}
		if words := strings.Fields(string(data)); len(words) > 0 {
			return strconv.Atoi(words[0])
		}
	}
	return 0, fmt.Errorf("process %d has no child", pid)
}

// startMemcached has memcached keep values and give them back.
func startMemcached(ctx context.Context, p *place) (*Instance, error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	var said strings.Builder
	command := func(format string, args ...any) { said.WriteString(fmt.Sprintf(format, args...) + "\r\n") }
	command("flush_all")
	for k := range 300 {
		value := strings.Repeat(fmt.Sprintf("value %d ", k), 1+k%20)
		command("set key-%d %d 0 %d\r\n%s", k, k, len(value), value)
		command("get key-%d key-%d", k, k/2)
		command("append key-%d 0 0 4\r\nmore", k/3)
		command("gets nothing key-%d", k/3)
		command("delete key-%d", k/7)
		command("incr key-%d 7", k)
	}
	command("set end 0 0 %d\r\n%s", len(marker), marker)
	command("get end") // what follows the value in its answer comes before the next portion's
	i := &Instance{portion: said.String(), clean: func(line string) string {
		if strings.HasPrefix(line, "VALUE ") { // a value's number differs each time
			line = strings.Join(strings.Fields(line)[:4], " ")
		}
		return line
	}}
	args := []string{"-l", "127.0.0.1", "-p", port, "-U", "0", "-t", "2"}
	if os.Geteuid() == 0 {
		args = append(args, "-u", "root")
	}
	r, err := i.run(exec.CommandContext(ctx, p.found[0], args...))
	if err != nil {
		return nil, err
	}
	r.stop = syscall.SIGTERM
	conn, err := dial(r, port)
	if err == nil {
		_, err = io.WriteString(conn, "get nothing\r\n") // see "get end"
	}
	if err != nil {
		return nil, err
	}
	i.PID, i.in, i.out = r.cmd.Process.Pid, conn, bufio.NewReader(conn)
	return i, nil
}
