package step

import (
	"github.com/callreel/callreel/cfi"
	"github.com/callreel/callreel/cfi/lint"
	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/object"
)

// What is compared is of AArch64 (Procedure Call Standard for the Arm 64-bit Architecture §6.1). Of vector registers nothing is: ptrace gives
// them apart.
const (
	architecture  = object.ARM64
	registerCount = 32
	dwarfSP       = arm64.SP
	bitRA         = arm64.LR
	columnPC      = arm64.PC
	asmRA         = "x30"
	entryCFA      = 0
	redZone       = 0
	trap          = "\x00\x00\x20\xD4" // brk #0
)

// calleeSaved are the DWARF numbers of the registers that calls keep besides the stack pointer.
var calleeSaved = [...]uint32{19, 20, 21, 22, 23, 24, 25, 26, 27, 28, arm64.FP}

// name is a register's name by its DWARF number.
func name(reg uint32) string { return arm64.DWARFName(int(reg)) }

// signing is what a call has done to its return address.
type signing struct {
	signed  bool   // it is signed where it is to be found
	unknown bool   // something else was done to it
	at      uint64 // where in memory it is, 0 for nowhere
	stored  uint64 // what is there
}

// inst is an instruction.
type inst = arm64.Inst

func size(*inst) uint64      { return arm64.Len }
func goesOn(in *inst) bool   { return in.Kind == arm64.Other }
func isReturn(in *inst) bool { return in.Kind == arm64.Return }

// intact says whether the call returns to where it did when it began, as far as it has stored its return address.
func (c *comparison) intact() bool {
	if c.call.at == 0 || c.regs.sp() > c.call.at {
		return true
	}
	v, ok := c.word(c.call.at)
	return ok && v == c.call.stored
}

// addressBits are those of an address that a signature leaves alone.
const addressBits = 1<<48 - 1

// holdRA compares what the rule of the return address gives with the truth, and what the row says of its signature.
func (c *comparison) holdRA(rule *cfi.Rule) {
	v, ok := c.value(bitRA, rule)
	if c.row.RASigned {
		v &= addressBits
	}
	if rule.Kind == cfi.Undefined || ok && v == c.call.ra {
		if c.row.RASigned != c.call.signed && !c.call.unknown {
			c.mark.set(bitSign, wrongSigning(c.call.signed))
		}
		return
	}
	if c.mark.wrong>>bitRA&1 == 0 {
		if ok && v&addressBits == c.call.ra && c.call.signed && !c.call.unknown {
			c.mark.set(bitSign, wrongSigning(true))
			return
		}
		c.mark.set(bitRA, c.wrongRule(bitRA, rule, c.call.ra))
	}
}

// wrongSigning is the issue of a row that says the contrary.
func wrongSigning(signed bool) *issue {
	i := &issue{kind: lint.WrongRA, says: "ra is signed", truth: "ra is not signed", directive: ".cfi_negate_ra_state"}
	if signed {
		i.says, i.truth = i.truth, i.says
	}
	return i
}

// inst decodes the instruction at a link address; the zero Inst where there is none.
func (im *image) inst(addr uint64) inst {
	if in, ok := im.code[addr]; ok {
		return in
	}
	var in inst
	if code, err := im.object.ReadAddr(addr, arm64.Len); err == nil {
		in, _ = arm64.Decode(code)
	}
	im.code[addr] = in
	return in
}

// comesFromCall says whether a link address is one to which a call returns.
func (im *image) comesFromCall(addr uint64) bool {
	in := im.inst(addr - arm64.Len)
	return in.Kind == arm64.Call || in.Kind == arm64.IndirectCall
}
