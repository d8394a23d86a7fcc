package plan

import (
	"math/rand/v2"
	"testing"
)

func TestRangesOfABitset(t *testing.T) {
	const size = 200
	r := rand.New(rand.NewPCG(1, 1))
	set, want := newBitsets(size)[0], [size]bool{}
	for range 2000 {
		from := r.Uint64N(size)
		to := from + r.Uint64N(size-from)
		add := r.IntN(2) == 0
		if add {
			set.addRange(from, to)
		} else {
			set.removeRange(from, to)
		}
		for i := from; i < to; i++ {
			want[i] = add
		}
		for i, w := range want {
			if set.has(uint64(i)) != w {
				t.Fatalf("after %d to %d, added %v: bit %d is %v", from, to, add, i, !w)
			}
		}
	}
}

func TestAnAdderAddsWhatItIsGiven(t *testing.T) {
	set := newBitsets(200)[0]
	set.add(35) // of somebody else
	a := adder{set: set}
	want := map[uint64]bool{35: true}
	for _, i := range []uint64{0, 1, 31, 32, 40, 3, 199} {
		a.add(i)
		want[i] = true
	}
	a.flush()
	for i := range uint64(200) {
		if set.has(i) != want[i] {
			t.Errorf("bit %d is %v", i, set.has(i))
		}
	}
}
