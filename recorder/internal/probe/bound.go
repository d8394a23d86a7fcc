package probe

import "math/bits"

// Bound is how many bytes the code of these functions has at most, see Compile: three to four times what it has in fact, but
// known without making it.
func Bound(fns []Selected) uint64 {
	const (
		routines = 1 << 16
		inline   = 232 // an event, or a look at arguments, where it isn't the call of a routine
		site     = 48  // alignment, the entry event's call, the way back
		longer   = 8   // than the original is a jump in the stub
		exit     = 40  // an exit event's call, and the jump to where the exit leads
		golang   = 224 // an event in a Go program, which is always inline
		row      = unwindRowSize
	)
	size := uint64(routines)
	for i := range fns {
		f := &fns[i]
		sites := f.Patched()
		for k := range sites {
			s := &sites[k]
			exits := uint64(bits.OnesCount64(s.exits))
			size += site + uint64(s.Size) + longer*uint64(s.Count) + exit*exits
			size += row * (2 + uint64(s.Count) + 2*exits) // of unwind information
			switch {
			case fns[i].Image.Go != nil:
				size += golang * (1 + exits)
			case len(fns) <= InlineLimit:
				size += inline * (1 + exits)
			}
			if s.SPDelta != 0 {
				size += inline
			}
			if s.Role == RoleEntry && f.Guard != GuardNone {
				size += inline
			}
		}
	}
	return size
}
