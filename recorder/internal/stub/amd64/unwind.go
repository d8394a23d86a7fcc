package amd64

import (
	"encoding/binary"
	"math"
	"slices"
	"sync"

	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// A signal may come while a thread is in a stub, and an unwinder in the process may then start from there: an exception that
// the handler throws (-fnon-call-exceptions), pthread_cancel of a thread that lets itself be cancelled anywhere, a handler
// that calls backtrace(). So an arena begins with an .eh_frame_hdr and .eh_frame of its own, which the C library's
// _dl_find_object is made to find, see findobject.go.
//
// A stub is told as a frame of its own, empty and above the function's, that is called from exactly the instruction that the
// stub stands for, as a signal frame is: so landing pads, saved registers and the CFA come out as they do there. The address
// of that instruction is computed by a DWARF expression, a binary search in a table of the stubs: the information for
// all of them is one FDE. Its CFA is one byte off: unwinders know a frame by its CFA, and that of the function's own frame is where
// this one would be.

// unwinding gathers the unwind information of an arena's code.
type unwinding struct {
	rows   []unwindRow
	tables [][]unwindRow // those of the stubs, in their order
	ranges []unwindRange
	open   *unwindRange // of the routine being made
	at     uint64       // where its last instruction is
	depth  int          // how far the stack pointer is below the CFA
	hook   uint64       // see UnwindHook
}

// unwindRow says for which instruction the code from off on stands: for the one at a fixed address, or for the original of the
// copy that is there.
type unwindRow struct {
	off  uint32 // in the arena, shifted by rowShift, and rowCopy if it is a copy, and rowLow if the stack pointer is redZone lower
	from uint32 // address less frameBase and, of a copy, less the offset
}

const (
	rowCopy  = 1
	rowLow   = 2
	rowShift = 2
	// maxUnwound is how large an arena may be.
	maxUnwound = 1 << (32 - rowShift)
)

const unwindRowSize = 8

// unwindRange is code with one FDE.
type unwindRange struct {
	start, end uint64
	program    []byte // nil for the stubs
}

// frameBase is what addresses in the table are from: all that an arena can reach is above it.
func frameBase(base uint64) uint64 { return base - 1<<31 }

// beginUnwind leaves place at the arena's beginning.
func (c *coder) beginUnwind() {
	if !c.lang.unwound {
		return
	}
	c.unwind = &unwinding{}
	c.Raw(make([]byte, stub.UnwindHead)...)
}

// stands notes that what follows stands for the instruction at addr, in the target.
func (c *coder) stands(addr uint64) { c.row(addr, false) }

// copied notes that what follows is a copy of the instructions from addr on.
func (c *coder) copied(addr uint64) { c.row(addr, true) }

func (c *coder) row(addr uint64, isCopy bool) {
	if c.unwind == nil {
		return
	}
	off := uint64(c.offset())
	v := addr - frameBase(c.base)
	r := unwindRow{off: uint32(off) << rowShift}
	if isCopy {
		r.off |= rowCopy
		v -= off
	}
	if v > math.MaxUint32 {
		r.off, v = uint32(off)<<rowShift, 0 // beyond reach: unknown
	}
	r.from = uint32(v)
	c.put(r)
}

// put appends a row where it differs from the one before.
func (c *coder) put(r unwindRow) {
	rows := c.unwind.rows
	if n := len(rows); n > 0 {
		last := &rows[n-1]
		if last.off&(rowCopy|rowLow) == r.off&(rowCopy|rowLow) && last.from == r.from {
			return
		}
		if last.off>>rowShift == r.off>>rowShift {
			*last = r
			return
		}
	}
	c.unwind.rows = append(rows, r)
}

// later is for code that is put off: the function returned says there what holds here.
func (c *coder) later() func() {
	if c.unwind == nil || len(c.unwind.rows) == 0 {
		return func() {}
	}
	r := c.unwind.rows[len(c.unwind.rows)-1]
	return func() {
		r.off = c.offset()<<rowShift | r.off&(rowCopy|rowLow)
		c.put(r)
	}
}

// lower appends the lowering of the stack pointer by redZone in a stub, or its raising, without a change of flags. The row in force must be
// that of an instruction that the code stands for.
func (c *coder) lower(on bool) {
	by := int32(redZone)
	if on {
		by = -redZone
	}
	c.Lea(amd64.RSP, amd64.At(amd64.RSP, by))
	if c.unwind == nil || len(c.unwind.rows) == 0 {
		return
	}
	r := c.unwind.rows[len(c.unwind.rows)-1]
	r.off = c.offset()<<rowShift | r.off&rowCopy
	if on {
		r.off |= rowLow
	}
	c.put(r)
}

// beginRoutine notes that code that is called begins here.
func (c *coder) beginRoutine() {
	if c.unwind != nil {
		c.unwind.open = &unwindRange{start: c.PC(), program: slices.Clone(routineProgram)}
		c.unwind.at, c.unwind.depth = c.PC(), 8
	}
}

// endRoutine notes that it ends here.
func (c *coder) endRoutine() {
	if c.unwind != nil {
		c.unwind.open.end = c.PC()
		c.unwind.ranges = append(c.unwind.ranges, *c.unwind.open)
	}
}

// below notes how far the stack pointer is below the CFA from here on, in bytes, and returns how far it was.
func (c *coder) below(depth int) (before int) {
	f := c.unwind
	if f == nil {
		return 0
	}
	p := append(f.open.program, cfaAdvance4)
	p = binary.LittleEndian.AppendUint32(p, uint32(c.PC()-f.at))
	p = append(p, cfaDefCFAOffset)
	f.open.program = binary.AppendUvarint(p, uint64(depth))
	before, f.at, f.depth = f.depth, c.PC(), depth
	return before
}

// drop appends the making of place on the stack, or, with less than 0, the giving up of it.
func (c *coder) drop(size int) {
	c.Lea(amd64.RSP, amd64.At(amd64.RSP, int32(-size)))
	if c.unwind != nil {
		c.below(c.unwind.depth + size)
	}
}

// keep appends the saving of a register on the stack.
func (c *coder) keep(r amd64.Reg) {
	c.Push(r)
	if f := c.unwind; f != nil {
		c.below(f.depth + 8)
		f.open.program = binary.AppendUvarint(append(f.open.program, cfaOffset|byte(r.DWARF())), uint64(f.depth/8))
	}
}

// giveBack appends the restoring of what was kept last.
func (c *coder) giveBack(r amd64.Reg) {
	c.Pop(r)
	if f := c.unwind; f != nil {
		c.below(f.depth - 8)
		f.open.program = append(f.open.program, cfaRestore|byte(r.DWARF()))
	}
}

// pastSaved is how far below the stack pointer that a stub calls a routine with what the stub has saved may reach, see event.go.
const pastSaved = 64

// beginKeeping begins a routine that stubs call, and saves the registers that it keeps.
func (c *coder) beginKeeping(kept []amd64.Reg) {
	c.beginRoutine()
	c.drop(pastSaved)
	for _, r := range kept {
		c.keep(r)
	}
}

// returnWith restores what was kept, and returns; the routine may have more behind it, up to endRoutine.
func (c *coder) returnWith(kept []amd64.Reg) {
	for _, r := range slices.Backward(kept) {
		c.giveBack(r)
	}
	c.drop(-pastSaved)
	c.Ret()
}

// endUnwind appends the table, and returns what is to be at the arena's beginning. The stubs are all that is from stubs on.
func (c *coder) endUnwind(stubs uint64) []byte {
	if c.unwind == nil {
		return nil
	}
	end := c.PC()
	if end > stubs {
		c.unwind.ranges = append(c.unwind.ranges, unwindRange{start: stubs, end: end})
	}
	c.Align(8)
	table, rows := c.PC(), c.emitRows()
	le := binary.LittleEndian
	w := ehWriter{base: c.base}
	w.header(len(c.unwind.ranges))
	plain, signal := w.cie("zR"), w.cie("zRS")
	for i, r := range c.unwind.ranges {
		at := len(w.buf)
		if r.program == nil {
			w.fde(signal, r, stubProgram(c.base, table, rows, c.routines.marked))
		} else {
			w.fde(plain, r, r.program)
		}
		le.PutUint32(w.buf[12+8*i:], uint32(r.start-c.base))
		le.PutUint32(w.buf[12+8*i+4:], uint32(at))
	}
	w.u32(0)
	if len(w.buf) <= stub.HookAt {
		w.buf = le.AppendUint64(append(w.buf, make([]byte, stub.HookAt-len(w.buf))...), c.unwind.hook)
	}
	return w.buf
}

// emitRows appends the table, and returns how many rows it has.
func (c *coder) emitRows() (n int) {
	for _, rows := range c.unwind.tables {
		n += len(rows)
	}
	table := c.Extend(unwindRowSize * n)
	var wg sync.WaitGroup
	for _, rows := range c.unwind.tables {
		to := table[:unwindRowSize*len(rows)]
		table = table[len(to):]
		wg.Go(func() {
			for i, r := range rows {
				binary.LittleEndian.PutUint64(to[unwindRowSize*i:], uint64(r.from)<<32|uint64(r.off))
			}
		})
	}
	wg.Wait()
	return n
}

// DWARF 5 §6.4.2, §7.24 and §2.5; LSB Core §10.6 for the header and the augmentations.
const (
	cfaAdvance4      = 0x04
	cfaDefCFA        = 0x0C
	cfaDefCFAOffset  = 0x0E
	cfaValExpression = 0x16
	cfaOffset        = 0x80
	cfaRestore       = 0xC0

	opConst4u = 0x0C
	opConst8u = 0x0E
	opDup     = 0x12
	opDrop    = 0x13
	opOver    = 0x14
	opPick    = 0x15
	opSwap    = 0x16
	opRot     = 0x17
	opAnd     = 0x1A
	opMinus   = 0x1C
	opPlus    = 0x22
	opPlusU   = 0x23
	opShl     = 0x24
	opShr     = 0x25
	opBra     = 0x28
	opGT      = 0x2B
	opLE      = 0x2C
	opSkip    = 0x2F
	opLit0    = 0x30
	opBreg0   = 0x70
	opDeref4  = 0x94 // DW_OP_deref_size, a byte with the size follows

	pcRelative4 = 0x1B // DW_EH_PE_pcrel | DW_EH_PE_sdata4
	udata4      = 0x03
	dataRel4    = 0x3B // DW_EH_PE_datarel | DW_EH_PE_sdata4
)

var (
	columnSP = byte(amd64.RSP.DWARF())
	columnRA = byte(amd64.DWARFReturnAddress)
)

// routineProgram is of code that is called, at its beginning: the return address is on the top of the stack.
var routineProgram = []byte{cfaDefCFA, columnSP, 8, cfaOffset | columnRA, 1}

// search appends the search for the row of the PC: the offset of the PC in the arena is on the stack then, and above it the row's address.
func (x *expression) search(base, table uint64, rows int) {
	next, lower, done := x.label(), x.label(), x.label()
	x.op(opBreg0+columnRA, 0).const8(base).op(opMinus)
	x.op(opLit0, opConst4u).u32(uint32(rows))
	x.place(next) // offset, lo, hi: the row is one of those from lo to before hi
	x.op(opDup, opPick, 2, opMinus, opLit0+1, opLE).jump(opBra, done)
	x.op(opOver, opOver, opPlus, opLit0+1, opShr)
	x.op(opDup).row(table).op(opDeref4, 4, opLit0+rowShift, opShr)
	x.op(opPick, 4, opGT).jump(opBra, lower)
	x.op(opRot, opSwap, opDrop).jump(opSkip, next)
	x.place(lower)
	x.op(opSwap, opDrop).jump(opSkip, next)
	x.place(done)
	x.op(opDrop).row(table)
}

// stubProgram is that of the stubs: nothing is saved, nothing moved but, where low says that it may be, the stack pointer, and the return
// address is what the table at table says of the PC.
func stubProgram(base, table uint64, rows int, low bool) []byte {
	x := &expression{}
	isCopy, end := x.label(), x.label()
	x.search(base, table, rows)
	x.op(opDup, opDeref4, 4, opLit0+rowCopy, opAnd).jump(opBra, isCopy)
	x.op(opPlusU, 4, opDeref4, 4).jump(opSkip, end)
	x.place(isCopy)
	x.op(opPlusU, 4, opDeref4, 4, opPlus)
	x.place(end)
	x.const8(frameBase(base)).op(opPlus)
	code := x.finish()

	p := []byte{cfaDefCFA, columnSP, 1}
	if low {
		x := &expression{}
		x.search(base, table, rows)
		// rowLow, shifted to be redZone
		x.op(opDeref4, 4, opLit0+rowLow, opAnd, opLit0+6, opShl, opBreg0+columnSP, 0, opPlus)
		code := x.finish()
		p = append(p, cfaValExpression, columnSP)
		p = binary.AppendUvarint(p, uint64(len(code)))
		p = append(p, code...)
	} else {
		p = append(p, cfaValExpression, columnSP, 2, opBreg0+columnSP, 0)
	}
	p = append(p, cfaValExpression, columnRA)
	p = binary.AppendUvarint(p, uint64(len(code)))
	return append(p, code...)
}

// expression is a DWARF expression being made.
type expression struct {
	buf    []byte
	labels []int
	jumps  []exprJump
}

type exprJump struct{ at, label int }

func (x *expression) op(b ...byte) *expression { x.buf = append(x.buf, b...); return x }

func (x *expression) u32(v uint32) *expression {
	x.buf = binary.LittleEndian.AppendUint32(x.buf, v)
	return x
}

func (x *expression) const8(v uint64) *expression {
	x.buf = binary.LittleEndian.AppendUint64(append(x.buf, opConst8u), v)
	return x
}

// row makes a row's number its address.
func (x *expression) row(table uint64) *expression {
	return x.op(opLit0+3, opShl).const8(table).op(opPlus)
}

func (x *expression) label() int {
	x.labels = append(x.labels, 0)
	return len(x.labels) - 1
}

func (x *expression) place(label int) { x.labels[label] = len(x.buf) }

func (x *expression) jump(op byte, label int) {
	x.op(op, 0, 0)
	x.jumps = append(x.jumps, exprJump{len(x.buf), label})
}

func (x *expression) finish() []byte {
	for _, j := range x.jumps {
		binary.LittleEndian.PutUint16(x.buf[j.at-2:], uint16(x.labels[j.label]-j.at))
	}
	return x.buf
}

// ehWriter writes .eh_frame_hdr and .eh_frame, one behind the other.
type ehWriter struct {
	base uint64
	buf  []byte
}

func (w *ehWriter) u32(v uint32) { w.buf = binary.LittleEndian.AppendUint32(w.buf, v) }

// header leaves space for the sorted table of n FDEs.
func (w *ehWriter) header(n int) {
	w.buf = append(w.buf, 1, pcRelative4, udata4, dataRel4)
	w.u32(uint32(12 + 8*n - 4)) // .eh_frame is behind the table
	w.u32(uint32(n))
	w.buf = append(w.buf, make([]byte, 8*n)...)
}

// entry ends an entry that began at start.
func (w *ehWriter) entry(start int) {
	for len(w.buf)%8 != 0 {
		w.buf = append(w.buf, 0) // DW_CFA_nop
	}
	binary.LittleEndian.PutUint32(w.buf[start:], uint32(len(w.buf)-start-4))
}

func (w *ehWriter) cie(augmentation string) int {
	start := len(w.buf)
	w.u32(0)
	w.u32(0)
	w.buf = append(w.buf, 1)
	w.buf = append(w.buf, augmentation...)
	w.buf = append(w.buf, 0, 1, 0x78, columnRA, 1, pcRelative4) // alignments 1 and -8
	w.entry(start)
	return start
}

func (w *ehWriter) fde(cie int, r unwindRange, program []byte) {
	start := len(w.buf)
	w.u32(0)
	w.u32(uint32(len(w.buf) - cie))
	w.u32(uint32(r.start - w.base - uint64(len(w.buf))))
	w.u32(uint32(r.end - r.start))
	w.buf = append(w.buf, 0)
	w.buf = append(w.buf, program...)
	w.entry(start)
}
