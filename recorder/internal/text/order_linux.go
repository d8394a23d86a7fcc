package text

import (
	"cmp"
	"slices"

	"github.com/callreel/callreel/recorder/internal/stub"
)

// fewRuns is up to how many runs are merged as they are; more are sorted.
const fewRuns = 16

// inRuns divides patches into runs that are in the order of their addresses. They are few, as a rule: the islands and the sites of each
// arena.
func inRuns(patches []stub.Patch) (runs [][]stub.Patch) {
	for from, i := 0, 1; i <= len(patches); i++ {
		if i == len(patches) || patches[i].Addr < patches[i-1].Addr {
			runs = append(runs, patches[from:i])
			from = i
		}
	}
	return runs
}

// ByAddress returns the patches in the order of their addresses, the slice itself if they are.
func ByAddress(patches []stub.Patch) []stub.Patch {
	runs := inRuns(patches)
	if len(runs) <= 1 {
		return patches
	}
	sorted := make([]stub.Patch, 0, len(patches))
	for next := pageByPage(runs); ; {
		page := next.page()
		if page == nil {
			return sorted
		}
		sorted = append(sorted, page...)
	}
}

// patchPages gives the patches of runs page by page, without making another list of all of them: that of a program with a million functions
// would have 64 MB.
type patchPages struct {
	runs [][]stub.Patch
	of   []stub.Patch // a page's, if they are of several runs
}

// pageByPage begins with the lowest page. The runs themselves stay as they are.
func pageByPage(runs [][]stub.Patch) *patchPages {
	if len(runs) > fewRuns {
		all := slices.Concat(runs...)
		slices.SortFunc(all, func(a, b stub.Patch) int { return cmp.Compare(a.Addr, b.Addr) })
		return &patchPages{runs: [][]stub.Patch{all}}
	}
	return &patchPages{runs: slices.Clone(runs)}
}

// skip goes on to the page at addr.
func (n *patchPages) skip(addr uint64) {
	for i, run := range n.runs {
		k, _ := slices.BinarySearchFunc(run, addr, func(p stub.Patch, a uint64) int { return cmp.Compare(p.Addr, a) })
		n.runs[i] = run[k:]
	}
}

// page returns the patches that begin on the next page, in the order of their addresses, nil when there is none any more. They are
// to be used before the next call.
func (n *patchPages) page() []stub.Patch {
	addr := ^uint64(0)
	for _, run := range n.runs {
		if len(run) > 0 {
			addr = min(addr, run[0].Addr&^(PageSize-1))
		}
	}
	var found []stub.Patch
	several := false
	for i, run := range n.runs {
		k := 0
		for k < len(run) && run[k].Addr-addr < PageSize {
			k++
		}
		n.runs[i] = run[k:]
		switch {
		case k == 0:
		case found == nil:
			found = run[:k]
		case !several:
			n.of, several = append(append(n.of[:0], found...), run[:k]...), true
		default:
			n.of = append(n.of, run[:k]...)
		}
	}
	if several {
		slices.SortFunc(n.of, func(a, b stub.Patch) int { return cmp.Compare(a.Addr, b.Addr) })
		found = n.of
	}
	return found
}
