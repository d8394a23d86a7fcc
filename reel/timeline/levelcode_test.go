package timeline

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/callreel/callreel/reel"
)

func TestCodesAreRead(t *testing.T) {
	values := []uint64{0, math.MaxUint64}
	for shift := range 64 {
		values = append(values, 1<<shift, 1<<shift-1)
	}
	var b []byte
	for _, v := range values {
		b = appendCode(b, v)
	}
	whole := append(b, make([]byte, codePad)...)
	at := 0
	for _, want := range values {
		got, next := codeAt(whole, at)
		if got != want || next <= at {
			t.Fatalf("%#x at %d, want %#x", got, at, want)
		}
		at = next
	}
	if at != len(b) {
		t.Errorf("%d bytes left", len(b)-at)
	}
	if _, next := codeAt(whole[:len(b)], len(b)-1); next != 0 {
		t.Error("a code was read beyond the end")
	}
}

// randomLevel has rows on two stacks, with bars of all kinds within and beside
// those of the row above.
func randomLevel(rng *rand.Rand, start uint64) *level {
	l := &level{}
	for stack := range 2 {
		for depth := stack; depth < 6; depth += 1 + rng.IntN(2) {
			from := uint32(len(l.bars))
			at := start
			for range rng.IntN(60) {
				b := bar{start: at + uint64(rng.IntN(1<<rng.IntN(20))), fn: uint32(1 + rng.IntN(9)), calls: 1}
				b.end = b.start + uint64(rng.IntN(1<<rng.IntN(24)))
				b.busy = b.end - b.start
				if rng.IntN(2) == 0 {
					b.calls += 1 + uint32(rng.IntN(1<<rng.IntN(20)))
					b.busy -= uint64(rng.Int64N(int64(b.busy) + 1))
				}
				if rng.IntN(5) == 0 {
					b.flags = reel.CallFlags(1 + rng.IntN(7))
				}
				at = b.end
				l.bars = append(l.bars, b)
			}
			l.rows = append(l.rows, levelRow{keyOf(stack, depth), from, uint32(len(l.bars))})
		}
	}
	return l
}

func TestLevelsAreUnpackedAsTheyWerePacked(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var c levelCoder
	for range 200 {
		start := rng.Uint64N(1 << 40)
		l := randomLevel(rng, start)
		r := c.reader(slices.Clone(c.encode(l, start)), start, 100)
		for i, row := range l.rows {
			k, bars, ok := r.next()
			if want := l.bars[row.from:row.to]; !ok || k != row.key || !slices.Equal(bars, want) {
				t.Fatalf("row %d: %v, row %v of %d bars, want %v of %d", i, ok, k, len(bars), row.key, len(want))
			}
		}
		if _, _, ok := r.next(); ok {
			t.Fatal("more rows than were packed")
		}
	}
}

// FuzzLevel takes any bytes for the rows of a level.
func FuzzLevel(f *testing.F) {
	var c levelCoder
	rng := rand.New(rand.NewPCG(1, 2))
	for range 3 {
		f.Add(slices.Clone(c.encode(randomLevel(rng, 1000), 1000)))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r := c.reader(body, 1000, 1<<20)
		last := rowKey(0)
		for n := 0; ; n++ {
			k, bars, ok := r.next()
			if !ok {
				return
			}
			if n > 0 && k <= last {
				t.Fatalf("row %v comes after %v", k, last)
			}
			last = k
			at := uint64(1000)
			for _, b := range bars {
				if b.start < at || b.end < b.start || b.busy > b.end-b.start || b.calls == 0 {
					t.Fatalf("%+v after %d", b, at)
				}
				at = b.end
			}
		}
	})
}
