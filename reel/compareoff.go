package reel

import (
	"cmp"
	"path"
	"slices"
)

// TellOffs marks the changes of functions that were off for some time in one of the two recordings that were compared: what seems to have come or
// gone there may only not have been recorded. rename is what SummaryOptions had as Name. The order is that of Compare.
func TellOffs(changes []FunctionChange, a, b *File, rename func(string) string) {
	offA, offB := a.offNames(rename), b.offNames(rename)
	if len(offA)+len(offB) == 0 {
		return
	}
	for i := range changes {
		c := &changes[i]
		name := functionName{name: c.Name, module: c.Module}
		if c.A != nil {
			c.OffA = offA[name] && len(a.OffsOf(c.A.ID)) > 0 // several may have the name
		} else {
			c.OffA = offA[name]
		}
		if c.B != nil {
			c.OffB = offB[name] && len(b.OffsOf(c.B.ID)) > 0
		} else {
			c.OffB = offB[name]
		}
		if c.OffA && (c.A == nil || c.A.Ended() == 0) {
			c.Slower = 0 // it isn't known what it took in A
		}
	}
	sortChanges(changes)
}

// offNames are the names of the functions that were off.
func (f *File) offNames(rename func(string) string) map[functionName]bool {
	names := map[functionName]bool{}
	last := uint32(0)
	for _, o := range f.offs {
		if o.Function == last {
			continue
		}
		last = o.Function
		fn, ok := f.Function(o.Function)
		if !ok {
			continue
		}
		name := functionName{name: fn.Name}
		if rename != nil {
			name.name = rename(fn.Name)
		}
		if m, ok := f.Image(fn.Image); ok {
			name.module = path.Base(m.Path)
		}
		names[name] = true
	}
	return names
}

// sortChanges puts what became slowest first.
func sortChanges(changes []FunctionChange) {
	slices.SortStableFunc(changes, func(a, b FunctionChange) int {
		return cmp.Or(cmp.Compare(b.Slower, a.Slower), cmp.Compare(b.DeltaTotal(), a.DeltaTotal()), cmp.Compare(a.Module, b.Module), cmp.Compare(a.Name, b.Name))
	})
}
