package lint

import (
	"cmp"
	"slices"
	"sort"

	"github.com/callreel/callreel/internal/ehtable"
)

// maxLSDA bounds the bytes of one function's data.
const maxLSDA = 1 << 20

// callSites reads where the calls of a function go on that exceptions leave, by start. What cannot be read gives none.
// It takes the bytes that it reads off budget, and reads no more.
func callSites(lsda, function uint64, readAddr func(addr, n uint64) ([]byte, error), budget *int) []ehtable.CallSite {
	var list []ehtable.CallSite
	read, ok := ehtable.CallSites(lsda, function, min(maxLSDA, *budget), readAddr, func(c ehtable.CallSite) { list = append(list, c) })
	if *budget -= min(read, *budget); !ok {
		return nil
	}
	slices.SortStableFunc(list, func(a, b ehtable.CallSite) int { return cmp.Compare(a.Start, b.Start) })
	return list
}

// pads ties the calls of a function to where exceptions that they throw go on.
func (f *function) pads() {
	for k := range f.parts {
		for _, site := range f.parts[k].sites {
			f.explore(site.Pad)
		}
	}
	f.link(0)
	for id := range f.nodes {
		n := &f.nodes[id]
		n.pad = -1
		sites := f.parts[n.part].sites
		if !n.inst.calls() || len(sites) == 0 {
			continue
		}
		k := sort.Search(len(sites), func(k int) bool { return sites[k].End > n.addr })
		if k < len(sites) && n.addr >= sites[k].Start {
			if n.pad = f.nodeAt(sites[k].Pad); n.pad >= 0 {
				f.nodes[n.pad].leader = true
			}
		}
	}
}
