//go:build !arm64

package step

import (
	"github.com/callreel/callreel/cfi"
	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/object"
)

// What is compared is of x86-64 (System V AMD64 ABI §3.2), on other processors, too: there nothing is run.
const (
	architecture  = object.AMD64
	registerCount = 16
	dwarfSP       = 7
	bitRA         = 16
	columnPC      = 16    // by which expressions ask for the program counter
	asmRA         = "rip" // the return address's column in directives
	entryCFA      = 8     // the CFA less the stack pointer there
	redZone       = 128   // what a function may use below its stack pointer
	trap          = "\xCC"
)

// calleeSaved are the DWARF numbers of the registers that calls keep besides the stack pointer (System V AMD64 ABI §3.2.1).
var calleeSaved = [...]uint32{3, 6, 12, 13, 14, 15}

// name is a register's name by its DWARF number.
func name(reg uint32) string { return amd64.DWARFName(int(reg)) }

// signing is what there is to know of a return address that is signed: none is.
type signing struct{}

// inst is an instruction.
type inst = amd64.Inst

func size(in *inst) uint64   { return uint64(in.Len) }
func goesOn(in *inst) bool   { return in.Kind == amd64.Other }
func isReturn(in *inst) bool { return in.Kind == amd64.Return }

// intact says whether the call returns to where it did when it began.
func (c *comparison) intact() bool {
	ra, ok := c.word(c.call.cfa - 8)
	return c.regs.sp() >= c.call.cfa || ok && ra == c.call.ra
}

// holdRA compares what the rule of the return address gives with the truth.
func (c *comparison) holdRA(rule *cfi.Rule) { c.hold(bitRA, rule, c.call.ra) }

// inst decodes the instruction at a link address; the zero Inst where there is none.
func (im *image) inst(addr uint64) inst {
	if in, ok := im.code[addr]; ok {
		return in
	}
	var in inst
	for n := uint64(amd64.MaxLen); n > 0; n-- {
		if code, err := im.object.ReadAddr(addr, n); err == nil {
			in, _ = amd64.Decode(code)
			break
		}
	}
	im.code[addr] = in
	return in
}

// comesFromCall says whether a link address is one to which a call returns, or where the kernel lets signal handlers return.
func (im *image) comesFromCall(addr uint64) bool {
	const shortest, longest = 2, 8
	for n := uint64(shortest); n <= longest; n++ {
		code, err := im.object.ReadAddr(addr-n, n)
		if err != nil {
			continue
		}
		in, err := amd64.Decode(code)
		if err == nil && uint64(in.Len) == n && (in.Kind == amd64.Call || in.Kind == amd64.IndirectCall) {
			return true
		}
	}
	code, err := im.object.ReadAddr(addr, uint64(len(restorer)))
	return err == nil && string(code) == restorer
}

// restorer is mov $15, %rax; syscall: rt_sigreturn(2), in the one form that unwinders know.
const restorer = "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05"
