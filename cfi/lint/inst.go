package lint

import (
	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/isa/arm64"
)

// way says where control goes on behind an instruction.
type way uint8

const (
	goesOn       way = iota
	jump             // direct
	condJump         //
	call             // direct
	indirectCall     //
	indirectJump     //
	returns          //
	syscall          //
	breakpoint       //
	special          // what no compiler's functions have: transactions, far branches, halts
)

// inst is an instruction. What lint asks of any is in the fields; only the files of a processor look at the decoded one, of which
// just the processor's own is filled in.
type inst struct {
	way     way
	size    uint8 // bytes
	ends    bool  // control never goes on behind it
	padding bool  // it stands between functions
	nop     bool
	direct  bool // it leads to target
	named   bool // it has the address data relative to its own
	target  uint64
	data    uint64

	x86 amd64.Inst
	a64 arm64.Inst
}

func (in *inst) calls() bool { return in.way == call || in.way == indirectCall }

// leadsTo returns where a branch other than a call leads.
func (in *inst) leadsTo() (uint64, bool) { return in.target, in.direct && in.way != call }
