package viewer

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/callreel/callreel/internal/madereel"
	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// client asks a server that serves over real HTTP.
type client struct {
	t testing.TB
	*Server
}

// serve serves reels until the test is over.
func serve(t testing.TB, opt Options) *client {
	t.Helper()
	s, err := New(opt)
	realtest.Must(t, err)
	return served(t, s)
}

// served has a server serve until the test is over.
func served(t testing.TB, s *Server) *client {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return &client{t, s}
}

// serveReels is serve of reels as callreel view has them.
func serveReels(t testing.TB, paths ...string) *client {
	t.Helper()
	return serve(t, Options{Paths: paths, Version: "test"})
}

// do asks for what is below the server's root, with what change makes of the request.
func (c *client) do(path string, change func(*http.Request)) (*http.Response, []byte) {
	c.t.Helper()
	r, err := http.NewRequest(http.MethodGet, "http://"+c.listener.Addr().String()+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	a, err := client.Do(r)
	if err != nil {
		c.t.Fatalf("%s: %v", path, err)
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	if err != nil {
		c.t.Fatalf("%s: %v", path, err)
	}
	return a, body
}

// bytes returns a good answer of the API.
func (c *client) bytes(request string) []byte {
	c.t.Helper()
	a, body := c.do("/"+c.token+"/api/"+request, nil)
	if a.StatusCode != http.StatusOK {
		c.t.Fatalf("%s: %s: %s", request, a.Status, body)
	}
	return body
}

// ask decodes a good answer of the API.
func ask[T any](c *client, request string) T {
	c.t.Helper()
	var v T
	if err := json.Unmarshal(c.bytes(request), &v); err != nil {
		c.t.Fatalf("%s: %v", request, err)
	}
	return v
}

// The answers of the API that more than one test looks at.
type (
	functionsAnswer struct {
		Functions []functionJSON `json:"functions"`
		Total     int            `json:"total"`
	}
	callsAnswer struct {
		Calls []callJSON `json:"calls"`
		Total uint64     `json:"total"`
	}
	infoAnswer struct {
		Version string     `json:"version"`
		Reels   []reelJSON `json:"reels"`
		Build   struct {
			Progress float64 `json:"progress"`
		} `json:"build"`
	}
)

// madeReel writes a reel whose ticks are nanoseconds from 1000. The functions have the IDs from 1 on.
func madeReel(t testing.TB, functions []string, fill func(w *reel.Writer)) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "made.reel")
	w := newReel(t, path, functions)
	fill(w)
	realtest.Must(t, w.Close())
	return path
}

func newReel(t testing.TB, path string, functions []string) *reel.Writer {
	t.Helper()
	header := reel.Header{PID: 77, Exe: "/bin/prog", Clock: madereel.Nanoseconds(1000)}
	return madereel.Create(t, path, header, reel.Image{Path: "/bin/prog", ID: "c0ffee"}, functions...)
}

// thread adds a thread with these events.
func thread(t testing.TB, w *reel.Writer, name string, events ...reel.Event) *reel.ThreadWriter {
	t.Helper()
	return madereel.Thread(t, w, reel.Thread{TID: 78, Process: 77, Name: name}, events...)
}
