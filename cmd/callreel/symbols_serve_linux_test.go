package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/symbols/server/storage"
)

// symbolServer is a symbols serve that runs.
type symbolServer struct {
	cmd  *exec.Cmd
	url  string
	said *bytes.Buffer
}

func serveSymbols(t *testing.T, store string, args ...string) *symbolServer {
	t.Helper()
	s := &symbolServer{said: &bytes.Buffer{}}
	s.cmd = exec.Command(realtest.CallreelPath(t), append([]string{"symbols", "serve", store, "--listen", "127.0.0.1:0", "--cache-dir", t.TempDir()}, args...)...)
	s.cmd.Env = append(os.Environ(), "CALLREEL_PUSH_TOKEN=token-of-the-test")
	s.cmd.Stderr = s.said
	out, err := s.cmd.StdoutPipe()
	realtest.Must(t, err)
	realtest.Must(t, s.cmd.Start())
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%v\n%s", err, s.said)
	}
	s.url = strings.TrimSpace(line)
	return s
}

// storeOf is an empty store, and what lists the names of all that is in it, that has no name yet included.
func storeOf(t *testing.T, kind string) (store string, names func() []string) {
	t.Helper()
	if kind == "S3" {
		bucket := realtest.S3(t)
		store = "s3://" + bucket + "/prefix"
		return store, func() (list []string) {
			s, err := storage.Open(store, t.TempDir())
			realtest.Must(t, err)
			realtest.Must(t, s.List(t.Context(), "", func(o storage.Info) error { list = append(list, o.Key); return nil }))
			return list
		}
	}
	store = filepath.Join(t.TempDir(), "store")
	return store, func() (list []string) {
		realtest.Must(t, filepath.WalkDir(store, func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() && d.Name() != ".lock" {
				list = append(list, path)
			}
			return err
		}))
		return list
	}
}

// kill kills a server, which must be running.
func (s *symbolServer) kill(t *testing.T) {
	t.Helper()
	realtest.Must(t, s.cmd.Process.Kill())
	_ = s.cmd.Wait() // it was killed
}

// put sends a file in the background; the error is of the connection.
func (s *symbolServer) put(t *testing.T, id string, body io.Reader, size int64) (done chan error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.url+"/buildid/"+id, body)
	realtest.Must(t, err)
	request.ContentLength = size
	request.Header.Set("Authorization", "Bearer token-of-the-test")
	done = make(chan error, 1)
	go func() {
		answer, err := http.DefaultTransport.RoundTrip(request)
		if err == nil {
			err = answer.Body.Close()
		}
		done <- err
	}()
	return done
}

func TestAServerThatIsKilledWhileItTakesAFileLeavesNothing(t *testing.T) {
	for _, kind := range []string{"folder", "S3"} {
		t.Run(kind, func(t *testing.T) {
			store, names := storeOf(t, kind)
			s := serveSymbols(t, store)
			in, out := io.Pipe()
			done := s.put(t, "abcdef0123", in, 100<<20)
			for range 64 { // which the server has read when the pipe takes the last
				_, err := out.Write(bytes.Repeat([]byte("x"), 1<<20))
				realtest.Must(t, err)
			}
			s.kill(t)
			realtest.Must(t, out.Close())
			<-done
			if left := names(); len(left) > 0 {
				t.Errorf("%q is left", left)
			}
		})
	}
}

func TestWhatAServerIsKilledAtAnotherOneDoes(t *testing.T) {
	program := goProgram(t)
	id, offset := imageOf(t, program)
	data, err := os.ReadFile(program)
	realtest.Must(t, err)
	for _, kind := range []string{"folder", "S3"} {
		t.Run(kind, func(t *testing.T) {
			store, names := storeOf(t, kind)
			// Each server is killed a little later on its way from the upload to the map.
			for k := range 8 {
				s := serveSymbols(t, store, "--public", "all")
				put := s.put(t, id, bytes.NewReader(data), int64(len(data)))
				asked := make(chan struct{})
				go func() {
					defer close(asked)
					if <-put == nil {
						s.names(t, id, offset)
					}
				}()
				time.Sleep(time.Duration(k) * 40 * time.Millisecond)
				s.kill(t)
				<-asked
				for _, name := range names() {
					if base := filepath.Base(name); base != id[2:]+".whole" && base != id[2:]+".symmap" && base != id[2:]+".lease" {
						t.Errorf("after %d: %s is left", k, name)
					}
				}
			}
			// What there is is whole, and what isn't is made. The lease of one that was killed is taken over after 15 seconds, for
			// which only one of the tests waits.
			if kind == "S3" {
				st, err := storage.Open(store, t.TempDir())
				realtest.Must(t, err)
				realtest.Must(t, st.Remove(t.Context(), id[:2]+"/"+id[2:]+".lease"))
			}
			s := serveSymbols(t, store, "--public", "all")
			if err := <-s.put(t, id, bytes.NewReader(data), int64(len(data))); err != nil {
				t.Fatal(err)
			}
			if text := s.names(t, id, offset); !strings.Contains(text, `"function"`) {
				t.Errorf("%s\n%s", text, s.said)
			}
			for _, what := range []string{"/buildid/" + id + "/executable", "/symmap/" + id} {
				answer, err := http.Get(s.url + what)
				realtest.Must(t, err)
				got, err := io.ReadAll(answer.Body)
				realtest.Must(t, errors.Join(err, answer.Body.Close()))
				if answer.StatusCode != http.StatusOK || what != "/symmap/"+id && !bytes.Equal(got, data) {
					t.Errorf("%s: %s, %d bytes of %d", what, answer.Status, len(got), len(data))
				}
			}
			s.kill(t)
		})
	}
}

// goProgram is a program whose map takes a while to make.
func goProgram(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	realtest.Must(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main\n\nimport \"net/http\"\n\nfunc main() { http.Get(\"x\") }\n"), 0o600))
	out := filepath.Join(dir, "program")
	realtest.Output(t, dir, realtest.GoTool, "build", "-o", out, "main.go")
	return out
}

// imageOf is a file's ID, and where a function is, counted from the image's first address.
func imageOf(t *testing.T, path string) (id string, offset uint64) {
	t.Helper()
	im, err := object.Open(path)
	realtest.Must(t, err)
	defer im.Close()
	list, err := im.FunctionSymbols()
	realtest.Must(t, err)
	return im.ID(), list[len(list)/2].Addr - im.BaseAddr()
}

// names asks for the names at an offset in an image and returns the answer, "" if none comes.
func (s *symbolServer) names(t *testing.T, id string, offset uint64) string {
	t.Helper()
	capture := `{"images":[{"id":"` + id + `","load":0,"size":0}],"threads":[{"frames":[` + strconv.FormatUint(offset, 10) + `]}]}`
	answer, err := http.Post(s.url+"/symbolize", "application/json", strings.NewReader(capture))
	if err != nil {
		return ""
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return ""
	}
	return string(text)
}

func TestAServerAsksDebiansForWhatItLacks(t *testing.T) {
	realtest.Need(t, realtest.Debuginfod, realtest.DebuginfodFind)
	path := compileDebug(t, "-Wl,--build-id=0xabcdef01210000000000000000000000000000ab")
	const id = "abcdef01210000000000000000000000000000ab"
	port, err := realtest.FreePort()
	realtest.Must(t, err)
	upstream := exec.Command(realtest.Tool(t, realtest.Debuginfod), "-F", "-d", ":memory:", "-p", port, filepath.Dir(path))
	upstream.Env = append(os.Environ(), "DEBUGINFOD_URLS=")
	realtest.Must(t, upstream.Start())
	ended := false
	end := func() {
		if !ended {
			_ = upstream.Process.Kill()
			_ = upstream.Wait() // it was killed
		}
		ended = true
	}
	t.Cleanup(end)
	known := func() bool {
		answer, err := http.Get("http://127.0.0.1:" + port + "/buildid/" + id + "/debuginfo")
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	}
	for deadline := time.Now().Add(time.Minute); !known(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("debuginfod doesn't get to know the program")
		}
	}
	t.Setenv("DEBUGINFOD_URLS", "http://127.0.0.1:"+port)
	store := filepath.Join(t.TempDir(), "store")
	s := serveSymbols(t, store, "--public", "all", "--debuginfod")
	want, err := os.ReadFile(path)
	realtest.Must(t, err)
	for k := range 2 { // the second time without that server
		cmd := exec.Command(realtest.Tool(t, realtest.DebuginfodFind), "executable", id)
		cmd.Env = append(os.Environ(), "DEBUGINFOD_URLS="+s.url, "DEBUGINFOD_CACHE_PATH="+t.TempDir())
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("time %d: %v\n%s%s", k, err, out, s.said)
		}
		got, err := os.ReadFile(strings.TrimSpace(string(out)))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("time %d: %d bytes, want %d, %v", k, len(got), len(want), err)
		}
		end()
	}
	if text := s.names(t, id, functionAddresses(t, path)[0]); !strings.Contains(text, `"function"`) {
		t.Errorf("%s", text)
	}
	if answer, err := http.Get(s.url + "/buildid/abcdef01210000000000000000000000000000ac/debuginfo"); err != nil || answer.StatusCode < 400 {
		t.Errorf("what nobody has: %v, %v", answer, err)
	}
}

func TestServingByTLS(t *testing.T) {
	dir := t.TempDir()
	certificate, key := filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	realtest.Output(t, dir, realtest.OpenSSL, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=localhost",
		"-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate)
	s := serveSymbols(t, filepath.Join(dir, "store"), "--tls-cert", certificate, "--tls-key", key)
	if !strings.HasPrefix(s.url, "https://") {
		t.Fatal(s.url)
	}
	text, err := os.ReadFile(certificate)
	realtest.Must(t, err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	for _, c := range []struct {
		config *tls.Config
		fine   bool
	}{{&tls.Config{RootCAs: pool}, true}, {&tls.Config{RootCAs: pool, MaxVersion: tls.VersionTLS11}, false}, {&tls.Config{}, false}} {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: c.config}}
		answer, err := client.Get(s.url + "/readyz")
		if err == nil {
			err = answer.Body.Close()
		}
		if (err == nil) != c.fine {
			t.Errorf("%+v: %v", c.config, err)
		}
		client.CloseIdleConnections()
	}
	if a := callreel("", "symbols", "serve", dir, "--tls-cert", key, "--tls-key", key); a.code == exitDone || !strings.Contains(a.stderr, "certificate") {
		t.Errorf("%+v", a)
	}
}

func TestPushFillsAServerThatEndsGracefully(t *testing.T) {
	path := compileDebug(t, "-Wl,--build-id=0xabcdef0122")
	store := filepath.Join(t.TempDir(), "store")
	s := serveSymbols(t, store, "--public", "all", "--log", "json")
	t.Setenv("CALLREEL_PUSH_TOKEN", "token-of-the-test")
	for _, want := range []pushedFiles{{Stored: 1}, {There: 1}} {
		a := callreel("", "symbols", "push", filepath.Dir(path), "--to", s.url, "--json")
		if got := realtest.DecodeExactly[pushedFiles](t, a.stdout); a.code != exitDone || got != want {
			t.Errorf("%+v, want %+v", a, want)
		}
	}
	// callreel's own verbs are clients, too.
	t.Setenv("DEBUGINFOD_URLS", s.url)
	addr := functionAddresses(t, path)[0]
	capture := `{"images":[{"id":"abcdef0122","load":0,"size":0}],"threads":[{"frames":[` + strconv.FormatUint(addr, 10) + `]}]}`
	if a := callreel(capture, "symbolize", "--json"); !strings.Contains(a.stdout, `"function"`) {
		t.Errorf("%+v", a)
	}
	t.Setenv("CALLREEL_PUSH_TOKEN", "another-token")
	if a := callreel("", "symbols", "push", filepath.Dir(path), "--to", s.url); a.code != exitFailed || !strings.Contains(a.stderr, "401") {
		t.Errorf("%+v", a)
	}
	realtest.Must(t, s.cmd.Process.Signal(syscall.SIGTERM))
	done := make(chan error, 1)
	go func() { done <- s.cmd.Wait() }()
	select {
	case err := <-done:
		realtest.Must(t, err)
	case <-time.After(time.Minute):
		t.Fatal("it doesn't end")
	}
	if !strings.Contains(s.said.String(), `"msg":"pushed"`) {
		t.Errorf("%s", s.said)
	}
	if a := callreel("", "symbols", "prune", store, "--max-age", "1ns", "--json"); a.code != exitDone || !strings.Contains(a.stdout, `"left_ids":0`) {
		t.Errorf("%+v", a)
	}
}
