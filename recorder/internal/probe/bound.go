package probe

import "math/bits"

// Bound is how many bytes the code of these functions has at most, see Compile: three to four times what it has in fact, but
// known without making it. rt is as for Compile, but for addresses.
func Bound(rt *Runtime, fns []Selected) uint64 {
	const routines = 1 << 16
	b := boundStubs(rt, fns, len(fns) <= InlineLimit)
	return routines + b.code + b.rows*unwindRowSize
}

// bounds is what the stubs of some functions have at most.
type bounds struct {
	code    uint64 // bytes
	rows    uint64 // of unwind information
	patches int
}

// boundStubs finds the bounds. inlined says whether events are inline in all stubs.
func boundStubs(rt *Runtime, fns []Selected, inlined bool) (b bounds) {
	// An event, or a look at arguments, where it isn't the call of a routine.
	inline := uint64(232)
	if rt.Min {
		inline += 320
	}
	if rt.chooses() || rt.Threads {
		inline += 96
	}
	const (
		site   = 48  // alignment, the entry event's call, the way back
		longer = 8   // than the original is a jump in the stub
		exit   = 40  // an exit event's call, and the jump to where the exit leads
		golang = 224 // an event in a Go program, which is always inline
	)
	for i := range fns {
		f := &fns[i]
		sites := f.Patched()
		for k := range sites {
			s := &sites[k]
			b.patches += 1 + btoi(s.Island != 0)
			exits := uint64(bits.OnesCount64(s.exits))
			b.code += site + uint64(s.Size) + longer*uint64(s.Count) + exit*exits
			b.rows += 2 + uint64(s.Count) + 2*exits
			switch {
			case f.Image.Go != nil:
				b.code += golang * (1 + exits)
			case inlined || f.Inside:
				b.code += inline * (1 + exits)
			}
			if s.SPDelta != 0 {
				b.code += inline
			}
			if s.Role == RoleEntry && f.Guard != GuardNone {
				b.code += inline
			}
		}
	}
	return b
}
