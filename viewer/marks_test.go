package viewer

import (
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/callreel/callreel/internal/madereel"
	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// markReel is a reel of two threads with marks of every kind, and a pause.
func markReel(t testing.TB) string {
	return madeReel(t, []string{"work", "inner"}, func(w *reel.Writer) {
		madereel.AddMarkers(t, w)
		a := thread(t, w, "first", reel.Entry(1000, 0x10000, 1), reel.Entry(2000, 0xff00, 2), reel.Exit(3000, 0xff00, 2), reel.Exit(90_000, 0x10000, 1))
		var m madereel.Marks
		m.At(1500, madereel.MarkRequestDone, madereel.Number(7)) // of one that began before
		for i := range uint64(10) {
			at := 10_000 + 5000*i
			m.At(at, madereel.MarkRequest, madereel.Text(fmt.Sprintf("/%d", i)), madereel.Number(100*i))
			m.At(at+100, madereel.MarkBegin, madereel.Text("parse"))
			m.At(at+150, madereel.MarkNote, madereel.Text("half way"))
			m.At(at+200, madereel.MarkEnd)
			m.At(at+300, madereel.MarkJob, madereel.Number(i))
			m.At(at+400, madereel.MarkSend, madereel.Number(i))
			m.At(at+500, madereel.MarkQueue, madereel.Number(i))
			m.At(at+1000+100*i, madereel.MarkRequestDone, madereel.Number(200+i))
		}
		m.At(80_000, madereel.MarkRequest, madereel.Text("/last"), madereel.Number(1))
		m.Write(t, a)
		b := thread(t, w, "second", reel.Entry(1000, 0x10000, 1), reel.Exit(95_000, 0x10000, 1))
		var o madereel.Marks
		for i := range uint64(10) {
			at := 10_000 + 5000*i
			o.At(at+2000, madereel.MarkReceive, madereel.Number(i))
			o.At(at+2500, madereel.MarkJobStep, madereel.Number(i))
			o.At(at+2600, madereel.MarkLoad, madereel.Number(math.Float64bits(float64(i)/4)))
			o.At(at+2700, madereel.MarkTick)
		}
		for i := range uint64(9) {
			o.At(70_000+i, madereel.MarkJobEnd, madereel.Number(i))
		}
		o.Write(t, b)
		realtest.Must(t, w.Pause(reel.Pause{From: 85_000, To: 88_000, By: "command"}))
		realtest.Must(t, w.Pause(reel.Pause{From: 94_000, By: "page"}))
	})
}

func (c *client) marked() marksJSON {
	c.t.Helper()
	return until(c, "marks", func(m marksJSON) bool { return m.State != "pending" })
}

func TestWhatTheProgramSaidIsAnswered(t *testing.T) {
	c := serveReels(t, markReel(t))
	m := c.marked()
	if m.State != "ready" || len(m.Lanes) != 2 || m.Lanes[0] != [4]uint64{0, 2, 22, 10} || m.Lanes[1] != [4]uint64{1, 0, 0, 10} || m.Flows != 10 || m.Left != 0 {
		t.Errorf("%+v", m)
	}
	if len(m.Tracks) != 3 || len(m.Pauses) != 2 || m.Pauses[0] != (pauseJSON{84_000, 87_000, "command", 0, false}) || !m.Pauses[1].Open || m.Pauses[1].FromNS != 93_000 || m.Pauses[1].ToNS != 94_000 {
		t.Errorf("tracks %+v, pauses %+v", m.Tracks, m.Pauses)
	}
	kinds := map[string]trackJSON{}
	for _, k := range m.Tracks {
		kinds[k.Name] = k
	}
	if k := kinds["queue"]; k.Kind != "counter" || *k.Min != 0 || *k.Max != 9 || *k.Last != 9 || k.Count != 10 {
		t.Errorf("%+v", k)
	}
	if k := kinds["job"]; k.Kind != "async" || k.Rows != 10 || k.Count != 10 || k.Category != "made" {
		t.Errorf("%+v", k)
	}
	v := decodeMarks(t, c.bytes(fmt.Sprintf("view?from=0&to=95000&width=1000&lanes=0:0:2&spans=0:0:9,1:0:9,%d:0:20,%d:0:1,%d:0:1", kinds["job"].ID, kinds["queue"].ID, kinds["load"].ID)))
	for key, want := range map[markRow]int{
		{0, spanRow}: 12, {0, spanRow + 1}: 10, {0, instantRow}: 10, {1, instantRow}: 10, {kinds["job"].ID, spanRow}: 1, {kinds["job"].ID, spanRow + 9}: 1,
		{kinds["job"].ID, stepRow}: 1, {kinds["queue"].ID, counterRow}: 10, {kinds["load"].ID, counterRow}: 10,
	} {
		if v[key] != want {
			t.Errorf("row %x of lane %x has %d, not %d; there are %v", key.row, key.lane, v[key], want, v)
		}
	}
	x := ask[*markJSON](c, "mark?kind=span&lane=0&row=0&at=14500")
	if x == nil || x.Name != "request" || x.StartNS != 14_000 || x.DurationNS != 1100 || len(x.Arguments) != 2 || x.Arguments[0].Value != "/1" || len(x.Results) != 1 || x.Results[0].Value != "201" {
		t.Fatalf("%+v", x)
	}
	if a := x.Among; a.Count != 12 || a.Complete != 10 || a.Shorter != 1 || a.MaxNS != 1900 || a.MinNS != 1000 || a.P50NS < 1350 || a.P50NS > 1450 {
		t.Errorf("%+v", a)
	}
	if len(x.Flows) != 1 || *x.Flows[0].FromLane != 0 || *x.Flows[0].ToLane != 1 || x.Flows[0].FromNS != 14_400 || x.Flows[0].ToNS != 16_000 {
		t.Errorf("%+v", x.Flows)
	}
	if x := ask[*markJSON](c, "mark?kind=span&lane=0&row=0&at=79500"); x == nil || !x.Unfinished || x.StartNS != 79_000 || x.DurationNS != 15_000 {
		t.Errorf("%+v", x)
	}
	if x := ask[*markJSON](c, "mark?kind=span&lane=0&row=0&at=300"); x == nil || !x.Unstarted || len(x.Results) != 1 {
		t.Errorf("%+v", x)
	}
	if x := ask[*markJSON](c, fmt.Sprintf("mark?kind=span&lane=%d&row=3&at=40000", kinds["job"].ID)); x == nil || x.Kind != "async" || *x.ID != "3" || len(x.Steps) != 1 || len(x.Arguments) != 1 || len(x.Results) != 1 {
		t.Errorf("%+v", x)
	}
	if x := ask[*markJSON](c, "mark?kind=instant&lane=0&at=14140&near=20"); x == nil || x.Name != "note" || x.Arguments[0].Value != "half way" {
		t.Errorf("%+v", x)
	}
	if x := ask[*markJSON](c, fmt.Sprintf("mark?kind=value&lane=%d&at=40000", kinds["queue"].ID)); x == nil || *x.Value != 6 || x.Kind != "value" || len(x.Arguments) != 1 {
		t.Errorf("%+v", x)
	}
	if x := ask[*markJSON](c, "mark?kind=span&lane=0&row=0&at=13500"); x != nil {
		t.Errorf("between two spans is %+v", x)
	}
	if f := ask[struct{ Flows []flowJSON }](c, "flows?from=0&to=20000"); len(f.Flows) != 3 {
		t.Errorf("%+v", f)
	}
	if f := ask[struct {
		Flows []flowJSON
		More  bool
	}](c, "flows?limit=3"); len(f.Flows) != 0 || !f.More {
		t.Errorf("%+v", f)
	}
}

func TestMarksAreSummedUpInARange(t *testing.T) {
	c := serveReels(t, markReel(t))
	c.marked()
	type answer struct {
		Spans    []spanSumJSON
		Counters []counterSumJSON
		Instants []instantSumJSON
	}
	a := ask[answer](c, "marktable?from=14500&to=24500")
	if len(a.Spans) != 3 || len(a.Counters) != 2 || len(a.Instants) != 2 {
		t.Fatalf("%+v", a)
	}
	for _, s := range a.Spans {
		switch s.Name {
		case "request":
			if s.Count != 3 || s.TotalNS != 600+1200+500 || s.MaxNS != 1300 {
				t.Errorf("%+v", s)
			}
		case "job":
			if s.Count != 4 || !s.Async {
				t.Errorf("%+v", s)
			}
		}
	}
	for _, s := range a.Counters {
		if s.Name == "queue" && (s.Values != 2 || s.Min != 1 || s.Max != 2 || s.First != 1 || s.Last != 2 || s.Mean != 1.5) {
			t.Errorf("%+v", s)
		}
	}
}

func TestMarksAreFoundOneAfterTheOther(t *testing.T) {
	c := serveReels(t, markReel(t))
	c.marked()
	for _, want := range []struct {
		text  string
		count int
	}{{"request", 12}, {"PARSE", 10}, {"job", 10}, {"queue", 10}, {"n?te", 10}, {"*", 72}, {"nothing", 0}} {
		if f := ask[struct{ Count int }](c, "findmarks?q="+want.text); f.Count != want.count {
			t.Errorf("%s: %d are found", want.text, f.Count)
		}
		for _, dir := range []int{1, -1} {
			n := 0
			request := fmt.Sprintf("nextmark?q=%s&dir=%d&kind=before&at=0", want.text, dir)
			if dir < 0 {
				request = fmt.Sprintf("nextmark?q=%s&dir=%d&kind=after&at=1000000", want.text, dir)
			}
			last := uint64(0)
			for x := ask[*markJSON](c, request); x != nil && n <= want.count; n++ {
				if n > 0 && (dir > 0 && x.StartNS < last || dir < 0 && x.StartNS > last) {
					t.Fatalf("%s: %d after %d", want.text, x.StartNS, last)
				}
				last = x.StartNS
				x = ask[*markJSON](c, fmt.Sprintf("nextmark?q=%s&dir=%d&kind=%s&lane=%d&row=%d&at=%d", want.text, dir, x.Kind, x.Lane, x.Row, x.StartNS))
			}
			if n != want.count {
				t.Errorf("%s, %d: %d were gone through, not %d", want.text, dir, n, want.count)
			}
		}
	}
}

type markRow struct{ lane, row uint32 }

// decodeMarks counts what is in the rows of an answer of api/view, by what its comment says.
func decodeMarks(t *testing.T, b []byte) map[markRow]int {
	t.Helper()
	rows := map[markRow]int{}
	for _, k := range decodeView(t, b) {
		rows[markRow{k.lane, k.row}] = max(len(k.start), k.columns)
	}
	return rows
}

func TestMarksOfAReelThatGrowsAreFollowed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "grows.reel")
	w := newReel(t, path, []string{"work"})
	madereel.AddMarkers(t, w)
	tw := thread(t, w, "main", reel.Entry(2000, 0x10000, 1), reel.Exit(2500, 0x10000, 1))
	realtest.Must(t, w.Flush())
	c := serve(t, Options{Paths: []string{path}, Recording: true})
	if m := c.marked(); m.State != "none" {
		t.Errorf("%+v", m)
	}
	var m madereel.Marks
	m.At(3000, madereel.MarkRequest, madereel.Text("/"), madereel.Number(1)).At(4000, madereel.MarkRequestDone, madereel.Number(2)).Write(t, tw)
	realtest.Must(t, tw.Append([]reel.Event{reel.Entry(5000, 0x10000, 1), reel.Exit(6000, 0x10000, 1)}))
	realtest.Must(t, w.Flush())
	until(c, "marks", func(m marksJSON) bool { return len(m.Lanes) == 1 && m.Lanes[0] == [4]uint64{0, 1, 1, 0} })
	m = madereel.Marks{}
	m.At(7000, madereel.MarkTick).Write(t, tw)
	realtest.Must(t, w.Pause(reel.Pause{From: 7500, To: 8000}))
	realtest.Must(t, w.Close())
	c.Ended()
	until(c, "marks", func(m marksJSON) bool {
		return len(m.Lanes) == 1 && m.Lanes[0] == [4]uint64{0, 1, 1, 1} && len(m.Pauses) == 1
	})
}
