package arm64

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// A signal may come while a thread is in a stub, and an unwinder in the process may then start from there. So an arena begins with an
// .eh_frame_hdr, whose .eh_frame is at the arena's end, and which the C library's _dl_find_object is made to find.
//
// A stub is told as a frame of its own, empty and above the function's, that is called from exactly the instruction that the stub stands for,
// as a signal frame is. On x86-64 an expression finds that instruction by the PC, which is in the return address's column there. Here
// unwinders have no column in common that has the PC of a signal frame's caller, so each stub has rows of its own, with the address in them:
// a group of stubs has one FDE. What they return to is in the column of the PC (DWARF for the Arm 64-bit Architecture §4.1), since the link
// register is the function's own and must come out as it is.
//
// The frame's CFA is one byte off: unwinders know a frame by its CFA, and that of the function's own frame is where this one would be.

// unwinding gathers the unwind information of an arena's code.
type unwinding struct {
	rows   []unwindRow   // of the stubs
	ranges []unwindRange // of the routines
	open   bool          // a routine is being made, the last of ranges
	frame  bool          // its CFA goes by the frame's register
	at     uint64        // where its last row begins
	depth  int           // how far the stack pointer is below the CFA there
	stand  uint64        // for which instruction the stub being made stands
	hook   uint64        // see stub.UnwindHook
	table  []byte        // what is to be at the arena's beginning
}

// unwindRow says what holds for the code of stubs from an offset on.
type unwindRow struct {
	off   uint32
	low   int32  // how far the stack pointer is below the function's
	lr    bool   // its link register is where the stack pointer is
	stand uint64 // the instruction that it stands for
}

// unwindRowSize is how many bytes a row takes at most.
const unwindRowSize = 5 + 14 + 6 + 5

// unwindRange is code with one FDE.
type unwindRange struct {
	start, end uint64
	program    []byte
}

// beginUnwind leaves place at the arena's beginning.
func (c *coder) beginUnwind() {
	c.unwind = &unwinding{}
	c.Raw(make([]byte, stub.UnwindHead)...)
}

// stands notes that what follows stands for the instruction at addr, in the target.
func (c *coder) stands(addr uint64) {
	if c.unwind != nil {
		c.unwind.stand = addr
		c.note(false)
	}
}

// later is for code that is put off: the function returned says there what holds here.
func (c *coder) later() func() {
	low := c.low
	if c.unwind == nil {
		return func() { c.low = low }
	}
	stand := c.unwind.stand
	return func() {
		c.low = low
		c.stands(stand)
	}
}

// note appends a row, of a stub.
func (c *coder) note(lr bool) {
	u := c.unwind
	if u == nil || u.open {
		return
	}
	r := unwindRow{off: c.offset(), low: c.low, lr: lr, stand: u.stand}
	if n := len(u.rows); n > 0 {
		last := u.rows[n-1]
		if last.off == r.off {
			u.rows[n-1] = r
			return
		}
		if last.low == r.low && last.lr == r.lr && last.stand == r.stand {
			return
		}
	}
	u.rows = append(u.rows, r)
}

// beginRoutine notes that code that is called begins here.
func (c *coder) beginRoutine() {
	if u := c.unwind; u != nil {
		u.ranges = append(u.ranges, unwindRange{start: c.PC()})
		u.open, u.at, u.depth = true, c.PC(), 0
	}
}

// endRoutine notes that it ends here.
func (c *coder) endRoutine() {
	if u := c.unwind; u != nil {
		u.ranges[len(u.ranges)-1].end = c.PC()
		u.open = false
	}
}

// say appends to the routine's program what holds from here on.
func (c *coder) say(b ...byte) {
	u := c.unwind
	if u == nil || !u.open {
		return
	}
	r := &u.ranges[len(u.ranges)-1]
	r.program = append(advance(r.program, uint32(c.PC()-u.at)), b...)
	u.at = c.PC()
}

// below notes how far the stack pointer is below the CFA from here on, in bytes.
func (c *coder) below(depth int) {
	if c.unwind != nil && c.unwind.open {
		c.unwind.depth = depth
		c.say(binary.AppendUvarint([]byte{cfaDefCFAOffset}, uint64(depth))...)
	}
}

// framed notes that all registers of the slow path's frame are there, and the frame's own register.
func (c *coder) framed() {
	b := []byte{cfaDefCFARegister, byte(rFrame)}
	kept := func(r byte, at int) {
		b = binary.AppendUvarint(append(b, cfaOffset|r), uint64(frameSize-at)/8)
	}
	for r := range byte(frameKept) {
		kept(r, 8*int(r))
	}
	kept(columnLR, frameLR)
	c.say(b...)
	if c.unwind != nil {
		c.unwind.frame = true
	}
}

// unframed notes that they have been given back, but for the first two, and that the stack pointer is the frame's again.
func (c *coder) unframed() {
	b := []byte{cfaDefCFARegister, columnSP, cfaRestore | columnLR}
	for r := byte(2); r < frameKept; r++ {
		b = append(b, cfaRestore|r)
	}
	c.say(b...)
	if c.unwind != nil {
		c.unwind.frame = false
	}
}

// endUnwind appends the .eh_frame, and makes what is to be at the arena's beginning. The stubs are all that is from stubs on.
func (c *coder) endUnwind(stubs uint64) error {
	u := c.unwind
	c.Align(8)
	end := c.PC()
	const most = (stub.HookAt - headerSize) / 8
	if len(u.ranges) >= most {
		return fmt.Errorf("%d routines are more than the arena's beginning has room for", len(u.ranges))
	}
	w := ehWriter{at: end}
	plain, signal := w.cie("zR", columnLR, cfaDefCFA, columnSP, 0), w.cie("zRS", columnPC, cfaDefCFA, columnSP, 1)
	fdes := make([][2]uint64, 0, most)
	for _, r := range u.ranges {
		fdes = append(fdes, [2]uint64{r.start, w.fde(plain, r)})
	}
	slices.SortFunc(u.rows, func(a, b unwindRow) int { return cmp.Compare(a.off, b.off) })
	if first := uint32(stubs - c.base); len(u.rows) > 0 && u.rows[0].off > first {
		u.rows[0].off = first
	}
	for group := (len(u.rows) + most - len(fdes) - 1) / (most - len(fdes)); len(u.rows) > 0; {
		rows := u.rows[:min(group, len(u.rows))]
		u.rows = u.rows[len(rows):]
		r := unwindRange{start: c.base + uint64(rows[0].off), end: end}
		if len(u.rows) > 0 {
			r.end = c.base + uint64(u.rows[0].off)
		}
		r.program = rowProgram(rows)
		fdes = append(fdes, [2]uint64{r.start, w.fde(signal, r)})
	}
	w.u32(0) // the end
	w.u32(0)
	c.Raw(w.buf...)

	u.table = append(u.table, 1, pcRelative4, udata4, dataRel4)
	u.table = binary.LittleEndian.AppendUint32(u.table, uint32(end-(c.base+4)))
	u.table = binary.LittleEndian.AppendUint32(u.table, uint32(len(fdes)))
	for _, f := range fdes {
		u.table = binary.LittleEndian.AppendUint32(u.table, uint32(f[0]-c.base))
		u.table = binary.LittleEndian.AppendUint32(u.table, uint32(f[1]-c.base))
	}
	u.table = append(u.table, make([]byte, stub.HookAt-len(u.table))...)
	u.table = binary.LittleEndian.AppendUint64(u.table, u.hook)
	return nil
}

// headerSize is that of an .eh_frame_hdr before its table.
const headerSize = 12

// placeUnwind puts the table where it belongs.
func (c *coder) placeUnwind(code []byte) { copy(code, c.unwind.table) }

// rowProgram is the program of some rows.
func rowProgram(rows []unwindRow) (p []byte) {
	before := unwindRow{off: rows[0].off}
	for i, r := range rows {
		p = advance(p, r.off-before.off)
		if i == 0 || r.stand != before.stand {
			p = append(p, cfaValExpression, columnPC, 9, opConst8u)
			p = binary.LittleEndian.AppendUint64(p, r.stand)
		}
		if i == 0 || r.low != before.low {
			p = append(p, cfaValExpression, columnSP, 3, opBreg0+columnSP, byte(r.low&0x7F)|0x80, byte(r.low>>7))
		}
		switch {
		case r.lr && !before.lr:
			p = append(p, cfaValExpression, columnLR, 3, opBreg0+columnSP, 0, opDeref)
		case !r.lr && before.lr:
			p = append(p, cfaSameValue, columnLR)
		}
		before = r
	}
	return p
}

// advance appends the going on by so many bytes.
func advance(p []byte, by uint32) []byte {
	switch n := by / arm64Unit; {
	case n == 0:
	case n < 1<<6:
		p = append(p, cfaAdvance|byte(n))
	case n < 1<<8:
		p = append(p, cfaAdvance1, byte(n))
	default:
		p = binary.LittleEndian.AppendUint32(append(p, cfaAdvance4), n)
	}
	return p
}

// arm64Unit is the code alignment: the size of an instruction.
const arm64Unit = 4

// DWARF 5 §6.4.2, §7.24 and §2.5; LSB Core §10.6 for the header and the augmentations.
const (
	cfaAdvance1       = 0x02
	cfaAdvance4       = 0x04
	cfaSameValue      = 0x08
	cfaDefCFA         = 0x0C
	cfaDefCFARegister = 0x0D
	cfaDefCFAOffset   = 0x0E
	cfaValExpression  = 0x16
	cfaAdvance        = 0x40
	cfaOffset         = 0x80
	cfaRestore        = 0xC0

	opDeref   = 0x06
	opConst8u = 0x0E
	opBreg0   = 0x70

	pcRelative4 = 0x1B // DW_EH_PE_pcrel | DW_EH_PE_sdata4
	udata4      = 0x03
	dataRel4    = 0x3B // DW_EH_PE_datarel | DW_EH_PE_sdata4

	columnLR = arm64.LR
	columnSP = arm64.SP
	columnPC = arm64.PC
)

// ehWriter writes .eh_frame.
type ehWriter struct {
	at  uint64 // where it will be
	buf []byte
}

func (w *ehWriter) u32(v uint32) { w.buf = binary.LittleEndian.AppendUint32(w.buf, v) }

// entry ends an entry that began at start.
func (w *ehWriter) entry(start int) {
	for len(w.buf)%8 != 0 {
		w.buf = append(w.buf, 0) // DW_CFA_nop
	}
	binary.LittleEndian.PutUint32(w.buf[start:], uint32(len(w.buf)-start-4))
}

func (w *ehWriter) cie(augmentation string, ra byte, program ...byte) int {
	start := len(w.buf)
	w.u32(0)
	w.u32(0)
	w.buf = append(w.buf, 1)
	w.buf = append(w.buf, augmentation...)
	w.buf = append(w.buf, 0, arm64Unit, 0x78, ra, 1, pcRelative4) // alignments 4 and -8
	w.buf = append(w.buf, program...)
	w.entry(start)
	return start
}

// fde appends an entry and returns where it is.
func (w *ehWriter) fde(cie int, r unwindRange) uint64 {
	start := len(w.buf)
	w.u32(0)
	w.u32(uint32(len(w.buf) - cie))
	w.u32(uint32(r.start - w.at - uint64(len(w.buf))))
	w.u32(uint32(r.end - r.start))
	w.buf = append(w.buf, 0)
	w.buf = append(w.buf, r.program...)
	w.entry(start)
	return w.at + uint64(start)
}
