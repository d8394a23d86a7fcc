package timeline

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// closeWithIndex adds the index and closes the reel.
func (r *testReel) closeWithIndex(t testing.TB) {
	t.Helper()
	for r.write(t, 1000) {
	}
	realtest.Must(t, Append(t.Context(), r.w, r.name, small()))
	realtest.Must(t, r.w.Close())
}

func TestIndexInTheReelAnswersAsTheReelDoes(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := newTestReel(t, seed, 2_450_000_000, reel.ClockFull, someThreads(seed, 6000)...)
			r.closeWithIndex(t)
			f, tl := openTest(t, r.name, small())
			if !tl.Indexed() {
				t.Fatal("the index was not used")
			}
			check(t, tl, newModel(f), rand.New(rand.NewPCG(seed, 3)))
		})
		t.Run(fmt.Sprint("goroutines ", seed), func(t *testing.T) {
			r := newGoroutineReel(t, seed, goroutineEvents(seed, 4, 25, 9000))
			r.closeWithIndex(t)
			f, tl := openTest(t, r.name, small())
			if !tl.Indexed() {
				t.Fatal("the index was not used")
			}
			check(t, tl, newGoroutineModel(f, tl.Lanes()), rand.New(rand.NewPCG(seed, 3)))
		})
	}
}

func TestDamagedIndexIsMadeAnew(t *testing.T) {
	r := newTestReel(t, 1, 1e9, reel.ClockFull, someThreads(1, 3000)...)
	r.closeWithIndex(t)
	whole, err := os.ReadFile(r.name)
	realtest.Must(t, err)
	f, _ := openTest(t, r.name, small())
	stored, err := f.Timeline()
	realtest.Must(t, err)
	rng := rand.New(rand.NewPCG(1, 9))
	m := newModel(f)
	at := bytes.LastIndex(whole, stored)
	w := wire{b: stored}
	w.uvarint()
	directory := int(w.uvarint()) + len(stored) - len(w.b) + 4
	for i := range 40 {
		bad := append([]byte(nil), whole...)
		if i%2 == 0 { // a summary is replaced by its calls
			bad[at+directory+rng.IntN(len(stored)-directory)] ^= byte(1 + rng.IntN(255))
			f, err := reel.Parse("bad", bad)
			realtest.Must(t, err)
			tl, err := Open(t.Context(), f, small())
			realtest.Must(t, err)
			if !tl.Indexed() {
				t.Error("an index was not used for its summaries")
			}
			checkSome(t, tl, m, rng, 10)
			continue
		}
		bad[at+rng.IntN(directory)] ^= byte(1 + rng.IntN(255))
		f, err := reel.Parse("bad", bad)
		realtest.Must(t, err)
		tl, err := Open(t.Context(), f, small())
		realtest.Must(t, err)
		if tl.Indexed() || len(f.Damage()) != 1 {
			t.Errorf("a damaged index was used (%v), damage %v", tl.Indexed(), f.Damage())
		}
		if i == 1 {
			check(t, tl, m, rng)
		}
	}
}

// queries asks everything of a timeline; there must be answers, and no more.
func queries(t testing.TB, tl *Timeline) {
	ctx := t.Context()
	end := tl.Duration()
	var lanes []LaneRows
	for _, l := range tl.Lanes() {
		lanes = append(lanes, LaneRows{l.ID, 0, min(l.Rows, 50)}, LaneRows{l.ID, l.Rows - 2, 1 << 40})
	}
	for _, q := range []Query{{To: end}, {To: end + 1, Width: 100}, {From: end / 3, To: end / 2, Width: 2000}, {From: end / 2, To: end/2 + 100, Width: 7}, {From: 9, To: 3, Width: -1}, {To: ^uint64(0), Width: 1}} {
		for _, quick := range []bool{true, false} {
			q.Lanes, q.Quick = lanes, quick
			_, err := tl.View(ctx, q)
			realtest.Must(t, err)
		}
	}
	_, err := tl.Overview(ctx, 100)
	realtest.Must(t, err)
	for _, l := range lanes {
		for _, at := range []uint64{0, end / 2, end, ^uint64(0)} {
			_, _, err := tl.CallAt(ctx, l.Lane, l.First, at)
			realtest.Must(t, err)
		}
		realtest.Must(t, tl.Replay(ctx, l.Lane, end/4, end/2, func(*reel.Call) bool { return true }))
	}
	from := Position{}
	for range 3 {
		found, ok, err := tl.Next(ctx, func(fn uint32) bool { return fn%3 == 1 }, from, false)
		realtest.Must(t, err)
		if !ok {
			break
		}
		from = Position{found.Lane, found.Row, found.Start}
	}
	_, _, err = tl.Next(ctx, func(fn uint32) bool { return fn == 2 }, Position{At: end}, true)
	realtest.Must(t, err)
	tl.Calls()
}

// repaired are summaries whose parts all have the right checksum, as far as there
// are parts.
func repaired(summaries []byte) []byte {
	out := bytes.Clone(summaries)
	rest := out
	for p, ok := nextPart(&rest); ok; p, ok = nextPart(&rest) {
		at := len(out) - len(rest) - len(p.body) - 4
		binary.LittleEndian.PutUint32(out[at:], partSum(p.tag, p.body))
	}
	return out
}

// FuzzStored takes any bytes for the directory and the summaries of the index of
// a reel; their checksums are right.
func FuzzStored(f *testing.F) {
	type sample struct {
		name   string
		h      reel.Header
		events [][]reel.Event
	}
	samples := []sample{
		{"threads", reel.Header{Clock: reel.Clock{TicksPerSecond: 1e9, BaseTick: 1000}}, someThreads(1, 1500)},
		{"goroutines", reel.Header{Goroutines: true, Clock: reel.Clock{TicksPerSecond: 1e9, BaseTick: 1000}}, goroutineEvents(1, 2, 5, 1500)},
	}
	var whole [][]byte
	for i, s := range samples {
		r := newReelOf(f, 1, s.h, s.events...)
		for r.write(f, 1000) {
		}
		realtest.Must(f, r.w.Flush())
		data, err := os.ReadFile(r.name)
		realtest.Must(f, err)
		whole = append(whole, data)
		realtest.Must(f, Append(f.Context(), r.w, r.name, small()))
		realtest.Must(f, r.w.Close())
		file, err := reel.Open(r.name)
		realtest.Must(f, err)
		stored, err := file.Timeline()
		realtest.Must(f, err)
		w := wire{b: stored}
		w.uvarint()
		n := w.uvarint()
		f.Add(uint8(i), w.b[4:4+n], w.b[4+n:])
	}
	f.Fuzz(func(t *testing.T, which uint8, directory, summaries []byte) {
		head := binary.AppendUvarint(nil, storeVersion)
		head = binary.AppendUvarint(head, uint64(len(directory)))
		head = binary.LittleEndian.AppendUint32(head, crc32.Checksum(directory, castagnoli))
		s := &samples[int(which)%len(samples)]
		name := filepath.Join(t.TempDir(), "fuzz.reel")
		w, err := reel.Create(name, s.h, reel.Options{})
		realtest.Must(t, err)
		realtest.Must(t, w.Timeline(head, directory, repaired(summaries)))
		realtest.Must(t, w.Close())
		tail, err := os.ReadFile(name)
		realtest.Must(t, err)
		// The chunk of the index, behind the reel that it was made from; the index
		// of chunks is found by scanning.
		header := 1 + bytes.Index(tail[1:], []byte("\x8areL"))
		data := append(append([]byte(nil), whole[int(which)%len(whole)]...), tail[header:]...)
		f, err := reel.Parse("fuzz", data)
		realtest.Must(t, err)
		tl, err := Open(t.Context(), f, small())
		realtest.Must(t, err)
		queries(t, tl)
	})
}
