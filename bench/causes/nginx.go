package causes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const nginxConf = `daemon off; worker_processes 1; pid %[1]s/pid; error_log stderr crit;
events { worker_connections 64; }
http {
	log_format long "$uri %[4]s"; access_log %[3]s; gzip on; gzip_min_length 1; gzip_comp_level 9; gzip_types *; default_type text/plain;
	client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
	server {
		listen 127.0.0.1:%[2]s; root %[1]s/www; server_tokens off;
		location /list/ { autoindex on; gzip off; }
		location ~ "^/files/(a|aa)+/x$" { return 403; }
	}
}
`

// slowLog is what stands for the rare path where who reads the log is slow instead.
const slowLog = "(slow log)"

// nginxPlant is what is asked of a worker of nginx: paths that are usual, and a rare one.
func nginxPlant(odd string, slow time.Duration) func(context.Context, *place) (*Instance, error) {
	return func(ctx context.Context, p *place) (i *Instance, err error) {
		accessLog, reader := "off", func(context.Context) error { return nil }
		if odd == slowLog {
			if accessLog, reader, err = readsSlowly(filepath.Join(p.dir, "log")); err != nil {
				return nil, err
			}
			accessLog += " long"
			odd = ""
		}
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		if err := fillWWW(p.dir); err != nil {
			return nil, err
		}
		conf := filepath.Join(p.dir, "nginx.conf")
		if err := os.WriteFile(conf, fmt.Appendf(nil, nginxConf, p.dir, port, accessLog, strings.Repeat(".", 2000)), 0o644); err != nil {
			return nil, err
		}
		i = &Instance{}
		r, err := i.run(exec.CommandContext(ctx, p.found[0], "-p", p.dir, "-c", conf, "-e", "stderr"))
		if err != nil {
			return nil, err
		}
		r.stop = syscall.SIGQUIT
		conn, err := dial(r, port)
		if err == nil {
			i.PID, err = childOf(r.cmd.Process.Pid)
			err = errors.Join(err, conn.Close())
		}
		if err != nil {
			i.Kill()
			return nil, err
		}
		var log requests
		client := &http.Client{Timeout: patience, Transport: &http.Transport{}}
		get := func(ctx context.Context, path string) error {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+port+path, nil)
			if err != nil {
				return err
			}
			req.Header.Set("Accept-Encoding", "gzip")
			resp, err := client.Do(req)
			if err != nil {
				return err
			}
			_, err = io.Copy(io.Discard, resp.Body)
			return errors.Join(err, resp.Body.Close())
		}
		i.load = func(ctx context.Context) error {
			next := time.Now().Add(300 * time.Millisecond)
			ask := func() error {
				return repeat(ctx, p.seed, 600*time.Microsecond, func(n int, chance *rand.Rand) error {
					path, isOdd := []string{"/files/" + strconv.Itoa(chance.IntN(40)), "/list/small/", "/files/aaaa/x"}[n%3], odd != "" && time.Now().After(next)
					if isOdd {
						path = odd
					}
					err := log.time(isOdd, func() error { return get(ctx, path) })
					if isOdd {
						next = time.Now().Add(300 * time.Millisecond)
					}
					return err
				})
			}
			err := together(ask, func() error { return reader(ctx) })
			client.CloseIdleConnections()
			return err
		}
		i.log = func() Log { return log.log(slow) }
		i.begin(ctx)
		return i, nil
	}
}

// readsSlowly makes a pipe with a name, and what reads it, with long pauses now and then.
func readsSlowly(path string) (string, func(context.Context) error, error) {
	if err := errors.Join(makePipe(path), os.Chmod(filepath.Dir(path), 0o755)); err != nil {
		return "", nil, err
	}
	pipe, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return "", nil, err
	}
	return path, func(ctx context.Context) error {
		block, next := make([]byte, 64<<10), time.Now()
		for ctx.Err() == nil {
			if time.Now().After(next) {
				time.Sleep(120 * time.Millisecond)
				next = time.Now().Add(250 * time.Millisecond)
			}
			// It ends with the pauses of those who ask, by this deadline.
			if err := pipe.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
				return err
			}
			if _, err := pipe.Read(block); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
				return err
			}
		}
		return pipe.Close()
	}, nil
}

// fillWWW makes what is served.
func fillWWW(dir string) error {
	// nginx's worker is another user.
	err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o755))
	for _, d := range []struct {
		name        string
		files, size int
	}{{"files", 40, 3000}, {"list/small", 20, 0}, {"list/large", 6000, 0}} {
		full := filepath.Join(dir, "www", d.name)
		err = errors.Join(err, os.MkdirAll(full, 0o755))
		for k := range d.files {
			text := strings.Repeat(fmt.Sprintf("line %d of a file\n", k), d.size*(k+10)/1000)
			err = errors.Join(err, os.WriteFile(filepath.Join(full, strconv.Itoa(k)), []byte(text), 0o644))
		}
	}
	chance := rand.New(rand.NewPCG(1, 2))
	var text strings.Builder
	for text.Len() < 200<<10 {
		fmt.Fprintf(&text, "%d said %x to %d\n", chance.IntN(1000), chance.IntN(1<<20), chance.IntN(1000))
	}
	return errors.Join(err, os.WriteFile(filepath.Join(dir, "www/files/large"), []byte(text.String()), 0o644))
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

func nginx() []Plant {
	plant := func(name, odd string, slow time.Duration, t Truth) Plant {
		return Plant{Name: "nginx: " + name, Handler: "ngx_http_core_run_phases", Slow: slow, Truth: t,
			needs: [][]string{{"nginx", "/usr/sbin/nginx"}}, start: nginxPlant(odd, slow)}
	}
	return []Plant{
		plant("log that is read slowly", slowLog, 8*ms, Truth{Path: []string{"ngx_http_log_*", "write", "__write", "__libc_write"}, Kinds: waiting, States: []string{Blocked}}),
		plant("location that backtracks", "/files/"+strings.Repeat("a", 27)+"/x/y", 4*ms, Truth{Path: []string{"*pcre2_match*", "ngx_regex_exec*", "ngx_http_regex_exec", "*pcre2*"}, Kinds: repeats, States: []string{CPU}}),
		plant("index of a large directory", "/list/large/", 4*ms, Truth{Path: []string{"ngx_http_autoindex_*", "*readdir*", "ngx_read_dir", "ngx_de_info", "*stat*", "qsort*"}, Kinds: append([]string{NewPath}, repeats...), States: []string{CPU}}),
		plant("large reply compressed", "/files/large", 4*ms, Truth{Path: []string{"*deflate*", "ngx_http_gzip_*"}, Kinds: append([]string{NewPath}, repeats...), States: []string{CPU}}),
	}
}

// quietNginx has no cause.
func quietNginx() Plant {
	return Plant{Name: "nginx", Handler: "ngx_http_core_run_phases", needs: [][]string{{"nginx", "/usr/sbin/nginx"}}, start: nginxPlant("", 0)}
}
