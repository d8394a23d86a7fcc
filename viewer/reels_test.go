package viewer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// patience is how long a test waits for what must come.
const patience = time.Minute

// until asks again until the answer is as wanted.
func until[T any](c *client, request string, wanted func(T) bool) T {
	c.t.Helper()
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		v := ask[T](c, request)
		if wanted(v) {
			return v
		}
		if time.Since(start) > patience {
			c.t.Fatalf("%s: still %+v", request, v)
		}
	}
}

func TestNamesMayHoldAnything(t *testing.T) {
	names := []string{"<script>alert(1)</script>", "\x1b[2J", "a\nb", "nul\x00l", "\xff\xfe", "\u202egnp.exe", "\u2028", `"\`, "</script>", "%s%n", "ünïcödé", strings.Repeat("x", 1<<20), ""}
	path := madeReel(t, names, func(w *reel.Writer) {
		var events []reel.Event
		for i := range names {
			at := uint64(2000 + 10*i)
			events = append(events, reel.Entry(at, 0x10000, uint32(i+1)), reel.Exit(at+5, 0x10000, uint32(i+1)))
		}
		thread(t, w, "<b>\x1b[31m\xff", events...)
	})
	c := serveReels(t, path)
	for _, request := range []string{"functions", "tree", "lanes", "names?ids=1,2,3,4,5,6,7,8,9,10,11,12,13,99", "find?q=*", "first?q=*", "speedscope", "info"} {
		a, body := c.do("/"+c.token+"/api/"+request, nil)
		if a.StatusCode != 200 || a.Header.Get("Content-Type") != "application/json" || !json.Valid(body) {
			t.Errorf("%s: %s %s: %.200q", request, a.Status, a.Header.Get("Content-Type"), body)
		}
	}
	got := ask[functionsAnswer](c, "functions")
	if got.Total != len(names) {
		t.Errorf("%d functions of %d", got.Total, len(names))
	}
	seen := map[string]bool{}
	for _, f := range got.Functions {
		seen[f.Name] = true
	}
	if !seen["<script>alert(1)</script>"] || !seen["\u202egnp.exe"] || !seen["nul\x00l"] {
		t.Error("names are not what the reel has")
	}
}

func TestTruncatedReelIsShownWithWhatWasLost(t *testing.T) {
	path := madeReel(t, []string{"work"}, func(w *reel.Writer) {
		var events []reel.Event
		for at := uint64(2000); at < 3_000_000; at += 10 {
			events = append(events, reel.Entry(at, 0x10000, 1), reel.Exit(at+5, 0x10000, 1))
		}
		thread(t, w, "main", events...)
	})
	data, err := os.ReadFile(path)
	realtest.Must(t, err)
	whole := ask[functionsAnswer](serveReels(t, path), "functions")
	f, err := reel.Open(path)
	realtest.Must(t, err)
	defer f.Close()
	last := f.Chunks(1)[len(f.Chunks(1))-1]
	cut := filepath.Join(t.TempDir(), "cut.reel")
	realtest.Must(t, os.WriteFile(cut, data[:last.Offset+100], 0o644))
	c := serveReels(t, cut)
	info := ask[infoAnswer](c, "info").Reels[0]
	got := ask[functionsAnswer](c, "functions")
	if len(info.Damaged) == 0 || info.Closed || len(got.Functions) != 1 || got.Functions[0].Calls == 0 || got.Functions[0].Calls >= whole.Functions[0].Calls {
		t.Errorf("%+v; %+v of %+v", info, got, whole)
	}
	lanes := ask[[]laneJSON](c, "lanes")
	if len(lanes) != 1 || lanes[0].Calls != got.Functions[0].Calls {
		t.Errorf("%+v", lanes)
	}
}

func TestReelThatIsCutShortMeanwhileEndsNothing(t *testing.T) {
	path := madeReel(t, []string{"work"}, func(w *reel.Writer) {
		var events []reel.Event
		for at := uint64(2000); at < 6_000_000; at += 10 {
			events = append(events, reel.Entry(at, 0x10000, 1), reel.Exit(at+5, 0x10000, 1))
		}
		thread(t, w, "main", events...)
	})
	c := serveReels(t, path)
	info := until(c, "info", func(i infoAnswer) bool { return i.Build.Progress == 1 }).Reels[0]
	realtest.Must(t, os.Truncate(path, 1))
	for _, request := range []string{
		"info", "lanes", "names?ids=1", "overview", fmt.Sprintf("view?from=5000&to=%d&width=1000&lanes=0:0:1", info.DurationNS), "view?from=5000&to=5100&width=1000&lanes=0:0:1",
		"functions", "functions?from=5000&to=6000", "tree", "calls?f=1", "call?lane=0&row=0&at=3000000", "first?f=1", "find?q=w", "speedscope",
	} {
		// Whatever they answer, the server does.
		if a, body := c.do("/"+c.token+"/api/"+request, nil); a.StatusCode != 200 && (a.StatusCode != 500 || !json.Valid(body)) {
			t.Errorf("%s: %s: %.200s", request, a.Status, body)
		}
	}
	ask[infoAnswer](c, "info")
}

func TestCallSaysHowManyCallsItMade(t *testing.T) {
	path := madeReel(t, []string{"outer", "inner", "leaf"}, func(w *reel.Writer) {
		var events []reel.Event
		for i := range uint64(3) { // one right after the other, with 0, 1 and 2 calls of inner
			at := 2000 + 100*i
			events = append(events, reel.Entry(at, 0x10000, 1))
			for k := range i {
				events = append(events, reel.Entry(at+20*k, 0xff00, 2), reel.Entry(at+20*k, 0xfe00, 3), reel.Exit(at+20*k+10, 0xfe00, 3), reel.Exit(at+20*k+10, 0xff00, 2))
			}
			events = append(events, reel.Exit(at+100, 0x10000, 1))
		}
		thread(t, w, "main", events...)
	})
	c := serveReels(t, path)
	for i := range 3 {
		got := ask[callJSON](c, fmt.Sprintf("call?lane=0&row=0&at=%d", 1000+100*i))
		if got.StartNS != uint64(1000+100*i) || got.Callees == nil || *got.Callees != i {
			t.Errorf("call %d: %+v", i, got)
		}
	}
}

func TestDroppedStretchesAreGaps(t *testing.T) {
	path := madeReel(t, []string{"work"}, func(w *reel.Writer) {
		tw := thread(t, w, "main", reel.Entry(2000, 0x10000, 1), reel.Exit(3000, 0x10000, 1))
		realtest.Must(t, tw.Dropped(7, 7, 4000))
		realtest.Must(t, tw.Append([]reel.Event{reel.Entry(9000, 0x10000, 1), reel.Exit(9500, 0x10000, 1)}))
	})
	c := serveReels(t, path)
	gaps := 0
	for _, b := range decodeView(t, c.bytes("view?from=0&to=8500&width=100&lanes=0:0:1")) {
		for _, g := range b.gaps {
			gaps++
			if g[0] > g[1] || g[2] != 14 {
				t.Errorf("a gap of %v", g)
			}
		}
	}
	if info := ask[infoAnswer](c, "info").Reels[0]; gaps != 1 || info.Dropped != 7 {
		t.Errorf("%d gaps, %d calls dropped", gaps, info.Dropped)
	}
	if o := ask[struct{ Gaps [][2]uint64 }](c, "overview?width=50"); len(o.Gaps) != 1 {
		t.Errorf("the overview has gaps %v", o.Gaps)
	}
}

func TestReelThatGrowsIsFollowedToItsEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "grows.reel")
	w := newReel(t, path, []string{"work"})
	tw := thread(t, w, "main", reel.Entry(2000, 0x10000, 1), reel.Exit(2500, 0x10000, 1))
	realtest.Must(t, w.Flush())
	c := serve(t, Options{Paths: []string{path}, Recording: true})
	if info := until(c, "info", func(i infoAnswer) bool { return i.Build.Progress == 1 }).Reels[0]; !info.Live || info.Closed || info.Calls != 1 {
		t.Fatalf("%+v", info)
	}
	events := c.events(t)
	events.wait("hello")
	// The reel grows, in functions too.
	_, err := w.AddFunctions([]reel.Function{{Name: "later", Image: 1}})
	realtest.Must(t, err)
	realtest.Must(t, tw.Append([]reel.Event{reel.Entry(5000, 0x10000, 2), reel.Exit(6000, 0x10000, 2)}))
	realtest.Must(t, w.Flush())
	events.wait("grown")
	if got := ask[functionsAnswer](c, "functions"); got.Total != 2 || got.Functions[0].Name != "later" {
		t.Errorf("%+v", got)
	}
	if info := ask[infoAnswer](c, "info").Reels[0]; info.Calls != 2 || info.DurationNS != 5000 || !info.Live {
		t.Errorf("%+v", info)
	}
	if found := ask[struct{ Matches int }](c, "find?q=LATER"); found.Matches != 1 {
		t.Errorf("%d functions are found", found.Matches)
	}
	realtest.Must(t, tw.Append([]reel.Event{reel.Entry(8000, 0x10000, 1), reel.Exit(9000, 0x10000, 1)}))
	realtest.Must(t, w.Close())
	c.Ended()
	events.wait("closed")
	if info := ask[infoAnswer](c, "info").Reels[0]; info.Calls != 3 || info.Live || !info.Closed {
		t.Errorf("%+v", info)
	}
}

// eventStream is api/events as a page listens to it.
type eventStream struct {
	t     *testing.T
	kinds chan string
}

func (c *client) events(t *testing.T) *eventStream {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL()+"api/events", nil)
	realtest.Must(t, err)
	a, err := http.DefaultClient.Do(r)
	realtest.Must(t, err)
	if kind := a.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Fatalf("events come as %s", kind)
	}
	s := &eventStream{t, make(chan string, 100)}
	go func() {
		defer a.Body.Close()
		defer close(s.kinds)
		lines := bufio.NewScanner(a.Body)
		for lines.Scan() {
			if kind, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				s.kinds <- kind
			}
		}
	}()
	return s
}

// wait waits for an event of a kind.
func (s *eventStream) wait(kind string) {
	s.t.Helper()
	for got := range s.kinds {
		if got == kind {
			return
		}
	}
	s.t.Fatalf("no event %s came", kind)
}

func TestPageThatGoesAwayIsNotWorkedFor(t *testing.T) {
	c := serveReels(t, oneCall(t))
	ask[[]laneJSON](c, "lanes")
	c.turn <- struct{}{} // an analysis that never ends
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL()+"api/tree", nil)
	realtest.Must(t, err)
	over := make(chan error, 1)
	go func() {
		_, err := http.DefaultClient.Do(r)
		over <- err
	}()
	cancel()
	if err := <-over; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	// The server's end waits for its handlers: that of the request has to be over by then, though its turn never came.
	ended := make(chan error, 1)
	go func() { ended <- c.Close() }()
	select {
	case err := <-ended:
		realtest.Must(t, err)
	case <-time.After(patience):
		t.Fatal("the request is still being worked for")
	}
}

func TestTwoReelsAreCompared(t *testing.T) {
	const fast, slow = 100, 150
	made := func(calls int, took uint64, extra bool) string {
		return madeReel(t, []string{"same", "slower", "new"}, func(w *reel.Writer) {
			var events []reel.Event
			at := uint64(2000)
			one := func(id uint32, took uint64) {
				events = append(events, reel.Entry(at, 0x10000, id), reel.Exit(at+took, 0x10000, id))
				at += took + 10
			}
			for range calls {
				one(1, 1000)
				one(2, took)
			}
			if extra {
				one(3, 70)
			}
			thread(t, w, "main", events...)
		})
	}
	c := serveReels(t, made(10, fast, false), made(30, slow, true))
	type answer struct {
		Functions []changeJSON `json:"functions"`
	}
	got := ask[answer](c, "diff").Functions
	if len(got) != 3 || got[0].Name != "slower" || got[0].SlowerNS != 30*(slow-fast) || got[0].DeltaSelfNS != 30*slow-10*fast || got[0].A.Calls != 10 || got[0].B.Calls != 30 {
		t.Errorf("%+v", got[0])
	}
	if got[1].Name != "new" || got[1].SlowerNS != 70 || got[1].A != nil || got[2].Name != "same" || got[2].SlowerNS != 0 {
		t.Errorf("%+v, %+v", got[1], got[2])
	}
	for i, calls := range []uint64{20, 61} {
		if l := ask[[]laneJSON](c, fmt.Sprintf("lanes?reel=%d", i)); l[0].Calls != calls {
			t.Errorf("reel %d: %+v", i, l)
		}
	}
}

func TestFunctionsAreFoundInTheirSource(t *testing.T) {
	realtest.Need(t, realtest.GCC)
	target := realtest.Build(t, "threads", "-Wl,--build-id")
	path := recordCommand(t, "-f", "counted_*", "--", target, "fixed", "2", "50")
	c := serveReels(t, path)
	found := ask[struct{ Functions []foundJSON }](c, "find?q=counted_A")
	if len(found.Functions) != 1 || found.Functions[0].Calls == 0 {
		t.Fatalf("%+v", found)
	}
	for _, f := range reported(t, path) {
		if f.Name == "counted_a" && f.Calls != found.Functions[0].Calls {
			t.Errorf("found with %d calls, reported with %d", found.Functions[0].Calls, f.Calls)
		}
	}
	id := fmt.Sprint(found.Functions[0].ID)
	n := until(c, "names?ids="+id, func(n map[string]nameJSON) bool { return !n[id].Pending })[id]
	source, err := os.ReadFile(filepath.Join(realtest.Root(), "testdata/targets/threads.c"))
	realtest.Must(t, err)
	before, _, _ := strings.Cut(string(source), "counted_a(uint64_t x)\n{")
	defined := uint32(strings.Count(before, "\n") + 1)
	// What the first instruction is of may be the first statement's line.
	if filepath.Base(n.File) != "threads.c" || n.Line < defined || n.Line > defined+2 {
		t.Errorf("%+v; it is defined in line %d", n, defined)
	}
}

func TestFilesThatAreNotTheRecordedOnesNameNothing(t *testing.T) {
	realtest.Need(t, realtest.GCC)
	target := realtest.Build(t, "threads", "-Wl,--build-id")
	fifo := filepath.Join(t.TempDir(), "fifo")
	realtest.Must(t, syscall.Mkfifo(fifo, 0o600))
	for _, im := range []reel.Image{{Path: target, ID: "0123456789abcdef"}, {Path: target}, {Path: "relative", ID: "00ff"}, {Path: fifo, ID: "00ff"}, {Path: "/dev/zero", ID: "00ff"}, {Path: "/proc/self/mem", ID: "../../x"}} {
		path := filepath.Join(t.TempDir(), "made.reel")
		w, err := reel.Create(path, reel.Header{}, reel.Options{})
		realtest.Must(t, err)
		image, err := w.AddImage(im)
		realtest.Must(t, err)
		_, err = w.AddFunctions([]reel.Function{{Name: "f", Image: image, Addr: 0x1200}})
		realtest.Must(t, err)
		realtest.Must(t, w.Close())
		n := until(serveReels(t, path), "names?ids=1", func(n map[string]nameJSON) bool { return !n["1"].Pending })["1"]
		if n.File != "" || n.Line != 0 {
			t.Errorf("%+v: %+v", im, n)
		}
	}
}

func TestGlobsAndTextsFindNames(t *testing.T) {
	for _, k := range []struct {
		text, name string
		want       bool
	}{
		{"foo", "a::Foo(int)", true}, {"foo", "bar", false}, {"", "anything", true}, {"foo*", "foobar", true}, {"foo*", "a foo", false}, {"*foo", "a foo", true},
		{"f?o", "fxo", true}, {"f?o", "fo", false}, {"*a*b*c*", "xaxbxcx", true}, {"*a*b*c*", "xcxbxax", false}, {"*", "", true}, {"?", "", false}, {"a[b]*", "a[b]c", true}, {"**", "x", true},
	} {
		if got := newMatcher(k.text)(strings.ToLower(k.name)); got != k.want {
			t.Errorf("%q finds %q: %v", k.text, k.name, got)
		}
	}
}

func TestBucketsFollowEachOther(t *testing.T) {
	for i := range buckets {
		if got := bucketOf(bucketStart(i)); got != i {
			t.Fatalf("bucket %d begins at %d, which is of bucket %d", i, bucketStart(i), got)
		}
		if i > 0 && bucketOf(bucketStart(i)-1) != i-1 {
			t.Fatalf("what is just below %d is of bucket %d, not %d", bucketStart(i), bucketOf(bucketStart(i)-1), i-1)
		}
	}
	if bucketOf(1<<64-1) != buckets-1 {
		t.Errorf("the last of %d buckets is %d", buckets, bucketOf(1<<64-1))
	}
}
