//go:build amd64 || arm64

package step

import (
	"fmt"
	"maps"

	"github.com/callreel/callreel/process"
)

// instruction is what is written at once: as many bytes as a breakpoint instruction has.
type instruction [len(trap)]byte

// trapped is the breakpoint instruction.
func trapped() (in instruction) {
	copy(in[:], trap)
	return in
}

// breakpoint is a place in the code where threads stop.
type breakpoint struct {
	uses   int // how many reasons there are to stop
	lifted int // how many threads are about to carry out the instruction below
	code   instruction
}

// breakpoints are written into the memory of the process, which is ours.
type breakpoints struct {
	p  *process.Process
	at map[uint64]*breakpoint
	// were are all places where one has ever been, and the code there: a thread may have met one that was then removed before
	// its stop was seen, and a copy of the memory may have been made before.
	were map[uint64]instruction
}

func (b *breakpoints) write(addr uint64, code instruction) error {
	_, err := b.p.WriteAt(code[:], addr)
	return err
}

// add has threads stop at an address.
func (b *breakpoints) add(addr uint64) error {
	if bp := b.at[addr]; bp != nil {
		bp.uses++
		return nil
	}
	var code instruction
	if _, err := b.p.ReadAt(code[:], addr); err != nil {
		return fmt.Errorf("breakpoint: %w", err)
	}
	if err := b.write(addr, trapped()); err != nil {
		return fmt.Errorf("breakpoint: %w", err)
	}
	b.at[addr] = &breakpoint{uses: 1, code: code}
	b.were[addr] = code
	return nil
}

// drop takes back one add. What cannot be written has been unmapped.
func (b *breakpoints) drop(addr uint64) {
	bp := b.at[addr]
	if bp == nil {
		return
	}
	if bp.uses--; bp.uses > 0 {
		return
	}
	if bp.lifted == 0 {
		_ = b.write(addr, bp.code)
	}
	delete(b.at, addr)
}

// lift takes a breakpoint away for the thread that is to go over it, and says whether there is one. Other threads may pass
// meanwhile: of these a call goes by unseen.
func (b *breakpoints) lift(addr uint64) bool {
	bp := b.at[addr]
	if bp == nil {
		return false
	}
	if bp.lifted++; bp.lifted == 1 {
		_ = b.write(addr, bp.code)
	}
	return true
}

// putBack ends a lift.
func (b *breakpoints) putBack(addr uint64) {
	bp := b.at[addr]
	if bp == nil || bp.lifted == 0 {
		return
	}
	if bp.lifted--; bp.lifted == 0 {
		_ = b.write(addr, trapped())
	}
}

// forget drops what lies in memory that is gone.
func (b *breakpoints) forget(low, high uint64) {
	in := func(addr uint64) bool { return addr >= low && addr < high }
	maps.DeleteFunc(b.at, func(addr uint64, _ *breakpoint) bool { return in(addr) })
	maps.DeleteFunc(b.were, func(addr uint64, _ instruction) bool { return in(addr) })
}

// clear removes all.
func (b *breakpoints) clear() {
	for addr, bp := range b.at {
		_ = b.write(addr, bp.code)
	}
	clear(b.at)
}
