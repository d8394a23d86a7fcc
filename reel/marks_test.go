package reel

import (
	"bytes"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

var testMarkers = []Marker{
	{Provider: "db", Name: "query__start", Title: "query", Pair: "query", Kind: MarkBegin, Arguments: []Argument{{Name: "text", Kind: ArgumentString}, {Name: "n", Kind: ArgumentInt}}, TitleArg: -1, IDArg: -1, ValueArg: -1},
	{Provider: "db", Name: "query__done", Title: "query", Pair: "query", Kind: MarkEnd, Arguments: []Argument{{Name: "rows", Kind: ArgumentUint}}, TitleArg: -1, IDArg: -1, ValueArg: -1},
	{Provider: "db", Name: "lock", Title: "lock", Kind: MarkInstant, Image: 1, Addr: 0x1234, TitleArg: -1, IDArg: -1, ValueArg: -1},
	{Provider: "callreel", Name: "begin_s", Kind: MarkBegin, Arguments: []Argument{{Name: "title", Kind: ArgumentString}}, TitleArg: 0, IDArg: -1, ValueArg: -1},
	{Provider: "callreel", Name: "end", Kind: MarkEnd, TitleArg: -1, IDArg: -1, ValueArg: -1},
	{Provider: "callreel", Name: "async_begin__io", Title: "io", Pair: "io", Category: "disk", Kind: MarkAsyncBegin, Arguments: []Argument{{Name: "id", Kind: ArgumentUint}}, TitleArg: -1, IDArg: 0, ValueArg: -1},
	{Provider: "callreel", Name: "async_step__io", Title: "io", Pair: "io", Kind: MarkAsyncStep, Arguments: []Argument{{Name: "id", Kind: ArgumentUint}}, TitleArg: -1, IDArg: 0, ValueArg: -1},
	{Provider: "callreel", Name: "async_end__io", Title: "io", Pair: "io", Kind: MarkAsyncEnd, Arguments: []Argument{{Name: "id", Kind: ArgumentUint}}, TitleArg: -1, IDArg: 0, ValueArg: -1},
	{Provider: "callreel", Name: "flow_out__job", Title: "job", Pair: "job", Kind: MarkFlowOut, Arguments: []Argument{{Name: "id", Kind: ArgumentUint}}, TitleArg: -1, IDArg: 0, ValueArg: -1},
	{Provider: "callreel", Name: "flow_in__job", Title: "job", Pair: "job", Kind: MarkFlowIn, Arguments: []Argument{{Name: "id", Kind: ArgumentUint}}, TitleArg: -1, IDArg: 0, ValueArg: -1},
	{Provider: "callreel", Name: "counter__queue", Title: "queue", Kind: MarkCounter, Arguments: []Argument{{Name: "value", Kind: ArgumentInt}}, TitleArg: -1, IDArg: -1, ValueArg: 0},
	{Provider: "callreel", Name: "end_s", Kind: MarkEnd, Arguments: []Argument{{Name: "title", Kind: ArgumentString}}, TitleArg: 0, IDArg: -1, ValueArg: -1},
}

const (
	markQuery = iota + 1
	markDone
	markLock
	markBeginS
	markEnd
	markAsyncBegin
	markAsyncStep
	markAsyncEnd
	markFlowOut
	markFlowIn
	markCounter
	markEndS
)

func number(v uint64) Value    { return Value{Bits: v} }
func text(s string) Value      { return Value{Bytes: []byte(s)} }
func cut(s string) Value       { return Value{Bytes: []byte(s), Cut: true} }
func state(s ValueState) Value { return Value{State: s} }

// markReel writes a reel with marks of threads with the keys 1, 2, ….
func markReel(t testing.TB, h Header, threads ...[]Mark) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "marks.reel")
	w, err := Create(name, h, Options{})
	realtest.Must(t, err)
	first, err := w.AddMarkers(testMarkers[:3])
	realtest.Must(t, err)
	second, err := w.AddMarkers(testMarkers[3:])
	realtest.Must(t, err)
	if first != 1 || second != 4 {
		t.Fatalf("IDs begin with %d and %d", first, second)
	}
	for i, marks := range threads {
		tw, err := w.Thread(Thread{TID: 100 + i, Process: 100, Name: "t"})
		realtest.Must(t, err)
		for len(marks) > 0 {
			n := min(len(marks), 1000)
			realtest.Must(t, tw.Marks(marks[:n]))
			marks = marks[n:]
		}
	}
	realtest.Must(t, w.Close())
	return name
}

var markHeader = Header{Clock: Clock{TicksPerSecond: 2_600_000_000, BaseTick: 1000, BaseUnixNS: 1}}

// rounded is a mark as it comes back.
func rounded(m Mark, first uint64) Mark {
	shift := markQuantum(markHeader.Clock.TicksPerSecond)
	m.Time = max(m.Time, first) >> shift << shift
	return m
}

func readMarks(f *File, thread uint32) (all []Mark) {
	r := f.Marks(thread)
	for m, ok := r.Next(); ok; m, ok = r.Next() {
		x := *m
		x.Values = append([]Value(nil), m.Values...)
		all = append(all, x)
	}
	return all
}

func TestMarksComeBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, goroutines := range []bool{false, true} {
		h := markHeader
		h.Goroutines = goroutines
		var want [][]Mark
		for range 2 {
			now := uint64(2000)
			var marks []Mark
			for range 30_000 {
				now += uint64(rng.ExpFloat64() * math.Exp(4+10*rng.Float64()))
				m := Mark{Time: now}
				if goroutines {
					m.Goroutine = uint64(rng.IntN(3))
				}
				switch rng.IntN(4) {
				case 0:
					m.Marker, m.Values = markQuery, []Value{[]Value{text("select 1"), text(""), cut("insert"), state(ValueNull), state(ValueUnreadable)}[rng.IntN(5)], number(rng.Uint64() >> rng.IntN(64))}
				case 1:
					m.Marker, m.Values = markDone, []Value{number(uint64(rng.IntN(10)))}
				case 2:
					m.Marker, m.Values = markCounter, []Value{number(rng.Uint64())}
				default:
					m.Marker = markLock
				}
				marks = append(marks, m)
			}
			want = append(want, marks)
		}
		f := open(t, markReel(t, h, want...))
		for i := range want {
			got := readMarks(f, uint32(i+1))
			if len(got) != len(want[i]) {
				t.Fatalf("%d marks of %d", len(got), len(want[i]))
			}
			for k := range got {
				w := rounded(want[i][k], 0)
				if len(w.Values) == 0 && len(got[k].Values) == 0 {
					got[k].Values, w.Values = nil, nil
				}
				if !reflect.DeepEqual(got[k], w) {
					t.Fatalf("mark %d is %+v, want %+v", k, got[k], w)
				}
			}
			for range 50 {
				at := want[i][rng.IntN(len(want[i]))].Time
				r := f.Marks(uint32(i + 1))
				r.Seek(at)
				m, ok := r.Next()
				n := 0
				for n < len(got) && got[n].Time < at {
					n++
				}
				if ok != (n < len(got)) || ok && m.Time != got[n].Time {
					t.Fatalf("behind tick %d comes %+v, want %d of %d", at, m, n, len(got))
				}
			}
		}
		if n := f.MarkCount(); n != 60_000 {
			t.Errorf("%d marks", n)
		}
		if d := f.Damage(); len(d) > 0 {
			t.Errorf("damage: %v", d)
		}
	}
}

// A mark without values takes at most three bytes, whether they come by the microsecond or by the millisecond.
func TestMarksAreSmall(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, mean := range []float64{500, 2600, 26_000, 2_600_000} { // 0.2 µs to 1 ms
		now := uint64(2000)
		var marks []Mark
		const n = 50_000
		for i := range n {
			now += uint64(mean * rng.ExpFloat64())
			marks = append(marks, Mark{Time: now, Marker: []uint32{markLock, markEnd}[i%2]})
		}
		empty := fileSize(t, markReel(t, markHeader, nil))
		size := fileSize(t, markReel(t, markHeader, marks)) - empty
		per := float64(size) / n
		t.Logf("%.0f ticks apart: %.2f bytes a mark", mean, per)
		if per > 3 {
			t.Errorf("%.2f bytes a mark that are %.0f ticks apart", per, mean)
		}
	}
}

func TestSpansFlowsAndCountersAreSummedUp(t *testing.T) {
	us := func(n uint64) uint64 { return 1000 + n*2600 }
	a := []Mark{
		{Time: us(1), Marker: markDone, Values: []Value{number(1)}}, // began before
		{Time: us(10), Marker: markQuery, Values: []Value{text("one"), number(1)}},
		{Time: us(20), Marker: markBeginS, Values: []Value{text("inner")}},
		{Time: us(22), Marker: markFlowOut, Values: []Value{number(7)}},
		{Time: us(30), Marker: markEnd},
		{Time: us(40), Marker: markDone, Values: []Value{number(3)}},
		{Time: us(41), Marker: markEnd}, // of nothing
		{Time: us(50), Marker: markAsyncBegin, Values: []Value{number(5)}},
		{Time: us(51), Marker: markAsyncBegin, Values: []Value{number(6)}},
		{Time: us(60), Marker: markQuery, Values: []Value{text("two"), number(1)}},
		{Time: us(61), Marker: markBeginS, Values: []Value{text("never ended")}},
		{Time: us(70), Marker: markDone, Values: []Value{number(3)}},
		{Time: us(80), Marker: markQuery, Values: []Value{text("one"), number(1)}}, // never ends
	}
	b := []Mark{
		{Time: us(25), Marker: markFlowIn, Values: []Value{number(7)}},
		{Time: us(26), Marker: markFlowIn, Values: []Value{number(8)}}, // from nowhere
		{Time: us(55), Marker: markAsyncStep, Values: []Value{number(5)}},
		{Time: us(65), Marker: markAsyncEnd, Values: []Value{number(5)}},
		{Time: us(66), Marker: markCounter, Values: []Value{number(2)}},
		{Time: us(76), Marker: markCounter, Values: []Value{number(^uint64(3))}},
		{Time: us(86), Marker: markCounter, Values: []Value{number(9)}},
		{Time: us(100), Marker: markLock},
	}
	f := open(t, markReel(t, markHeader, a, b))
	var spans []*Span
	p := NewSpanPairer(f)
	p.OnSpan = func(s *Span) { spans = append(spans, s) }
	var flows []*Flow
	p.OnFlow = func(x *Flow) { flows = append(flows, x) }
	f.AllMarks(func(thread uint32, m *Mark) bool { p.Push(thread, m); return true })
	p.Finish()
	type short struct {
		title                 string
		from, to              uint64
		depth, steps          int
		unstarted, unfinished bool
	}
	want := []short{{"query", 0, 1, 0, 0, true, false}, {"inner", 20, 30, 1, 0, false, false}, {"query", 10, 40, 0, 0, false, false}, {"io", 50, 65, 0, 1, false, false},
		{"query", 60, 70, 0, 0, false, false}, {"io", 51, 100, 0, 0, false, true}, {"never ended", 61, 70, 1, 0, false, true}, {"query", 80, 100, 0, 0, false, true}}
	var got []short
	micro := func(tick uint64) uint64 { return (tick - 1000 + 1300) / 2600 }
	for _, s := range spans {
		got = append(got, short{s.Title, micro(s.Begin), micro(s.End), s.Depth, len(s.Steps), s.Unstarted, s.Unfinished})
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("spans\n%+v, want\n%+v", got, want)
	}
	if len(flows) != 1 || flows[0].FromThread != 1 || flows[0].ToThread != 2 || micro(flows[0].From) != 22 || micro(flows[0].To) != 25 {
		t.Errorf("flows %+v", flows)
	}
	s := f.SummarizeMarks(MarkSummaryOptions{})
	if len(s.Spans) != 4 || s.Spans[0].Name != "io" || s.Spans[1].Name != "query" || s.Spans[1].Count != 4 || s.Spans[1].Complete != 2 || s.Spans[1].Max != 30_000 {
		t.Errorf("%+v", s.Spans)
	}
	if len(s.Counters) != 1 || s.Counters[0].Min != -4 || s.Counters[0].Max != 9 || s.Counters[0].Last != 9 || s.Counters[0].Count != 3 || math.Abs(s.Counters[0].Mean-7.0/3) > 1e-9 ||
		math.Abs(s.Counters[0].TimeMean-(20-40+9*14)/34.0) > 0.01 {
		t.Errorf("%+v", s.Counters)
	}
	if len(s.Instants) != 1 || s.Instants[0].Count != 1 || len(s.Flows) != 1 || s.Flows[0].Out != 1 || s.Flows[0].In != 1 || s.Flows[0].Max != 3000 {
		t.Errorf("%+v %+v", s.Instants, s.Flows)
	}
	by := f.SummarizeMarks(MarkSummaryOptions{By: "text"})
	seen := map[string]uint64{}
	for _, x := range by.Spans {
		seen[x.Name+"="+x.Value] = x.Count
	}
	if seen["query=one"] != 2 || seen["query=two"] != 1 || seen["query=?"] != 1 {
		t.Errorf("by text: %v", seen)
	}
}

func TestPausesComeBack(t *testing.T) {
	name := filepath.Join(t.TempDir(), "paused.reel")
	w, err := Create(name, markHeader, Options{})
	realtest.Must(t, err)
	want := []Pause{{From: 2000, To: 3000, By: "command"}, {From: 5000, By: "page", Process: 7}}
	for _, p := range []Pause{want[1], want[0]} {
		realtest.Must(t, w.Pause(p))
	}
	realtest.Must(t, w.Close())
	if got := open(t, name).Pauses(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Whatever a file says of marks, reading it ends, and harms nothing.
func FuzzMarks(f *testing.F) {
	chunk := func(kind ChunkKind, thread, count uint32, payload []byte) []byte {
		b := append(make([]byte, frameSize), payload...)
		x := frame{kind: kind, thread: thread, count: count, first: 1000, last: 1 << 40}
		x.put(b, payload)
		return b
	}
	head := chunk(KindHeader, 0, 1, appendHeader(nil, &markHeader))
	markers := appendMarkers(nil, 1, testMarkers)
	var marks threadMarks
	marks.coder = newMarkCoder(3, 0, false)
	for i := range 40 {
		m := Mark{Time: uint64(i * 1000), Marker: markQuery, Values: []Value{text("x"), number(uint64(i))}}
		marks.coder.append(&marks.bits, &m)
		marks.values = marks.coder.appendValues(marks.values, &m)
	}
	coded := marks.bits.finish()
	payload := append(appendUvarint(appendUvarint(appendUvarint(nil, 3), 0), uint64(len(coded))), append(coded, marks.values...)...)
	f.Add(markers, uint32(len(testMarkers)), payload, uint32(40))
	f.Add([]byte{1}, uint32(1), []byte{3, 0, 1, 255}, uint32(4))
	f.Fuzz(func(t *testing.T, markers []byte, nMarkers uint32, marks []byte, nMarks uint32) {
		data := bytes.Join([][]byte{head, chunk(KindMarkers, 0, nMarkers, markers), chunk(KindMarks, 1, nMarks, marks)}, nil)
		r, err := Parse("fuzz", data)
		if err != nil {
			t.Skip(err)
		}
		n := uint64(0)
		last := uint64(0)
		x := r.Marks(1)
		for m, ok := x.Next(); ok; m, ok = x.Next() {
			if n++; m.Time < last {
				t.Fatalf("time goes back from %d to %d", last, m.Time)
			}
			last = m.Time
		}
		if n > uint64(nMarks) {
			t.Fatalf("%d marks of %d", n, nMarks)
		}
		x.Seek(last / 2)
		x.Next()
		r.SummarizeMarks(MarkSummaryOptions{By: "text"})
	})
}

func fileSize(t *testing.T, name string) int64 {
	t.Helper()
	info, err := os.Stat(name)
	realtest.Must(t, err)
	return info.Size()
}
