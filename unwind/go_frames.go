package unwind

import (
	"github.com/callreel/callreel/cfi"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/object/pclntab"
)

// goFrames makes rows of a Go program's own table of functions, by which its runtime walks stacks (runtime/traceback.go). The linker
// writes CFI beside it only where it writes DWARF.
type goFrames struct {
	table *pclntab.Table
	arch  *Arch
	ra    uint32 // DWARF number of the return address
}

// openGo returns the rows of an image, nil if it is no Go program's or of an architecture that isn't known.
func openGo(im *object.Image) (*goFrames, error) {
	g := &goFrames{arch: ArchOf(im.Arch)}
	switch im.Arch {
	case object.AMD64:
		g.ra = 16 // System V AMD64 ABI §3.6.2
	case object.ARM64:
		g.ra = uint32(g.arch.lr)
	default:
		return nil, nil
	}
	var err error
	if g.table, err = pclntab.Open(im); g.table == nil {
		return nil, err
	}
	return g, nil
}

// leavesGoroutine says whether a function goes to the thread's own stack and takes no frame pointer there: the goroutine that called it
// may run elsewhere by now, and hasn't called what runs here.
func leavesGoroutine(name []byte) bool {
	switch string(name) {
	case "runtime.mcall", "runtime.morestack":
		return true
	}
	return false
}

// isSignalHandler says whether a function is what the kernel calls for a signal. The runtime's own tracebacks end there; but it returns to
// the code that goes back to what was interrupted.
func isSignalHandler(name []byte) bool { return string(name) == "runtime.sigtramp" }

// byFramePointer makes the row that of a frame record.
func (g *goFrames) byFramePointer(row *cfi.Row) {
	a := g.arch
	size := int64(a.wordSize)
	row.CFA = cfi.Rule{Kind: cfi.RegOffset, Reg: uint16(a.fp), Offset: 2 * size}
	row.Regs = []cfi.RegRule{
		{Reg: uint32(a.fp), Rule: cfi.Rule{Kind: cfi.Offset, Offset: -2 * size}},
		{Reg: g.ra, Rule: cfi.Rule{Kind: cfi.Offset, Offset: -size}},
	}
}

// row returns the row for a link address, nil if the table has none.
func (g *goFrames) row(pc uint64) *cfi.Row {
	f, ok := g.table.Find(pc)
	if !ok {
		return nil
	}
	a := g.arch
	row := &cfi.Row{Start: f.Start, End: f.End, RAReg: g.ra}
	if f.Flags&pclntab.TopFrame != 0 && !isSignalHandler(g.table.Name(f.Name)) || f.Flags&pclntab.SPWrite != 0 && leavesGoroutine(g.table.Name(f.Name)) {
		row.CFA = cfi.Rule{Kind: cfi.RegOffset, Reg: uint16(a.sp)}
		row.Regs = []cfi.RegRule{{Reg: row.RAReg, Rule: cfi.Rule{Kind: cfi.Undefined}}}
		return row
	}
	if f.Flags&pclntab.SPWrite != 0 {
		// It goes to the thread's own stack, and leaves the frame pointer as it was.
		g.byFramePointer(row)
		return row
	}
	delta, ok := g.table.SPDelta(f, pc)
	if !ok {
		return nil
	}
	if a.lr < 0 {
		// The frame begins behind the return address, at which the caller's stack pointer is.
		row.CFA = cfi.Rule{Kind: cfi.RegOffset, Reg: uint16(a.sp), Offset: int64(delta) + int64(a.wordSize)}
		saved := cfi.RegRule{Reg: row.RAReg, Rule: cfi.Rule{Kind: cfi.Offset, Offset: -int64(a.wordSize)}}
		if uint64(delta) < a.wordSize {
			row.Regs = []cfi.RegRule{saved}
			return row
		}
		// What a function with a frame does first is to save the frame pointer.
		row.Regs = []cfi.RegRule{{Reg: uint32(a.fp), Rule: cfi.Rule{Kind: cfi.Offset, Offset: -2 * int64(a.wordSize)}}, saved}
		return row
	}
	row.CFA = cfi.Rule{Kind: cfi.RegOffset, Reg: uint16(a.sp), Offset: int64(delta)}
	if delta > 0 {
		// The link register is where the stack pointer points to, and the frame pointer below it.
		row.Regs = []cfi.RegRule{
			{Reg: uint32(a.fp), Rule: cfi.Rule{Kind: cfi.Offset, Offset: -int64(delta) - int64(a.wordSize)}},
			{Reg: uint32(a.lr), Rule: cfi.Rule{Kind: cfi.Offset, Offset: -int64(delta)}},
		}
	}
	return row
}
