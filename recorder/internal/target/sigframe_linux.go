package target

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/callreel/callreel/process"
)

// interrupted is a place on a stack that holds the PC a signal handler will return to.
type interrupted struct {
	at uint64
	pc uint64
	// tid is the thread on whose stack it is.
	tid int
}

// findRestorers returns the addresses that handlers return to, by which their frames are known. It reads all text, so it is
// done before the process is stopped: the C library that has installed the handlers is there by then. Arenas are not read: reading
// the memory of a memfd that nothing was written to would allocate it.
func findRestorers(p *process.Process, maps []process.Mapping, inArena func(addr uint64) bool) []uint64 {
	if frameMark != 0 {
		return nil // frames are known without
	}
	const overlap = 8 // the longer code, less a byte
	var found []uint64
	buf := make([]byte, 1<<20)
	for i := range maps {
		m := &maps[i]
		if m.Perm&process.PermExec == 0 || m.Inode == 0 || inArena(m.Start) {
			continue
		}
		for at := m.Start; at < m.End; at += uint64(len(buf)) - overlap {
			n, _ := p.ReadAt(buf[:min(uint64(len(buf)), m.End-at)], at)
			for _, code := range restorerCode {
				for from := 0; ; from++ {
					k := bytes.Index(buf[from:n], code)
					if k < 0 {
						break
					}
					from += k
					found = append(found, at+uint64(from))
				}
			}
			if n < len(buf) {
				break
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// maxStacks bounds the stacks that are looked through for one thread: handlers on alternate stacks can't be nested
// deeper than there are signals.
const maxStacks = 64

// interruptedPCs finds the frames of running signal handlers whose interrupted PC, or where that was about to go, satisfies want. It looks through the
// part in use of each thread's stack for frames, and from a frame goes on to the stack that was interrupted, when that
// is another one (sigaltstack), where h says that it may be.
func interruptedPCs(s *process.Stopped, maps []process.Mapping, restorers []uint64, h handlers, want func(pc uint64) bool) ([]interrupted, error) {
	var found []interrupted
	var buf []byte
	for _, t := range s.Threads() {
		regs, err := t.Regs()
		if err != nil {
			return nil, err
		}
		limit, err := h.within(s.Process(), t, regs.SP())
		if err != nil {
			return nil, err
		}
		if limit == 0 {
			continue
		}
		stacks := []uint64{regs.SP() - leftOf(regs.PC(), restorers)}
		seen := map[uint64]uint64{} // from where mappings were looked through, by their starts
		for i := 0; i < len(stacks) && i < maxStacks; i++ {
			lo := stacks[i] &^ 7
			m := process.FindMapping(maps, lo)
			if m == nil {
				continue
			}
			if from, was := seen[m.Start]; was && lo >= from {
				continue
			}
			seen[m.Start] = lo
			size := min(m.End-lo, limit)
			if uint64(cap(buf)) < size {
				buf = make([]byte, size)
			}
			n, _ := s.Process().ReadAt(buf[:size], lo)
			framesOn(buf[:n], restorers, func(off int, pc, sp, to uint64) {
				if want(pc) || goesInFrame != 0 && want(to) {
					found = append(found, interrupted{at: lo + uint64(off+pcInFrame), pc: pc, tid: t.TID})
				}
				if h.elsewhere() {
					stacks = append(stacks, sp)
				}
			})
		}
	}
	return found, nil
}

// isInside says whether a thread with these registers is where inside says, or may be about to go there.
func isInside(r *process.Regs, inside func(pc uint64) bool) bool {
	return inside(r.PC()) || goesInFrame != 0 && inside(goesTo(r))
}

// framesOn calls f with each signal frame's offset on a stack, the PC and SP it holds, and where it may be about to go to. The offset is that of the frame's mark, where frames
// have one, else of the address that its handler returns to.
func framesOn(stack []byte, restorers []uint64, f func(off int, pc, sp, to uint64)) {
	le := binary.LittleEndian
	is := func(word uint64) bool { return word == frameMark }
	if frameMark == 0 {
		if len(restorers) == 0 {
			return
		}
		lo, hi := restorers[0], restorers[len(restorers)-1]
		is = func(word uint64) bool {
			if word < lo || word > hi {
				return false
			}
			_, found := slices.BinarySearch(restorers, word)
			return found
		}
	}
	for off := max(0, -spInFrame, -goesInFrame); off+max(pcInFrame, 0)+8 <= len(stack); off += 8 {
		if is(le.Uint64(stack[off:])) {
			f(off, le.Uint64(stack[off+pcInFrame:]), le.Uint64(stack[off+spInFrame:]), le.Uint64(stack[off+goesInFrame:]))
		}
	}
}
