package symbols

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestOverlayGivesEachAddressToTheHighestCoveringOwner(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var o overlay
	for round := range 2000 {
		const size = 64
		var want [size]int32
		for k := range want {
			want[k] = -1
		}
		var in []piece
		for k := range random.IntN(40) {
			start := random.IntN(size - 1)
			end := start + 1 + random.IntN(size-start-1)
			in = append(in, piece{uint64(start), uint64(end), int32(k)})
			for at := start; at < end; at++ {
				want[at] = int32(k)
			}
		}
		random.Shuffle(len(in), func(a, b int) { in[a], in[b] = in[b], in[a] })
		var got [size]int32
		for k := range got {
			got[k] = -1
		}
		last := uint64(0)
		for _, p := range o.resolve(in) {
			if p.start < last || p.end <= p.start {
				t.Fatalf("round %d: piece %v after %d", round, p, last)
			}
			for at := p.start; at < p.end; at++ {
				got[at] = p.owner
			}
			last = p.end
		}
		if got != want {
			t.Fatalf("round %d: got %v, want %v", round, got, want)
		}
	}
}

// Ranges that all start together and end one after the other make the worst heap; a
// quadratic resolution of these would take hours.
func TestOverlayOfManyNestedRangesTakesLittleTime(t *testing.T) {
	const count = 1 << 20
	in := make([]piece, count)
	for k := range in {
		in[k] = piece{uint64(k % 2), uint64(2 + (k*7919)%count), int32(k)}
	}
	var o overlay
	out := o.resolve(in)
	if len(out) == 0 || len(out) > 2*count {
		t.Errorf("%d pieces", len(out))
	}
	if !slices.IsSortedFunc(out, comparePieces) {
		t.Error("pieces are not sorted")
	}
}
