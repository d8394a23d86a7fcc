package debuginfod

import (
	"bytes"
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
	return &Client{URLs: urls, CacheDir: filepath.Join(t.TempDir(), "cache"), Limits: Limits{StartTimeout: 5 * time.Second, StallTimeout: 5 * time.Second}}
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
	large := bytes.Repeat(data, 1+200<<10/len(data))
	// send sends so many bytes at once and then one byte each time.
	send := func(at int, pause time.Duration) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(len(large)))
			w.Write(large[:at])
			for k := at; k < len(large) && r.Context().Err() == nil; k++ {
				w.(http.Flusher).Flush()
				select {
				case <-time.After(pause):
					w.Write(large[k : k+1])
				case <-r.Context().Done():
				}
			}
		}
	}
	const long, short = time.Hour, 100 * time.Millisecond
	for what, k := range map[string]struct {
		handle http.HandlerFunc
		limits Limits
		want   string
	}{
		"before the answer": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			Limits{StartTimeout: short}, "0 bytes came within 100ms"},
		"at the begin":               {send(1, long), Limits{StallTimeout: short}, "nothing came for 100ms"},
		"within the file":            {send(len(large)-1, long), Limits{StallTimeout: short}, "nothing came for 100ms"},
		"byte by byte":               {send(1, time.Millisecond), Limits{StartTimeout: short}, "came within 100ms, want 102400 at least"},
		"byte by byte after a while": {send(startSize, time.Millisecond), Limits{StallTimeout: short}, "bytes a second came, want 16384 at least"},
		"too long in all":            {send(startSize, time.Millisecond), Limits{MaxTime: short}, "more than 100ms in all"},
	} {
		c := client(t, server(t, k.handle), server(t, func(w http.ResponseWriter, _ *http.Request) { w.Write(data) }))
		c.Limits = k.limits
		// The next server is asked, and has the file.
		if _, err := c.Fetch(t.Context(), id, DebugInfo); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if left := leftovers(t, c); len(left) > 0 {
			t.Errorf("%s: left %q", what, left)
		}
		c = client(t, c.URLs[0])
		c.Limits = k.limits
		if _, err := c.Fetch(t.Context(), id, DebugInfo); err == nil || errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%s: %v, want one of %q", what, err, k.want)
		}
		if left, err := os.ReadDir(c.CacheDir); err != nil || len(left) > 0 {
			t.Errorf("%s: left %q, %v", what, left, err)
		}
	}
}

func TestWhatAKilledProcessLeftIsRemoved(t *testing.T) {
	data, id := program(t)
	c := client(t, server(t, func(w http.ResponseWriter, _ *http.Request) { w.Write(data) }))
	stale := filepath.Join(c.CacheDir, id, ".123.tmp")
	fresh := filepath.Join(c.CacheDir, id, ".456.tmp")
	if err := os.MkdirAll(filepath.Dir(stale), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{stale, fresh} {
		if err := os.WriteFile(path, data[:10], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	past := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(stale, past, past); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Fetch(t.Context(), id, DebugInfo); err != nil {
		t.Fatal(err)
	}
	if left := leftovers(t, c); len(left) != 1 || left[0] != fresh {
		t.Errorf("left %q, want that which another process may be writing", left)
	}
}

// A slow server that keeps sending is waited for, however long the whole takes.
// A server that takes connections and says nothing: the next one is asked when the first byte's time is over, and it is
// not asked again for the next file.
func TestServerThatSaysNothingIsPassedOver(t *testing.T) {
	data, id := program(t)
	const short = 200 * time.Millisecond
	for name, limits := range map[string]Limits{
		"first byte": {FirstByteTimeout: short},
		"start":      {StartTimeout: short},
	} {
		t.Run(name, func(t *testing.T) {
			address, taken := realtest.SilentServer(t)
			var asked atomic.Int32
			c := client(t, "http://"+address, server(t, func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				if strings.HasSuffix(r.URL.Path, DebugInfo) {
					http.NotFound(w, r)
					return
				}
				w.Write(data)
			}))
			c.Limits = limits
			if _, err := c.Fetch(t.Context(), id, DebugInfo); err == nil || errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), errLimit.Error()) {
				t.Errorf("no server has it, and one didn't say: %v", err)
			}
			if _, err := c.Fetch(t.Context(), id, Executable); err != nil {
				t.Fatal(err)
			}
			if taken.Load() != 1 || asked.Load() != 2 {
				t.Errorf("the silent server was asked %d times, the other %d", taken.Load(), asked.Load())
			}
		})
	}
}

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
		"cut off in chunks": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(sizeHeader, strconv.Itoa(len(data)+1))
			w.(http.Flusher).Flush()
			w.Write(data)
		},
		"larger than claimed": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(sizeHeader, strconv.Itoa(len(data)-1))
			w.(http.Flusher).Flush()
			w.Write(data)
		},
		"claimed too large": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(sizeHeader, strconv.Itoa(len(data)+11))
			w.(http.Flusher).Flush()
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

func TestRedirectionsLeadToNothingButHTTP(t *testing.T) {
	_, id := program(t)
	for _, to := range []string{"file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://127.0.0.1/x"} {
		c := client(t, server(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusFound)
		}))
		if _, err := c.Fetch(t.Context(), id, DebugInfo); err == nil || !strings.Contains(err.Error(), "neither http nor https") {
			t.Errorf("%s: %v", to, err)
		}
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

func TestFoldersThatOthersCanChangeAreNotUsed(t *testing.T) {
	const id = "0123456789abcdef0123456789abcdef01234567"
	c := client(t, "http://localhost:1")
	if err := os.Mkdir(c.CacheDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(c.CacheDir, 0o777); err != nil {
		t.Fatal(err)
	}
	planted := filepath.Join(c.CacheDir, id, DebugInfo)
	if err := os.Mkdir(filepath.Dir(planted), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(planted, []byte("another's"), 0o600); err != nil {
		t.Fatal(err)
	}
	if path, err := c.Fetch(t.Context(), id, DebugInfo); err == nil || !strings.Contains(err.Error(), "others can write") {
		t.Errorf("%s, %v", path, err)
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
	dir := t.TempDir()
	t.Setenv("DEBUGINFOD_URLS", "")
	if c, err := FromEnvironment(dir); c != nil || err != nil {
		t.Errorf("got %v, %v", c, err)
	}
	t.Setenv("DEBUGINFOD_URLS", "https://a.example.org/  http://b.example.org/x")
	c, err := FromEnvironment(dir)
	if err != nil || fmt.Sprint(c.URLs) != "[https://a.example.org/ http://b.example.org/x]" || c.CacheDir != dir || c.Limits != (Limits{}) {
		t.Errorf("got %+v, %v", c, err)
	}
	t.Setenv("DEBUGINFOD_URLS", "ftp://a.example.org")
	if _, err := FromEnvironment(dir); err == nil {
		t.Error("ftp was accepted")
	}
}

func TestLimitsComeFromTheEnvironment(t *testing.T) {
	t.Setenv("DEBUGINFOD_URLS", "https://a.example.org/")
	for _, k := range []struct {
		timeout, maxTime, maxSize string
		want                      Limits // with the defaults of what is not set
	}{
		{"", "", "", Limits{}},
		{"7", "60", "1000000", Limits{StartTimeout: 7 * time.Second, FirstByteTimeout: 7 * time.Second, MaxTime: time.Minute, MaxSize: 1000000}},
		{"0", "0", "0", Limits{StartTimeout: noLimit, FirstByteTimeout: noLimit, MaxTime: noLimit, MaxSize: noLimit}},
		{"-1", " 9223372036854775807 ", "", Limits{StartTimeout: noLimit, FirstByteTimeout: noLimit, MaxTime: noLimit}},
	} {
		t.Setenv("DEBUGINFOD_TIMEOUT", k.timeout)
		t.Setenv("DEBUGINFOD_MAXTIME", k.maxTime)
		t.Setenv("DEBUGINFOD_MAXSIZE", k.maxSize)
		c, err := FromEnvironment(t.TempDir())
		if err != nil || c.Limits.withDefaults() != k.want.withDefaults() {
			t.Errorf("%+v: %+v, %v", k, c, err)
		}
	}
	t.Setenv("DEBUGINFOD_MAXSIZE", "1M")
	if _, err := FromEnvironment(t.TempDir()); err == nil || !strings.Contains(err.Error(), "DEBUGINFOD_MAXSIZE") {
		t.Errorf("1M: %v", err)
	}
}

// Servers are told what would be refused, as elfutils' client does.
func TestServersAreToldOfTheSizeThatIsTaken(t *testing.T) {
	data, id := program(t)
	var told string
	c := client(t, server(t, func(w http.ResponseWriter, r *http.Request) {
		told = r.Header.Get("X-DEBUGINFOD-MAXSIZE")
		w.Write(data)
	}))
	c.MaxSize = 1 << 20
	if _, err := c.Fetch(t.Context(), id, DebugInfo); err != nil || told != "1048576" {
		t.Errorf("told %q: %v", told, err)
	}
}
