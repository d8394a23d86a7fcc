package realtest

import (
	"bytes"
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
	"runtime"
	"strconv"
	"strings"
	"testing"
	"text/template"
	"time"
)

// NginxOptions choose how nginx runs.
type NginxOptions struct {
	// Workers is the number of worker processes; 0 runs everything in the one
	// process that is started (master_process off).
	Workers int
}

// NginxServer is an nginx of the test's own on a loopback port. All its files
// are in Dir.
type NginxServer struct {
	*Proc
	URL string // http://127.0.0.1:PORT
	Dir string
}

// nginxConfig names every path that nginx would otherwise take from its build.
// The pages are small files, a computed reply, and a page behind gzip, so that
// the load goes through more of the server than sendfile.
var nginxConfig = template.Must(template.New("nginx.conf").Parse(`
daemon off;
{{if .Workers}}worker_processes {{.Workers}};{{else}}master_process off;{{end}}
{{if .User}}user {{.User}};{{end}}
pid {{.Dir}}/nginx.pid;
error_log stderr warn;
events { worker_connections 512; }
http {
	access_log {{.Dir}}/access.log;
	client_body_temp_path {{.Dir}}/body;
	proxy_temp_path {{.Dir}}/proxy;
	fastcgi_temp_path {{.Dir}}/fastcgi;
	uwsgi_temp_path {{.Dir}}/uwsgi;
	scgi_temp_path {{.Dir}}/scgi;
	default_type text/plain;
	gzip on;
	gzip_min_length 100;
	gzip_types text/plain;
	server {
		listen 127.0.0.1:{{.Port}};
		root {{.Dir}}/pages;
		location = /computed { return 200 "$request_method $arg_n\n"; }
		location /rewritten/ { rewrite ^/rewritten/(\d+)$ /page-$1.txt break; }
	}
}
`))

const nginxPages = 4

// nginxPage returns the content of page i, of a length that differs by page.
func nginxPage(i int) string {
	return strings.Repeat(fmt.Sprintf("page %d, a line of it\n", i), 1+i*i*40)
}

// Nginx starts an nginx and returns when it answers and all of its workers are there.
func Nginx(t testing.TB, o NginxOptions) *NginxServer {
	t.Helper()
	path := Tool(t, WebServer)
	// Not t.TempDir: workers that give up root must be able to enter.
	dir, err := os.MkdirTemp("", "callreel-nginx-")
	if err != nil {
		t.Fatalf("realtest: nginx: %v", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("realtest: nginx: %v", err)
		}
	})
	port := freePort(t)
	if err := writeNginxFiles(dir, port, o); err != nil {
		t.Fatalf("realtest: nginx: %v", err)
	}
	s := &NginxServer{Dir: dir, URL: "http://" + net.JoinHostPort("127.0.0.1", port)}
	s.Proc = StartCommand(t, exec.Command(path, "-p", dir, "-c", filepath.Join(dir, "nginx.conf"), "-e", "stderr"))
	t.Cleanup(s.quit)
	s.waitAnswer(s.URL, func() error {
		// The first worker may answer before the master has made the others.
		if n := len(Children(s.Pid())); n < o.Workers && runtime.GOOS == "linux" {
			return fmt.Errorf("%d of %d workers are there", n, o.Workers)
		}
		return s.check(context.Background(), http.DefaultClient, 0)
	})
	return s
}

func writeNginxFiles(dir, port string, o NginxOptions) error {
	values := struct {
		NginxOptions
		Dir, Port, User string
	}{o, dir, port, ""}
	// As root, nginx would switch to "nobody" and that account's group may not
	// exist; staying who we are also keeps the folder readable.
	if me, err := user.Current(); err == nil && me.Uid == "0" {
		values.User = me.Username
	}
	var config bytes.Buffer
	if err := nginxConfig.Execute(&config, values); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(dir, "pages"), 0o755); err != nil {
		return err
	}
	for i := range nginxPages {
		name := filepath.Join(dir, "pages", fmt.Sprintf("page-%d.txt", i))
		if err := os.WriteFile(name, []byte(nginxPage(i)), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "nginx.conf"), config.Bytes(), 0o644)
}

// quit asks the master to end its workers: a master that is killed leaves them.
func (s *NginxServer) quit() {
	if !s.Alive() {
		return
	}
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.t.Errorf("realtest: nginx: %v", err)
	}
	select {
	case <-s.done:
	case <-time.After(10 * time.Second):
		for _, pid := range Children(s.Pid()) {
			if worker, err := os.FindProcess(pid); err == nil {
				_ = worker.Kill() // it may end on its own at this moment
			}
		}
	}
}

// Workers returns the process IDs of the workers, or of the only process.
func (s *NginxServer) Workers() []int {
	if pids := Children(s.Pid()); len(pids) > 0 {
		return pids
	}
	return []int{s.Pid()}
}

// Children returns the process IDs of the children of pid. It is empty where
// /proc is not Linux's.
func Children(pid int) []int {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is well formed
	var pids []int
	for _, list := range lists {
		data, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		for _, word := range strings.Fields(string(data)) {
			if child, err := strconv.Atoi(word); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// Bench runs ab with args and a path such as "/page-1.txt" until it ends or ctx
// does, and returns what it printed. An end by ctx is not an error.
func (s *NginxServer) Bench(ctx context.Context, path string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "ab", append(append([]string{"-q"}, args...), s.URL+path)...)
	out, err := cmd.CombinedOutput()
	if err != nil && ctx.Err() == nil {
		return string(out), fmt.Errorf("ab %q: %w\n%s", args, err, out)
	}
	return string(out), nil
}

// Load keeps clients connections asking for pages and comparing them until ctx
// ends, and returns how many replies were checked, with an error for the first
// wrong one.
func (s *NginxServer) Load(ctx context.Context, clients int) (replies int64, err error) {
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: patience}
	return runLoad(ctx, clients, func(ctx context.Context, id int) (n int64, err error) {
		for ; ctx.Err() == nil; n++ {
			if err := s.check(ctx, client, int(n)+id); err != nil {
				return n, err
			}
		}
		return n, nil
	})
}

// check asks for one page, a different one for each n, and compares the answer.
func (s *NginxServer) check(ctx context.Context, client *http.Client, n int) error {
	i := n % nginxPages
	path, want := fmt.Sprintf("/page-%d.txt", i), nginxPage(i)
	switch n % 3 {
	case 1:
		path = fmt.Sprintf("/rewritten/%d", i)
	case 2:
		path, want = fmt.Sprintf("/computed?n=%d", n), fmt.Sprintf("GET %d\n", n)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return fmt.Errorf("GET %s: %w", path, err)
	}
	if response.StatusCode != http.StatusOK || string(body) != want {
		return fmt.Errorf("GET %s: status %d, %d bytes %.60q, want %d bytes %.60q",
			path, response.StatusCode, len(body), body, len(want), want)
	}
	return nil
}
