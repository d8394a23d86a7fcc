package debuginfod

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
)

// program builds a program with a build ID and returns its bytes and its ID.
func program(t *testing.T) (data []byte, id string) {
	t.Helper()
	realtest.Need(t, realtest.GCC)
	gcc, err := realtest.GCC.Find()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "program")
	if err := os.WriteFile(path+".c", []byte("int main(void) { return 0; }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.Command(gcc, "-g", "-Wl,--build-id", "-o", path, path+".c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	im, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	if data, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return data, im.ID()
}

// server serves with a handler until the test ends.
func server(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	return s.URL
}

func client(t *testing.T, urls ...string) *Client {
	t.Helper()
	return &Client{URLs: urls, CacheDir: filepath.Join(t.TempDir(), "cache"), StallTimeout: 5 * time.Second}
}

// leftovers lists the files in the cache that are no results.
func leftovers(t *testing.T, c *Client) (names []string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(c.CacheDir, "*", ".*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestFileIsFetchedOnceAndKept(t *testing.T) {
	data, id := program(t)
	var asked atomic.Int32
	c := client(t, server(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if want := "/buildid/" + id + "/debuginfo"; r.URL.Path != want {
			t.Errorf("asked for %s, want %s", r.URL.Path, want)
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		w.Write(data)
	}))
	var last, total int64
	c.Progress = func(_ string, done, all int64) { last, total = done, all }
	for range 2 {
		path, err := c.Fetch(t.Context(), id, DebugInfo)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != string(data) {
			t.Fatalf("%d bytes, want %d: %v", len(got), len(data), err)
		}
	}
	if asked.Load() != 1 {
		t.Errorf("the server was asked %d times", asked.Load())
	}
	if last != int64(len(data)) || total != last {
		t.Errorf("progress ended at %d of %d, want %d", last, total, len(data))
	}
}

func TestServersAreAskedInOrder(t *testing.T) {
	data, id := program(t)
	var order []string
	handle := func(name string, answer http.HandlerFunc) string {
		return server(t, func(w http.ResponseWriter, r *http.Request) {
			order = append(order, name)
			answer(w, r)
		})
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := "http://" + listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	c := client(t, dead,
		handle("missing", http.NotFound),
		handle("broken", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusBadGateway) }),
		handle("good", func(w http.ResponseWriter, _ *http.Request) { w.Write(data) }),
		handle("never", http.NotFound))
	if _, err := c.Fetch(t.Context(), id, Executable); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(order); got != "[missing broken good]" {
		t.Errorf("asked %s", got)
	}
}

func TestAbsenceIsRememberedForAWhile(t *testing.T) {
	_, id := program(t)
	var asked atomic.Int32
	c := client(t, server(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		http.NotFound(w, r)
	}))
	for range 3 {
		if _, err := c.Fetch(t.Context(), id, DebugInfo); !errors.Is(err, ErrNotFound) {
			t.Fatalf("got %v", err)
		}
	}
	if asked.Load() != 1 {
		t.Errorf("the server was asked %d times", asked.Load())
	}
	past := time.Now().Add(-2 * DefaultMissingFor)
	if err := os.Chtimes(filepath.Join(c.CacheDir, id, DebugInfo+missingSuffix), past, past); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Fetch(t.Context(), id, DebugInfo); !errors.Is(err, ErrNotFound) || asked.Load() != 2 {
		t.Errorf("the server was asked %d times: %v", asked.Load(), err)
	}
}

// A server that fails may have the file: its absence must not be remembered.
func TestFailureIsNotTakenForAbsence(t *testing.T) {
	_, id := program(t)
	var asked atomic.Int32
	c := client(t, server(t, http.NotFound), server(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		http.Error(w, "no", http.StatusServiceUnavailable)
	}))
	for range 2 {
		_, err := c.Fetch(t.Context(), id, DebugInfo)
		if err == nil || errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "503") {
			t.Fatalf("got %v", err)
		}
	}
	if asked.Load() != 2 {
		t.Errorf("the server was asked %d times", asked.Load())
	}
}

func TestServerThatStallsIsGivenUp(t *testing.T) {
	data, id := program(t)
	for what, handle := range map[string]http.HandlerFunc{
		"before the answer": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"within the file": func(w http.ResponseWriter, r *http.Request) {
			w.Write(data[:len(data)/2])
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
	} {
		c := client(t, server(t, handle))
		c.StallTimeout = 100 * time.Millisecond
		_, err := c.Fetch(t.Context(), id, DebugInfo)
		if err == nil || !strings.Contains(err.Error(), "nothing came for 100ms") {
			t.Errorf("%s: %v", what, err)
		}
		if left := leftovers(t, c); len(left) > 0 {
			t.Errorf("%s: left %q", what, left)
		}
	}
}

// A slow server that keeps sending is waited for, however long the whole takes.
func TestSlowServerIsWaitedFor(t *testing.T) {
	data, id := program(t)
	c := client(t, server(t, func(w http.ResponseWriter, _ *http.Request) {
		for k := range 10 {
			w.Write(data[len(data)*k/10 : len(data)*(k+1)/10])
			w.(http.Flusher).Flush()
			time.Sleep(60 * time.Millisecond)
		}
	}))
	c.StallTimeout = 500 * time.Millisecond
	if _, err := c.Fetch(t.Context(), id, DebugInfo); err != nil {
		t.Error(err)
	}
}

func TestWhatIsNotTheFileIsRefused(t *testing.T) {
	data, id := program(t)
	for what, handle := range map[string]http.HandlerFunc{
		"cut off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(len(data)))
			w.Write(data[:100])
		},
		"a page":  func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>log in</html>") },
		"nothing": func(http.ResponseWriter, *http.Request) {},
		"declared too large": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(1<<40))
			w.Write(data)
		},
		"too large without a word": func(w http.ResponseWriter, _ *http.Request) {
			for range 100 {
				w.Write(data)
			}
		},
	} {
		c := client(t, server(t, handle))
		c.MaxSize = int64(len(data)) + 10
		if path, err := c.Fetch(t.Context(), id, DebugInfo); err == nil || errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %q, %v", what, path, err)
		}
		if left := leftovers(t, c); len(left) > 0 {
			t.Errorf("%s: left %q", what, left)
		}
	}
	other := strings.Repeat("ab", 20)
	c := client(t, server(t, func(w http.ResponseWriter, _ *http.Request) { w.Write(data) }))
	if _, err := c.Fetch(t.Context(), other, DebugInfo); !errors.As(err, new(*object.IDError)) {
		t.Errorf("another file: %v", err)
	}
}

func TestRedirectionsAreFollowedUpToABound(t *testing.T) {
	data, id := program(t)
	good := server(t, func(w http.ResponseWriter, _ *http.Request) { w.Write(data) })
	c := client(t, server(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, good+r.URL.Path, http.StatusFound)
	}))
	if _, err := c.Fetch(t.Context(), id, DebugInfo); err != nil {
		t.Error(err)
	}
	c = client(t, server(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
	}))
	if _, err := c.Fetch(t.Context(), id, DebugInfo); err == nil || !strings.Contains(err.Error(), "redirections") {
		t.Errorf("got %v", err)
	}
}

func TestFetchStopsWithItsContext(t *testing.T) {
	_, id := program(t)
	started := make(chan struct{}, 1)
	c := client(t, server(t, func(_ http.ResponseWriter, r *http.Request) {
		started <- struct{}{}
		<-r.Context().Done()
	}), server(t, func(http.ResponseWriter, *http.Request) { t.Error("the next server was asked") }))
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-started; cancel() }()
	if _, err := c.Fetch(ctx, id, DebugInfo); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestRequestsThatWouldLeaveTheCacheAreRefused(t *testing.T) {
	c := client(t, server(t, func(http.ResponseWriter, *http.Request) { t.Error("asked") }))
	for _, r := range [][2]string{{"", DebugInfo}, {"../../..", DebugInfo}, {"ABCDEF", DebugInfo}, {"abc", DebugInfo}, {"abcd", "../x"}, {"abcd", ""}} {
		if _, err := c.Fetch(t.Context(), r[0], r[1]); err == nil {
			t.Errorf("%q was fetched", r)
		}
	}
}

func TestServersComeFromTheEnvironment(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Setenv("DEBUGINFOD_URLS", "")
	if c, err := FromEnvironment(); c != nil || err != nil {
		t.Errorf("got %v, %v", c, err)
	}
	t.Setenv("DEBUGINFOD_URLS", "https://a.example.org/  http://b.example.org/x")
	c, err := FromEnvironment()
	if err != nil || fmt.Sprint(c.URLs) != "[https://a.example.org/ http://b.example.org/x]" || filepath.Base(c.CacheDir) != "debuginfod" {
		t.Errorf("got %+v, %v", c, err)
	}
	t.Setenv("DEBUGINFOD_URLS", "ftp://a.example.org")
	if _, err := FromEnvironment(); err == nil {
		t.Error("ftp was accepted")
	}
}
