package server

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/symbols/server/storage"
)

func TestSeveralServersMakeAMapOnce(t *testing.T) {
	b := build(t, "1011121314")
	for _, kind := range []string{"folder", "S3"} {
		t.Run(kind, func(t *testing.T) {
			s := storageOf(t, kind)
			var servers []*running
			for range 3 {
				servers = append(servers, start(t, s, nil))
			}
			servers[0].push(t, b.id, b.whole, http.StatusCreated)
			var wg sync.WaitGroup
			for k := range 30 {
				wg.Go(func() {
					if got := servers[k%3].names(t, b.id, b.outer); !strings.HasSuffix(got, "outer") {
						t.Errorf("named %q", got)
					}
				})
			}
			wg.Wait()
			made := 0.0
			for _, r := range servers {
				made += testutil.ToFloat64(r.metrics.builds.WithLabelValues("made"))
			}
			if made != 1 {
				t.Errorf("made %v times", made)
			}
			if _, err := s.Stat(t.Context(), key(b.id, kindLease)); err == nil {
				t.Error("the lease was not given back")
			}
		})
	}
}

func TestALeaseOfAServerThatWasKilledIsTakenOver(t *testing.T) {
	s := folder(t)
	const id = "2021222324"
	realtest.Must(t, writeLease(t.Context(), s, key(id, kindLease), "")) // nobody renews it
	var other watched
	for range 3 {
		if l, err := tryLease(t.Context(), s, id, &other); l != nil || err != nil {
			t.Fatalf("%v, %v", l, err)
		}
	}
	other.since = other.since.Add(-leaseTime)
	l, err := tryLease(t.Context(), s, id, &other)
	if l == nil || err != nil {
		t.Fatalf("%v, %v", l, err)
	}
	if second, err := tryLease(t.Context(), s, id, &watched{}); second != nil || err != nil {
		t.Errorf("two hold it: %v", err)
	}
	realtest.Must(t, l.release())
	if l, err = tryLease(t.Context(), s, id, &watched{}); l == nil || err != nil {
		t.Fatalf("after its release: %v, %v", l, err)
	}
	realtest.Must(t, l.release())
}

func TestFiveHundredClientsAtOnceAreAllAnswered(t *testing.T) {
	b := build(t, "3031323334")
	r := start(t, folder(t), func(o *Options) { o.MaxConnections = 100 })
	r.push(t, b.id, b.whole, http.StatusCreated)
	http.DefaultTransport.(*http.Transport).CloseIdleConnections() // each client comes by one of its own
	var refused atomic.Int32
	var wg sync.WaitGroup
	for range 500 {
		wg.Go(func() {
			code, _, text := r.ask(t, http.MethodPost, "/symbolize", readToken, capture(b.id, b.outer), "Connection", "close")
			var n named
			if code != http.StatusOK || json.Unmarshal([]byte(text), &n) != nil || len(n.Threads[0].Frames[0].Inline) == 0 {
				refused.Add(1)
			}
		})
	}
	wg.Wait()
	if n := refused.Load(); n > 0 {
		t.Errorf("%d of 500 had no answer", n)
	}
}

func TestMapsInMemoryAreBounded(t *testing.T) {
	s := folder(t)
	r := start(t, s, func(o *Options) { o.MapMemory = 3000 })
	for k := range 12 {
		b := build(t, fmt.Sprintf("40414243%02x", k))
		r.push(t, b.id, b.whole, http.StatusCreated)
		if got := r.names(t, b.id, b.outer); !strings.HasSuffix(got, "outer") {
			t.Errorf("named %q", got)
		}
		if m := r.maps.memory(); m > 3000 {
			t.Errorf("%d bytes are kept", m)
		}
	}
}

func TestRequestsAreLimited(t *testing.T) {
	b := build(t, "5051525354")
	r := start(t, folder(t), func(o *Options) { o.MaxBody = 10_000; o.IdleTimeout = time.Second; o.Quota = 1 })
	many := capture(b.id, make([]uint64, 2000)...)
	if code, _, text := r.ask(t, http.MethodPost, "/symbolize", readToken, many); code != http.StatusRequestEntityTooLarge {
		t.Errorf("a large body: %d %.100s", code, text)
	}
	// A bomb: as much, inflated from little.
	code, _, text := r.ask(t, http.MethodPost, "/symbolize", readToken, gzipped(t, append(bytes.Repeat([]byte(" "), 50<<20), many...)), "Content-Encoding", "gzip")
	if code != http.StatusRequestEntityTooLarge {
		t.Errorf("a bomb: %d %.100s", code, text)
	}
	if code, _, _ := r.ask(t, http.MethodPost, "/symbolize", readToken, nil, "Content-Encoding", "br"); code != http.StatusUnsupportedMediaType {
		t.Errorf("an unknown coding: %d", code)
	}
	for _, bad := range []string{"", "{", "[]", `{"images":1}`, "\x00"} {
		if code, _, text := r.ask(t, http.MethodPost, "/symbolize", readToken, []byte(bad)); code != http.StatusBadRequest {
			t.Errorf("%q: %d %s", bad, code, text)
		}
	}
	r.push(t, b.id, b.whole, http.StatusInsufficientStorage)
}

func TestLinesAreAnsweredEachByItself(t *testing.T) {
	b := build(t, "6061626364")
	r := start(t, folder(t), nil)
	r.push(t, b.id, b.whole, http.StatusCreated)
	one := string(capture(b.id, b.outer))
	body := one + "\n{bad\n\n" + one + "\n" + `{"images":[],"threads":[{"frames":[1]}]}`
	for _, zipped := range []bool{false, true} {
		in, headers := []byte(body), []string{"Content-Type", typeLines}
		if zipped {
			in, headers = gzipped(t, in), append(headers, "Content-Encoding", "gzip")
		}
		code, h, text := r.ask(t, http.MethodPost, "/symbolize", readToken, in, headers...)
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		if code != http.StatusOK || len(lines) != 4 || h.Get("Content-Type") != typeLines {
			t.Fatalf("%d, %v\n%s", code, h, text)
		}
		for k, want := range []string{`"outer"`, `{"error":`, `"outer"`, `no image`} {
			if !strings.Contains(lines[k], want) || !json.Valid([]byte(lines[k])) {
				t.Errorf("line %d: %s, want %s", k, lines[k], want)
			}
		}
	}
}

func TestPruneRemovesTheOldestWhole(t *testing.T) {
	for _, kind := range []string{"folder", "S3"} {
		t.Run(kind, func(t *testing.T) {
			s := storageOf(t, kind)
			r := start(t, s, nil)
			var ids []string
			for k := range 3 {
				b := build(t, fmt.Sprintf("70717273%02x", k))
				ids = append(ids, b.id)
				r.push(t, b.id, b.whole, http.StatusCreated)
				if k == 0 {
					r.names(t, b.id, b.outer) // so that it has a map, too
				}
				time.Sleep(1100 * time.Millisecond) // the times of objects are whole seconds
			}
			dry, err := Prune(t.Context(), s, PruneOptions{MaxSize: 1, DryRun: true})
			if err != nil || dry.IDs != 3 || dry.Files != 4 || dry.LeftBytes != 0 {
				t.Errorf("%+v, %v", dry, err)
			}
			p, err := Prune(t.Context(), s, PruneOptions{MaxSize: dry.Bytes - 1})
			if err != nil || p.IDs != 1 || p.Files != 2 || p.LeftIDs != 2 || p.Bytes+p.LeftBytes != dry.Bytes {
				t.Errorf("%+v, %v", p, err)
			}
			realtest.Must(t, s.List(t.Context(), "", func(o storage.Info) error {
				if id, _ := idOfKey(o.Key); id == ids[0] {
					t.Errorf("%s is left", o.Key)
				}
				return nil
			}))
			if p, err := Prune(t.Context(), s, PruneOptions{MaxAge: time.Hour}); err != nil || p.IDs != 0 {
				t.Errorf("%+v, %v", p, err)
			}
			if p, err := Prune(t.Context(), s, PruneOptions{MaxAge: time.Nanosecond}); err != nil || p.IDs != 2 || p.LeftBytes != 0 {
				t.Errorf("%+v, %v", p, err)
			}
		})
	}
}

func gzipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(data)
	realtest.Must(t, err)
	realtest.Must(t, w.Close())
	return b.Bytes()
}

func gunzipped(t testing.TB, text string) string {
	t.Helper()
	r, err := gzip.NewReader(strings.NewReader(text))
	realtest.Must(t, err)
	all, err := io.ReadAll(r)
	realtest.Must(t, err)
	return string(all)
}

func TestWhatIsMissingIsLookedForEverLessOften(t *testing.T) {
	loads := 0
	const first = time.Millisecond
	c := newMapCache(1<<20, first, func(context.Context, string) (*openMap, error) {
		loads++
		return nil, fs.ErrNotExist
	})
	begin := time.Now()
	for time.Since(begin) < 300*time.Millisecond {
		if _, _, err := c.get(t.Context(), "abcd"); !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	// 1, 2, 4 … 64 ms, and then each 64.
	if most := 8 + int(time.Since(begin)/(longestWait*first)); loads > most || loads < 2 {
		t.Errorf("looked for %d times in %v, want %d at most", loads, time.Since(begin), most)
	}
	c.forget("abcd") // as a push does
	before := loads
	if _, _, err := c.get(t.Context(), "abcd"); err == nil || loads != before+1 {
		t.Errorf("after a push: %v, %d times", err, loads-before)
	}
	realtest.Must(t, c.close())
}
