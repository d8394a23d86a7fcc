package lint

import "github.com/callreel/callreel/object"

// processor is what lint has to know of an instruction set and its conventions for calls. Registers have numbers of lint's own, which
// are those of the instructions where there are any; below returnAddress.
type processor struct {
	registers      int    // how many are followed
	sp, fp         int    // the stack and the frame pointer
	ra             int32  // the id of the return address on entry: that of a register, or returnAddress, which is at the stack pointer
	entryCFA       int64  // the CFA less the stack pointer, where a call enters
	calleeSaved    uint64 // a bit for each register that calls keep, the stack pointer left out
	callerSaved    uint64 // and that they need not keep
	pc             uint32 // the DWARF number by which expressions ask for the program counter
	minLen         uint64 // bytes of an instruction
	maxLen         uint64
	mixedEpilogues bool // other instructions may stand between those of an epilogue
	earlyEpilogues bool // rows may go over to the stack pointer before an epilogue's first instruction
	latePrologues  bool // rows for calls only leave prologues out, too
	lazyPLT        bool // entries of .plt jump to its first one, and go on behind their jump

	general func(dwarf uint32) (int, bool) // the register with a DWARF number, if it is followed
	dwarf   func(r int) uint32
	names   func(dwarf uint32) string
	asm     func(r int) string // as directives have it

	// decode reads the instruction at addr; false if it is none.
	decode func(in *inst, code []byte, addr uint64) bool
	// step changes the effects' state to that behind an instruction.
	step func(e *effects, in *inst)
	// joins fills in what an instruction names together with the one before it. Nil: nothing.
	joins func(before, in *inst)
	// table returns where an indirect jump through a table leads; nothing when anything about it is in doubt.
	table func(f *function, id int32, before []int32, read func(addr, n uint64) ([]byte, error)) []uint64

	written func(in *inst) uint64 // the general registers that it may write
	shrinks func(in *inst) bool   // it takes something off the stack, as epilogues do
	taken   func(in *inst) int64  // how much, as far as the instruction says it
	// ofEpilogue says whether an instruction that takes nothing off the stack is of epilogues only.
	ofEpilogue func(in *inst) bool
	// above says whether a conditional jump is one for values above those of a table.
	above func(in *inst) bool
	// equal returns the register that is equal to the stack pointer where control goes on behind a conditional jump after a comparison.
	equal func(compare, jump *inst) (int, bool)
	// varies says whether the place that an instruction makes is at another distance from the CFA from call to call; before, which may
	// be nil, is the one that control comes from.
	varies func(in, before *inst) bool
	// relies returns the register, as a bit, by which a return goes; 0 for the one that always does, or none.
	relies func(in *inst) uint64
	// leaves says whether an indirect jump is by what only jumps to other functions go by.
	leaves func(in *inst) bool
}

// processorOf returns the processor of an architecture whose code is followed, nil for others.
func processorOf(arch object.Arch) *processor {
	switch arch {
	case object.AMD64:
		return newAMD64()
	case object.ARM64:
		return newARM64()
	}
	return nil
}

// entry is what a register, or the return address, held on entry.
func (p *processor) entry(id int32) value { return value{kind: entry, id: id, may: p.mayHold(id)} }

// mayHold is what a value may be that is that of register id on entry.
func (p *processor) mayHold(id int32) may {
	if id == p.ra || p.calleeSaved>>id&1 != 0 {
		return mayEntry
	}
	return mayArg
}

// cannotHold says whether a value certainly is something else than what register id held on entry.
func (p *processor) cannotHold(v value, id int32) bool {
	return !v.holds(id) && (v.kind == entry || v.maybe()&p.mayHold(id) == 0)
}

// name is a register's name.
func (p *processor) name(r int) string { return p.names(p.dwarf(r)) }

// keepsRA says whether a register holds the return address on entry.
func (p *processor) keepsRA() bool { return p.ra < returnAddress }
