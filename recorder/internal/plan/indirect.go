package plan

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/callreel/callreel/isa/amd64"
)

// made is how the target of an indirect jump is made; several of them where control comes in several ways.
type made uint8

const (
	madePointer made = 1 << iota // given to the function, returned by a call, or loaded from within something
	madeLoaded                   // loaded from an array or from where a pointer leads: a label's address, perhaps
	madeSwitch                   // loaded from an array of addresses in this function
	madeOffset                   // an offset added to the address of its table
	madeByTable                  // with madeOffset: the table is known, in each of the ways
	madeLabel                    // the address of code that the instructions name
	madeOther                    // computed in some other way
)

// leaves says whether an indirect jump leaves the function (a tail call through a pointer) or is internal (a switch, a
// computed goto); ok is false when that, or where an internal one goes, isn't known. Where the stack frame isn't gone it
// is internal; where it is, or isn't known, the way the target was made tells.
//
// Labels whose addresses are in data whole were all found, by relocations or word by word. A table of offsets must
// have been found for this very jump.
func (p *planner) leaves(k int) (leaves, ok bool) {
	known, gone := p.frames.gone(p.insts[k].addr)
	how := p.targetOf(k)
	labels := p.hasLabels()
	switch {
	case how&madeOther != 0:
		return false, false
	case how&madeOffset != 0:
		return false, how&madeByTable != 0
	case how == madeLabel:
		return false, true
	case known && !gone, how == madeSwitch:
		return false, labels
	}
	// A tail call, unless the pointer may be that of a label.
	return true, !labels || known && how&madeLoaded == 0
}

// hasLabels says whether data holds addresses inside the function.
func (p *planner) hasLabels() bool {
	for _, i := range p.im.partsOf(p.f) {
		if p.im.labelled.has(uint64(i)) {
			return true
		}
	}
	return false
}

// How many instructions are looked at for those that made a jump's target: for one jump, and for all of a function as
// many as it has instructions and some more. What takes longer isn't known.
const (
	maxTraced   = 512
	spareTraces = 1 << 16
)

// targetOf looks how the target of the indirect jump insts[k] is made, back along all the ways by which control comes to
// it. Where the search ends with nothing found, the target came as an argument.
func (p *planner) targetOf(k int) made {
	in := &p.insts[k]
	reg := amd64.Reg(in.RM)
	switch {
	case in.thunk.is && !in.thunk.known:
		return madeOther
	case in.thunk.is:
		reg = in.thunk.reg
	case in.HasMem:
		return p.loadedBy(in)
	}
	tr := &p.tracer
	tr.begin(p)
	tr.add(k, reg)
	return tr.run()
}

// tracer follows a register's value back to the instructions that made it. Its buffers are reused.
type tracer struct {
	p     *planner
	seen  map[int]bool
	todo  []traced
	found made
	bad   bool // an offset was added to a table that isn't known
}

// traced is a register whose value before insts[k] is asked for.
type traced struct {
	k   int
	reg amd64.Reg
}

// begin makes the tracer ready for another jump.
func (tr *tracer) begin(p *planner) {
	if tr.seen == nil {
		tr.seen = map[int]bool{}
	}
	clear(tr.seen)
	tr.p, tr.todo, tr.found, tr.bad = p, tr.todo[:0], 0, false
}

// add asks for the value of a register before insts[k], in each instruction that control comes from.
func (tr *tracer) add(k int, reg amd64.Reg) {
	p := tr.p
	jumps := p.jumpsTo(p.insts[k].addr)
	for _, j := range jumps[:min(len(jumps), maxTraced)] {
		tr.todo = append(tr.todo, traced{j.k, reg})
	}
	if k > 0 && p.insts[k-1].end() == p.insts[k].addr && !p.insts[k-1].Ends() {
		tr.todo = append(tr.todo, traced{k - 1, reg})
	}
}

func (tr *tracer) run() made {
	for len(tr.todo) > 0 && len(tr.seen) < maxTraced {
		next := tr.todo[len(tr.todo)-1]
		tr.todo = tr.todo[:len(tr.todo)-1]
		if key := next.k<<4 | int(next.reg); !tr.seen[key] {
			tr.seen[key] = true
			tr.visit(next.k, next.reg)
		}
	}
	if tr.p.traces += len(tr.seen); tr.p.traces > spareTraces+len(tr.p.insts) {
		return madeOther
	}
	switch {
	case tr.found == 0:
		return madePointer
	case tr.found&madeOffset != 0 && !tr.bad:
		return tr.found | madeByTable
	}
	return tr.found
}

// visit looks whether insts[k] makes the register's value.
func (tr *tracer) visit(k int, reg amd64.Reg) {
	d := &tr.p.insts[k]
	switch {
	case d.Kind == amd64.Call || d.Kind == amd64.IndirectCall:
		if callerSaved&reg.Mask() != 0 {
			tr.found |= madePointer // what the call returned
			return
		}
	case d.GPRWritten()&reg.Mask() != 0:
		if source, ok := copiedFrom(d, reg); ok {
			tr.add(k, source)
			return
		}
		if isCMov(d) { // the value it had, or another
			tr.add(k, reg)
			if d.HasMem {
				tr.found |= tr.p.loadedBy(d)
			} else {
				tr.add(k, amd64.Reg(d.RM))
			}
			return
		}
		how, added := tr.p.madeBy(d, reg)
		tr.found |= how
		if how == madeOffset && !tr.p.hasTable(k, added) {
			tr.bad = true
		}
		return
	}
	tr.add(k, reg)
}

// callerSaved are the registers that a call may change (System V AMD64 ABI §3.2.1).
const callerSaved = uint16(1<<amd64.RAX | 1<<amd64.RCX | 1<<amd64.RDX | 1<<amd64.RSI | 1<<amd64.RDI | 1<<amd64.R8 | 1<<amd64.R9 | 1<<amd64.R10 | 1<<amd64.R11)

// jump is a direct jump of the function, insts[k].
type jump struct {
	to uint64
	k  int
}

// jumpsTo returns the function's direct jumps to addr.
func (p *planner) jumpsTo(addr uint64) []jump {
	if !p.sorted {
		p.sorted, p.jumps = true, p.jumps[:0]
		for k := range p.insts {
			in := &p.insts[k]
			if to, ok := in.Target(in.addr); ok && in.Kind != amd64.Call {
				p.jumps = append(p.jumps, jump{to, k})
			}
		}
		slices.SortFunc(p.jumps, func(a, b jump) int { return cmp.Or(cmp.Compare(a.to, b.to), cmp.Compare(a.k, b.k)) })
	}
	byTarget := func(j jump, to uint64) int { return cmp.Compare(j.to, to) }
	from, _ := slices.BinarySearchFunc(p.jumps, addr, byTarget)
	n, _ := slices.BinarySearchFunc(p.jumps[from:], addr+1, byTarget)
	return p.jumps[from:][:n]
}

// copiedFrom returns the register that the instruction copies into reg.
func copiedFrom(d *inst, reg amd64.Reg) (amd64.Reg, bool) {
	if d.Encoding != amd64.Legacy || d.Map != amd64.MapPrimary || d.HasMem || d.REX&amd64.RexW == 0 {
		return 0, false
	}
	switch {
	case d.Opcode == 0x8B && amd64.Reg(d.Reg) == reg:
		return amd64.Reg(d.RM), true
	case d.Opcode == 0x89 && amd64.Reg(d.RM) == reg:
		return amd64.Reg(d.Reg), true
	}
	return 0, false
}

// isCMov says whether the instruction is a conditional move of 64 bits (Intel SDM vol. 2, CMOVcc).
func isCMov(d *inst) bool {
	return d.Encoding == amd64.Legacy && d.Map == amd64.Map0F && d.Opcode>>4 == 4 && d.REX&amd64.RexW != 0
}

// madeBy says what an instruction that writes the target's register makes of it, and for madeOffset which registers it
// adds.
func (p *planner) madeBy(d *inst, reg amd64.Reg) (how made, added uint16) {
	if d.Encoding != amd64.Legacy || d.Map != amd64.MapPrimary {
		return madeOther, 0
	}
	switch op := d.Opcode; op {
	case 0x01, 0x03: // add
		if !d.HasMem {
			return madeOffset, 1<<(d.Reg&15) | 1<<(d.RM&15)
		}
	case 0x8B: // mov
		return p.loadedBy(d), 0
	case 0x8D: // lea
		to, ok := d.MemTarget(d.addr)
		switch {
		case ok && p.im.inFunction(p.f, to):
			return madeLabel, 0
		case ok:
			return madePointer, 0
		case d.Index != amd64.NoReg && d.Base != amd64.NoReg && d.Scale == 1 && d.Disp == 0:
			return madeOffset, 1<<uint(d.Base) | 1<<uint(d.Index)
		}
	case 0x33: // xor with the thread's secret undoes how C libraries hide pointers
		if d.HasMem && d.Prefixes&amd64.SegFS != 0 {
			return madePointer, 0
		}
	default:
		switch {
		case op>>3 == 0x58>>3 || op == 0x8F: // pop
			return madePointer, 0
		case op>>3 == 0xB8>>3 && p.im.inFunction(p.f, uint64(d.Imm)): // mov of an immediate
			return madeLabel, 0
		case op>>3 == 0xB8>>3:
			return madePointer, 0
		}
	}
	return madeOther, 0
}

// loadedBy says what an instruction loads: from an array at a fixed address that holds labels of this function, from some
// other array, or a pointer from within something.
func (p *planner) loadedBy(d *inst) made {
	switch {
	case d.Index == amd64.NoReg && (d.Disp != 0 || d.RIPRelative):
		return madePointer
	case d.Index != amd64.NoReg && d.Base != amd64.NoReg && d.Scale == 8 && d.Disp == 0 && p.labelRegs()&(1<<(d.Base&15)) != 0:
		return madeSwitch
	case d.Index == amd64.NoReg || d.Base != amd64.NoReg || d.Disp <= 0:
		return madeLoaded
	}
	b, err := p.im.Object.ReadAddr(uint64(d.Disp), 8*looked)
	if err != nil {
		return madeLoaded
	}
	for ; len(b) > 0; b = b[8:] {
		if to := binary.LittleEndian.Uint64(b); p.im.inFunction(p.f, to) && to != p.insts[0].addr {
			return madeSwitch
		}
	}
	return madePointer
}

// looked is how many words of an array are looked at for labels; the first may belong to an index that there is not.
const looked = 4

// labelRegs are the registers into which the function loads addresses of arrays that relocations fill with labels of this function: a
// computed goto's table. It is loaded once, and used at each of its jumps. If the register also holds some other array, a tail call by it
// is taken for a jump within: its exit is missed then, and nothing worse, since all labels are known.
func (p *planner) labelRegs() uint16 {
	if p.labelled {
		return p.labels
	}
	p.labelled, p.labels = true, 0
	if p.hasLabels() {
		p.labels = p.loadedWith(p.holdsLabels)
	}
	return p.labels
}

// loadedWith are the registers into which the function loads addresses of that kind.
func (p *planner) loadedWith(kind func(addr uint64) bool) (regs uint16) {
	for j := range p.insts {
		d := &p.insts[j]
		if addr, ok := d.MemTarget(d.addr); ok && isLea(&d.Inst) && kind(addr) {
			regs |= 1 << (d.Reg & 15)
		}
	}
	return regs
}

// holdsLabels says whether relocations put labels of this function into one of the first words of an array.
func (p *planner) holdsLabels(base uint64) bool {
	list := p.im.labels
	i, _ := slices.BinarySearchFunc(list, base, func(l label, at uint64) int { return cmp.Compare(l.at, at) })
	for ; i < len(list) && list[i].at-base < 8*looked; i++ {
		if (list[i].at-base)%8 == 0 && p.im.inFunction(p.f, list[i].to) {
			return true
		}
	}
	return false
}

// hasTable says whether the table of offsets that a jump goes by was found. insts[k] adds its address, in one of regs, to
// the offset.
func (p *planner) hasTable(k int, regs uint16) bool {
	const near = 64
	for reg := amd64.RAX; reg <= amd64.R15; reg++ {
		if regs&reg.Mask() == 0 {
			continue
		}
		for j := k - 1; j >= max(0, k-near); j-- {
			d := &p.insts[j]
			if d.GPRWritten()&reg.Mask() == 0 {
				continue
			}
			if base, ok := d.MemTarget(d.addr); ok && isLea(&d.Inst) {
				return p.isTable(base)
			}
			break
		}
	}
	// The address was computed long before, outside of a loop.
	return regs&p.tableRegs() != 0
}

// tableRegs are the registers into which the function loads addresses of tables that were found.
func (p *planner) tableRegs() uint16 {
	if !p.tabled {
		p.tabled, p.tables = true, p.loadedWith(p.isTable)
	}
	return p.tables
}

// isTable says whether a table of offsets from base was found.
func (p *planner) isTable(base uint64) bool {
	_, found := slices.BinarySearch(p.offsets, base)
	return found
}
