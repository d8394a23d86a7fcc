package why

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/callreel/callreel/internal/madereel"
	"github.com/callreel/callreel/reel"
)

// anything lets a thread do calls at random, some recursive, with waits and preemptions in between.
func anything(rng *rand.Rand, r *madereel.Run, depth int) {
	for range rng.IntN(5) {
		switch n := rng.IntN(12); {
		case n < 6 && depth < 7:
			r.Call(1+rng.Uint32N(uint32(len(functionNames))), func() { anything(rng, r, depth+1) })
		case n < 9:
			r.Work(uint64(rng.ExpFloat64() * 20 * µs))
		case n < 10:
			r.Preempted(uint64(rng.ExpFloat64() * 50 * µs))
		default:
			r.Wait(uint64(rng.ExpFloat64()*100*µs), [...]int32{reel.WakerKernel, 0, 101, 102}[rng.IntN(4)])
		}
	}
	r.Work(1)
}

// Whatever calls do, the parts of what one took longer add up to it, and the times in its tree to what it took.
func TestPartsAddUp(t *testing.T) {
	for seed := range uint64(30) {
		p := newProgram(t, seed%3 != 0)
		rng := rand.New(rand.NewPCG(seed, 7))
		for k := range 2 {
			r := madereel.NewRun(baseTick + uint64(k))
			for range 1 + rng.IntN(60) {
				r.Call(fnHandle, func() { anything(rng, r, 0) })
				r.Wait(uint64(rng.ExpFloat64()*50*µs), reel.WakerKernel)
			}
			p.thread("worker-1", r)
		}
		f := p.open()
		got := explain(t, f, Options{Slowest: 20}) // which checks the sums
		for i := range got.Calls {
			id, err := ParseCallID(got.Calls[i].ID)
			if err != nil {
				t.Fatal(err)
			}
			c, err := collect(context.Background(), f, []uint32{fnHandle}, 0, &id, 1)
			if err != nil || c.found[fnHandle].asked == nil {
				t.Fatalf("call %v isn't found: %v", id, err)
			}
			r := *c.found[fnHandle].asked
			tree := replay(context.Background(), f, []ref{r}, replayed{limit: maxNodes}, 1)[0]
			if s := tree.total(); s.sum() != r.duration() {
				t.Errorf("seed %d, call %v: %d ticks of %d are in its tree", seed, id, s.sum(), r.duration())
			}
			for k := range tree.nodes { // no function is on a path twice
				for up := tree.nodes[k].parent; up >= 0; up = tree.nodes[up].parent {
					if tree.nodes[up].fn == tree.nodes[k].fn {
						t.Fatalf("seed %d: function %d is on a path twice", seed, tree.nodes[k].fn)
					}
				}
			}
		}
	}
}

func TestFishersTest(t *testing.T) {
	for _, c := range []struct {
		k, n, have, all int
		want            float64
	}{
		{3, 3, 3, 203, 1.0 / (203 * 202 * 201 / 6)},
		{1, 1, 1, 101, 1.0 / 101},
		{0, 5, 3, 50, 1},
		{3, 4, 4, 8, (16.0 + 1) / 70}, // a lady tasting tea
	} {
		if got := atLeast(c.k, c.n, c.have, c.all); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%+v: %g", c, got)
		}
	}
}

func TestPeersAreTakenEvenly(t *testing.T) {
	s := sampler{most: 64}
	for i := range uint64(10_000) {
		s.add(ref{start: i, end: i + 1})
	}
	if len(s.list) < 32 || len(s.list) > 64 || s.seen != 10_000 {
		t.Fatalf("%d of %d", len(s.list), s.seen)
	}
	for i := range s.list {
		if s.list[i].start != uint64(i)*s.every {
			t.Fatalf("the %d-th is %d, of one in %d", i, s.list[i].start, s.every)
		}
	}
}

func TestLognormalScatterHasNoOutliers(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, sigma := range []float64{0.2, 0.5, 1} {
		wrong := 0
		for range 200 {
			values := make([]float64, 2000)
			most := 0.0
			for i := range values {
				values[i] = math.Exp(10 + sigma*rng.NormFloat64())
				most = max(most, values[i])
			}
			if most > newScatter(values, 2000).most() {
				wrong++
			}
		}
		if wrong > 100 {
			t.Errorf("with a deviation of %v the largest of 2000 was an outlier in %d of 200 cases", sigma, wrong)
		}
	}
}

// A reel that lies about everything is explained without harm.
func FuzzExplain(f *testing.F) {
	p := newProgram(f, true)
	r := madereel.NewRun(baseTick)
	p.requests(r, 30, 10, func(r *madereel.Run) { r.Call(fnRead, func() { r.Wait(9*ms, 102) }) })
	p.thread("worker-1", r)
	other := madereel.NewRun(baseTick)
	other.Call(fnRefresh, func() { other.Work(50 * ms) })
	p.thread("other", other)
	p.open()
	data, err := os.ReadFile(p.path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data, uint64(1))
	f.Fuzz(explainFlipped)
}

// explainFlipped explains a reel of which some bits are wrong.
func explainFlipped(t *testing.T, data []byte, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	data = append([]byte(nil), data...)
	for range rng.IntN(8) {
		if len(data) > 0 {
			data[rng.IntN(len(data))] ^= byte(1 << rng.IntN(8))
		}
	}
	file, err := reel.Parse("fuzz", data)
	if err != nil {
		return
	}
	rep, err := Explain(context.Background(), file, Options{Match: func(string) bool { return true }, Slowest: 2, Peers: 10, Workers: 1})
	if err != nil {
		return
	}
	checkSums(t, rep)
	rep.Text()
	rep.Markdown()
}

func TestFlippedBitsAreHarmless(t *testing.T) {
	p := newProgram(t, true)
	r := madereel.NewRun(baseTick)
	p.requests(r, 30, 10, func(r *madereel.Run) { r.Call(fnRead, func() { r.Wait(9*ms, 102) }) })
	p.thread("worker-1", r)
	p.open()
	data, err := os.ReadFile(p.path)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(300) {
		explainFlipped(t, data, seed)
	}
}

// Threads that do whatever: entries and exits that don't belong together, times that go back, states out of order.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("0000111122223333444455556666777788889999aaaabbbb"), false)
	f.Add([]byte("zx81zx82zx83zx84zx85zx86zx87zx88"), true)
	f.Fuzz(func(t *testing.T, data []byte, goroutines bool) {
		data = data[:min(len(data), 4096)]
		path := filepath.Join(t.TempDir(), "fuzz.reel")
		w := madereel.Create(t, path, reel.Header{Clock: madereel.Nanoseconds(baseTick), Goroutines: goroutines, Arch: "amd64"}, reel.Image{Path: "/bin/made"}, functionNames...)
		for k := range 2 {
			var events []reel.Event
			var sched []reel.SchedEvent
			now := uint64(baseTick)
			for at := k * 4; at+4 <= len(data); at += 8 {
				b := data[at : at+4]
				now += uint64(b[0]) << (b[1] & 31)
				switch e := (reel.Event{Time: now, SP: 0x7000_0000 - uint32(b[2])*16, Word: uint32(b[3])}); {
				case b[1]&0x20 != 0:
					sched = append(sched, reel.SchedEvent{Time: now, Kind: reel.SchedKind(1 + b[3]%9), CPU: int32(b[2] % 4), Waker: int32(b[2]%5) + 99})
				case goroutines && b[1]&0x40 != 0:
					events = append(events, reel.Switch(now, uint64(b[3]%4)))
				default:
					events = append(events, e)
				}
			}
			tw := madereel.Thread(t, w, reel.Thread{TID: 100 + k, Process: 100, Name: "t"}, events...)
			if err := tw.Sched(sched); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		file, err := reel.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		rep, err := Explain(context.Background(), file, Options{Match: func(string) bool { return true }, Slowest: 3, Peers: 10, Workers: 1})
		if err != nil {
			return
		}
		checkSums(t, rep)
		rep.Text()
	})
}
