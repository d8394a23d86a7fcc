package markindex

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// randomRow is spans and gaps of all lengths.
func randomRow(rng *rand.Rand, n int, counts bool) *row {
	r := &row{}
	at := uint64(rng.IntN(1000))
	for range n {
		scale := math.Exp(rng.Float64() * 9)
		start := at
		if rng.IntN(3) > 0 {
			start += uint64(rng.ExpFloat64() * scale)
		}
		at = start + uint64(rng.ExpFloat64()*scale*0.8)
		r.add(start, at, 1+rng.Uint32N(5), Flags(rng.IntN(40)/38))
		if counts {
			r.count = append(r.count, 1+rng.Uint32N(3))
		}
	}
	r.finish()
	return r
}

// plainBars are bars as the comment of Bar says, span by span.
func plainBars(r *row, from, to uint64, grain uint) (out []Bar) {
	var all []Bar
	longest := uint64(0)
	for i := range r.start {
		b := Bar{r.start[i], r.end[i], r.end[i] - r.start[i], r.what[i] & titleMask, 1, Flags(r.what[i] >> titleBits)}
		if r.count != nil {
			b.Count = r.count[i]
		}
		long := b.End - b.Start
		if n := len(all); n > 0 && long < 1<<grain && longest < 1<<grain && b.Start-all[n-1].End < 1<<grain && b.Start>>(grain+cellShift) == all[n-1].Start>>(grain+cellShift) {
			l := &all[n-1]
			l.End, l.Busy, l.Count, l.Flags = b.End, l.Busy+b.Busy, l.Count+b.Count, l.Flags|b.Flags
			if long > longest {
				l.Title, longest = b.Title, long
			}
			continue
		}
		all, longest = append(all, b), long
	}
	for _, b := range all {
		if b.Start < to && (b.End > from || b.Start >= from) {
			out = append(out, b)
		}
	}
	return out
}

func TestBarsAreThoseOfAllSpans(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 19))
	for i := range 300 {
		n := []int{0, 1, 10, 63, 64, 65, 5000, 20_000}[i%8]
		r := randomRow(rng, n, i%3 == 0)
		end := r.last() + 100
		for range 12 {
			grain := uint(rng.IntN(24))
			from := rng.Uint64N(end)
			to := from + rng.Uint64N(end)
			got, want := r.bars(from, to, grain), plainBars(r, from, to, grain)
			for _, b := range got {
				if b.Flags&^(Unstarted|Unfinished|Several) != 0 {
					t.Fatalf("flags %x", b.Flags)
				}
			}
			// Flags of merged bars are those of the longest at least.
			for _, list := range [][]Bar{got, want} {
				for i := range list {
					if list[i].Count > 1 {
						list[i].Flags = 0
					}
				}
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("row %d of %d, from %d to %d, grain %d: %d bars, not %d\n%v\n%v", i, n, from, to, grain, len(got), len(want), head(got), head(want))
			}
		}
	}
}

func head(list []Bar) []Bar { return list[:min(len(list), 5)] }

func TestColumnsShowEverySpike(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 19))
	for _, n := range []int{1, 64, 5000, 30_000} {
		var g graph
		at := uint64(0)
		for range n {
			at += uint64(rng.IntN(50))
			g.at, g.value = append(g.at, at), append(g.value, rng.NormFloat64())
		}
		g.finish()
		for range 30 {
			grain := uint(rng.IntN(16))
			from := rng.Uint64N(at + 1)
			to := from + rng.Uint64N(at+1) + 1
			columns := g.columns(from, to, grain)
			low, high, count := math.Inf(1), math.Inf(-1), uint64(0)
			for _, c := range columns {
				low, high, count = min(low, c.Min), max(high, c.Max), count+c.Count
			}
			first, _ := slices.BinarySearch(g.at, from+1)
			first = max(0, first-1)
			end := first
			for end < n && (g.at[end] < to || end > 0 && g.at[end]>>grain == g.at[end-1]>>grain && end > first) {
				end++
			}
			if end == first {
				continue
			}
			if want := g.value[first:end]; low != slices.Min(want) || high != slices.Max(want) || count != uint64(end-first) {
				t.Fatalf("%d values, from %d to %d, grain %d: %v to %v of %d, not %v to %v of %d", n, from, to, grain, low, high, count, slices.Min(want), slices.Max(want), end-first)
			}
		}
	}
}

func TestWhatOverlapsIsUnited(t *testing.T) {
	r := &row{}
	for _, s := range [][2]uint64{{50, 60}, {10, 20}, {15, 30}, {30, 31}, {55, 58}} {
		r.add(s[0], s[1], uint32(s[0]), 0)
	}
	r.unite()
	r.finish()
	if !reflect.DeepEqual(r.start, []uint64{10, 30, 50}) || !reflect.DeepEqual(r.end, []uint64{30, 31, 60}) || !reflect.DeepEqual(r.count, []uint32{2, 1, 2}) {
		t.Errorf("%v %v %v", r.start, r.end, r.count)
	}
}

func TestGrainIsTheNearestPowerOfTwo(t *testing.T) {
	for _, k := range []struct {
		ticks uint64
		width int
		want  uint
	}{{0, 100, 0}, {100, 100, 0}, {140, 100, 0}, {200, 100, 1}, {1000, 1, 10}, {700, 1, 9}, {1 << 60, 1, 58}, {math.MaxUint64, 1, 58}} {
		if got := Grain(k.ticks, k.width); got != k.want {
			t.Errorf("%d ticks on %d pixels: %d, not %d", k.ticks, k.width, got, k.want)
		}
	}
}
