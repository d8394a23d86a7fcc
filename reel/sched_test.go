package reel

import (
	"bytes"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"testing"
)

// schedStream is what a thread might have been said to do, from a tick on.
func schedStream(rng *rand.Rand, n int, at uint64, wakers bool) []SchedEvent {
	var out []SchedEvent
	add := func(e SchedEvent, most float64) {
		at += uint64(rng.ExpFloat64() * most)
		e.Time = at
		out = append(out, e)
	}
	for len(out) < n {
		add(SchedEvent{Kind: SchedIn, CPU: int32(rng.IntN(2))}, 3_000)
		for rng.IntN(20) == 0 {
			add(SchedEvent{Kind: SchedMinorFault, Address: 0x7f00_0000_0000 + uint64(rng.IntN(1<<20))}, 10_000)
		}
		switch rng.IntN(100) {
		case 0:
			add(SchedEvent{Kind: SchedLost}, 1e6)
			continue
		case 1, 2, 3, 4, 5:
			add(SchedEvent{Kind: SchedPreempted}, 5e6)
			continue
		case 6:
			add(SchedEvent{Kind: SchedUninterruptible}, 50_000)
		default:
			add(SchedEvent{Kind: SchedBlocked}, 50_000)
		}
		if wakers {
			add(SchedEvent{Kind: SchedWoken, Waker: [...]int32{WakerKernel, 4711, 4712}[rng.IntN(3)]}, 250_000)
		}
	}
	return out
}

// intervals is what a StateReader has to say of words, said differently.
func intervals(words []SchedEvent, end uint64, shift uint) []StateInterval {
	var out []StateInterval
	var cur StateInterval
	began := false
	next := func(s StateInterval) {
		if began && s.From > cur.From {
			cur.To = s.From
			out = append(out, cur)
		}
		cur, began = s, true
	}
	for _, e := range words {
		t := e.Time >> shift << shift
		switch e.Kind {
		case SchedIn:
			next(StateInterval{From: t, State: StateRunning, CPU: e.CPU})
		case SchedPreempted:
			next(StateInterval{From: t, State: StateReady, CPU: -1, Preempted: true})
		case SchedBlocked, SchedUninterruptible:
			next(StateInterval{From: t, State: StateBlocked, CPU: -1, Uninterruptible: e.Kind == SchedUninterruptible})
		case SchedWoken:
			cur.Waker = e.Waker
			next(StateInterval{From: t, State: StateReady, CPU: -1})
		case SchedLost:
			cur = StateInterval{From: cur.From, CPU: -1}
			next(StateInterval{From: t, CPU: -1})
		}
	}
	next(StateInterval{From: end})
	return out
}

func all(r *StateReader) []StateInterval {
	var out []StateInterval
	for s, ok := r.Next(); ok; s, ok = r.Next() {
		out = append(out, s)
	}
	return out
}

const schedBase = 1 << 40

// schedReel writes a reel with words on some threads, bit by bit as a recorder does.
func schedReel(t testing.TB, rate uint64, known uint64, threads ...[]SchedEvent) (*File, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "states.reel")
	w, err := Create(path, Header{Clock: Clock{TicksPerSecond: rate, BaseTick: schedBase, BaseUnixNS: 1}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Scheduling(Scheduling{Source: "bpf", Reason: "none", WakeUps: true, Faults: true}); err != nil {
		t.Fatal(err)
	}
	rest := make([][]SchedEvent, len(threads))
	writers := make([]*ThreadWriter, len(threads))
	for i, words := range threads {
		rest[i] = words
		if writers[i], err = w.Thread(Thread{TID: 100 + i}); err != nil {
			t.Fatal(err)
		}
	}
	for more := true; more; {
		more = false
		for i := range rest {
			n := min(len(rest[i]), 100)
			if err := writers[i].Sched(rest[i][:n]); err != nil {
				t.Fatal(err)
			}
			rest[i] = rest[i][n:]
			more = more || len(rest[i]) > 0
		}
	}
	w.SchedKnown(known)
	if known > 0 { // the recording's end
		if err := w.ClockPair(known, 2); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f, path
}

func TestStatesOfThreadsComeBackAsTheyWere(t *testing.T) {
	for _, rate := range []uint64{0, 1e9, 2_600_000_000, 24_000_000} {
		rng := rand.New(rand.NewPCG(rate, 1))
		var threads [][]SchedEvent
		for range 5 {
			threads = append(threads, schedStream(rng, 1+rng.IntN(9_000), schedBase+rng.Uint64N(1e6), rng.IntN(2) == 0))
		}
		known := uint64(schedBase + 1e12)
		f, _ := schedReel(t, rate, known, threads...)
		shift := schedQuantum(rate)
		for i, words := range threads {
			want := intervals(words, known, shift)
			if got := all(f.States(uint32(i + 1))); !reflect.DeepEqual(got, want) {
				for k := range min(len(got), len(want)) {
					if got[k] != want[k] {
						t.Fatalf("rate %d, thread %d, interval %d of %d: %+v, want %+v", rate, i, k, len(want), got[k], want[k])
					}
				}
				t.Fatalf("rate %d, thread %d: %d intervals, want %d", rate, i, len(got), len(want))
			}
			for range 200 {
				k := rng.IntN(len(want))
				at := want[k].From + rng.Uint64N(want[k].To-want[k].From)
				r := f.States(uint32(i + 1))
				r.Seek(at)
				for ; k < min(len(want), k+5000); k++ {
					s, ok := r.Next()
					if !ok || s != want[k] {
						t.Fatalf("rate %d, thread %d: behind Seek(%d): %+v (%v), want %+v", rate, i, at, s, ok, want[k])
					}
				}
			}
			var faults int
			for _, e := range words {
				if e.Kind == SchedMinorFault {
					faults++
				}
			}
			f.Faults(uint32(i+1), 0, known, func(x Fault) bool {
				faults--
				return true
			})
			if faults != 0 {
				t.Errorf("rate %d, thread %d: %d faults too few", rate, i, faults)
			}
		}
	}
}

// A switch is a thread's leaving of a processor, or its coming onto one.
func TestASwitchTakesAtMostFourBytes(t *testing.T) {
	for _, wakers := range []bool{false, true} {
		words := schedStream(rand.New(rand.NewPCG(7, 1)), 60_000, schedBase, wakers)
		switches, extra := 0, 0
		for _, e := range words {
			switch e.Kind {
			case SchedIn, SchedBlocked, SchedUninterruptible, SchedPreempted:
				switches++
			case SchedMinorFault:
				extra++
			}
		}
		f, _ := schedReel(t, 2_600_000_000, 0, words)
		bytes := float64(f.Size()) / float64(switches)
		t.Logf("wake-ups %v: %.2f bytes a switch, %d switches, %d faults", wakers, bytes, switches, extra)
		if bytes > 4 {
			t.Errorf("wake-ups %v: %.2f bytes a switch", wakers, bytes)
		}
	}
}

func TestStatesAroundADamagedChunkAreUnknown(t *testing.T) {
	words := schedStream(rand.New(rand.NewPCG(3, 1)), 3*maxSched, schedBase, true)
	whole, path := schedReel(t, 1e9, 0, words)
	want := all(whole.States(1))
	data := bytes.Clone(whole.data)
	var chunks []indexEntry
	entries, _ := indexed(data)
	for _, e := range entries {
		if e.kind == KindSched {
			chunks = append(chunks, e)
		}
	}
	if len(chunks) < 3 {
		t.Fatalf("%d chunks of states", len(chunks))
	}
	data[chunks[1].offset+frameSize+100] ^= 1
	f, err := Parse(path, data)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Damage()) == 0 {
		t.Error("damage is not told")
	}
	got := all(f.States(1))
	at := got[0].From
	known := map[StateInterval]bool{}
	for _, s := range want {
		known[s] = true
	}
	strange := 0
	for _, s := range got {
		if s.From != at {
			t.Fatalf("a hole before %+v", s)
		}
		at = s.To
		if !known[s] {
			strange++
		}
	}
	if strange != 2 && strange != 1 { // what is lost, and the state that was cut by it
		t.Errorf("%d intervals are not among those of the undamaged reel", strange)
	}
	if at != want[len(want)-1].To {
		t.Errorf("states end at %d, want %d", at, want[len(want)-1].To)
	}
}

func TestWaitsAndSumsComeBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "waits.reel")
	w, err := Create(path, Header{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	a, _ := w.Thread(Thread{TID: 1})
	b, _ := w.Thread(Thread{TID: 2})
	of := map[*ThreadWriter][]Wait{}
	for i := range uint64(10_000) {
		tw := []*ThreadWriter{a, b}[i%2]
		x := Wait{Time: 100 + i, Syscall: int32(i%3) - 1, Args: [3]uint64{i, 1 << 63, 0}, Object: []string{"", "/a", "pipe:[1]"}[i%3]}
		if i > 6000 {
			x.Lock, x.Mutex = i%5*0x1000, i%7*1<<60
			if i%4 == 0 {
				x.Ender, x.EndedAt, x.EndedBy = 1, x.Time+i-7000, EndDescriptor
			}
		}
		of[tw] = append(of[tw], x)
		if err := tw.Waits([]Wait{x}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.SchedSums(SchedSums{Running: 5, Ready: 7}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if d := f.Damage(); d != nil {
		t.Error(d)
	}
	for tw, want := range of {
		if got := f.Waits(tw.Key()); !reflect.DeepEqual(got, want) {
			t.Errorf("thread %d: %d waits, want %d", tw.Key(), len(got), len(want))
		}
	}
	if s, ok := f.SchedSums(2); !ok || s != (SchedSums{5, 7}) {
		t.Error(s, ok)
	}
	if _, ok := f.SchedSums(1); ok {
		t.Error("sums that nobody gave")
	}
}

func TestCallsAreSplitByWhatTheirThreadDid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calls.reel")
	w, err := Create(path, Header{Clock: Clock{TicksPerSecond: 1e9}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	tw, _ := w.Thread(Thread{TID: 1})
	// f runs 100..900 and calls g from 200 to 600, in which it waits from 300 to 500 and is ready until 550.
	err = tw.Append([]Event{Entry(160, 0x1000, 1), Entry(208, 0xf00, 2), Exit(608, 0xf00, 2), Exit(912, 0x1000, 1)})
	if err == nil {
		err = tw.Sched([]SchedEvent{{Time: 96, Kind: SchedIn}, {Time: 304, Kind: SchedBlocked}, {Time: 512, Kind: SchedWoken}, {Time: 560, Kind: SchedIn},
			{Time: 800, Kind: SchedPreempted}, {Time: 848, Kind: SchedIn}})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var p Pairer
	got := map[uint32][2]StateTimes{}
	p.OnCall = func(c *Call) { got[c.Func] = [2]StateTimes{c.States, c.SelfStates()} }
	f.ReadyPairer(&p, 1)
	f.PairStates(&p, 1)
	f.ReadThread(1, func(events []Event, lost bool) bool {
		p.Push(events)
		return true
	})
	p.Finish(1000)
	g := StateTimes{Running: 96 + 48, Ready: 48, Blocked: 208}
	own := StateTimes{Running: 48 + 192 + 0, Ready: 48}
	// Behind the last word of the scheduler nothing is known.
	want := map[uint32][2]StateTimes{2: {g, g}, 1: {g.Plus(own), own}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

func FuzzStates(f *testing.F) {
	for _, n := range []int{1, 30, 3000} {
		file, _ := schedReel(f, 1e9, schedBase+1e9, schedStream(rand.New(rand.NewPCG(9, 1)), n, schedBase, true), schedStream(rand.New(rand.NewPCG(8, 1)), n, schedBase, false))
		entries, _ := indexed(file.data)
		for _, e := range entries {
			if e.kind == KindSched {
				f.Add(file.data[e.offset+frameSize : e.offset+frameSize+int64(e.length)])
			}
		}
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		file := &File{byKey: map[uint32]int{}, known: 1 << 50}
		for key := range uint32(3) {
			file.thread(key + 1)
		}
		_ = file.loadSched(&indexEntry{}, payload)
		for key := range uint32(3) {
			last, n := uint64(0), 0
			r := file.States(key + 1)
			for s, ok := r.Next(); ok; s, ok = r.Next() {
				if s.To <= s.From || s.From < last || s.State > StateBlocked {
					t.Fatalf("%+v behind %d", s, last)
				}
				if last = s.To; n > 8*len(payload)+8 {
					t.Fatal("endless")
				}
				n++
			}
			r.Seek(last / 2)
			r.Next()
			file.Faults(key+1, 0, ^uint64(0), func(Fault) bool { return true })
		}
	})
}

func BenchmarkStates(b *testing.B) {
	f, _ := schedReel(b, 2_600_000_000, 0, schedStream(rand.New(rand.NewPCG(7, 1)), 100_000, schedBase, true))
	n := 0
	for b.Loop() {
		r := f.States(1)
		for _, ok := r.Next(); ok; _, ok = r.Next() {
			n++
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/interval")
}
