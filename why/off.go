package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/callreel/callreel/reel"
)

// namedOff is how many functions that were off are named.
const namedOff = 3

// offDoubts say what can't be known as functions were off: their calls were not recorded, for what that costs.
func (x *explainer) offDoubts(a *aligned) []string {
	if len(x.f.Offs()) == 0 {
		return nil
	}
	var list []string
	off := slices.DeleteFunc(x.f.OffIn(a.slow.start, a.slow.end), func(s reel.OffSum) bool { return s.Ticks == 0 })
	if len(off) > 0 {
		known := map[uint32]bool{} // which it, or its peers, called
		for i := range a.list {
			known[a.list[i].fn] = i > 0
		}
		rank := func(s *reel.OffSum) int {
			if known[s.Function] {
				return 0
			}
			return 1
		}
		slices.SortStableFunc(off, func(p, q reel.OffSum) int {
			return cmp.Or(cmp.Compare(rank(&p), rank(&q)), cmp.Compare(q.Ticks, p.Ticks))
		})
		var names []string
		for i := range off[:min(len(off), namedOff)] {
			names = append(names, brief(x.name(off[i].Function)))
		}
		switch n := len(off); {
		case n == 1:
			list = append(list, names[0]+" was off while it ran: time in its calls counts as that of their callers.")
		case n <= namedOff:
			list = append(list, strings.Join(names[:n-1], ", ")+" and "+names[n-1]+" were off while it ran: time in their calls counts as that of their callers.")
		default:
			list = append(list, fmt.Sprintf("%s were off while it ran, %s among them: time in their calls counts as that of their callers.", many(uint64(n), "function"), strings.Join(names, ", ")))
		}
	}
	told := map[uint32]bool{}
	for i := range a.at {
		fn := a.list[i].fn
		if i == 0 || a.at[i].calls == 0 || a.at[i].with > 0 || told[fn] || len(told) == namedOff {
			continue
		}
		times := x.f.OffsOf(fn)
		n := 0
		for k := range a.peers {
			if reel.SumOffs(times, a.peers[k].start, a.peers[k].end).Ticks > 0 {
				n++
			}
		}
		if n > 0 {
			told[fn] = true
			list = append(list, fmt.Sprintf("%s was off while %d of the %d calls ran that it is compared with: those may have gone there, too.", brief(x.name(fn)), n, len(a.peers)))
		}
	}
	return list
}
