package plan

import (
	"github.com/callreel/callreel/isa/amd64"
)

// eventAMD64 are the registers that an event of a Go function changes (goevent.go).
const eventAMD64 = 1<<amd64.R12 | 1<<amd64.R13 | 1<<amd64.R15

// assemblyAMD64 is what the look at assembly of Go programs asks of x86-64, where an event changes r12, r13, r15 and the flags.
func assemblyAMD64() assemblyCode {
	return assemblyCode{
		all: liveFlags | eventAMD64,
		steps: func(im *Image, c *chunk) ([]step, int) {
			insts := im.instsOf(c)
			steps := make([]step, len(insts))
			for k := range insts {
				steps[k] = stepOfAMD64(insts, k)
			}
			return steps, behindStackCheck(insts)
		},
	}
}

// instsOf decodes a chunk.
func (im *Image) instsOf(c *chunk) []inst {
	var insts []inst
	t := im.textAt(c.start)
	for pc := c.start; pc < c.end; {
		in := inst{addr: pc}
		if !t.decode(&in.Inst, pc, c.end) {
			break
		}
		pc += uint64(in.Len)
		insts = append(insts, in)
	}
	return insts
}

func stepOfAMD64(insts []inst, k int) step {
	in := &insts[k]
	s := step{addr: in.addr, on: !in.Ends()}
	to, direct := in.Target(in.addr)
	switch in.Kind {
	case amd64.Syscall, amd64.Breakpoint, amd64.Undefined:
		return s // the kernel, or a handler, gets all registers and flags, but does not go by these
	case amd64.Return:
		s.kind = stepReturn
	case amd64.Call:
		if s.kind = stepThrough; direct {
			s.kind, s.to = stepCall, to
		}
	case amd64.IndirectCall:
		if s.kind = stepThrough; in.HasMem && in.Index != amd64.NoReg {
			s.kind = stepTable
		}
	case amd64.Jump, amd64.CondJump, amd64.ShortLoop:
		s.kind, s.to = stepJump, to
	case amd64.IndirectJump:
		s.kind = stepWild
		if to, known := ledToAMD64(insts, k); known {
			s.kind, s.to = stepJump, to
		}
	}
	s.read, s.writes = goLive(in.GPRRead()&eventAMD64), goLive(in.GPRWritten()&eventAMD64)
	if in.FlagsRead() {
		s.read |= liveFlags
	}
	if in.FlagsWritten() {
		s.writes |= liveFlags
	}
	return s
}

// ledToAMD64 is where an indirect jump goes whose register was given a function's address just before.
func ledToAMD64(insts []inst, k int) (uint64, bool) {
	in := &insts[k]
	if k == 0 || in.HasMem {
		return 0, false
	}
	before := &insts[k-1]
	to, ok := before.MemTarget(before.addr)
	lea := before.Map == amd64.MapPrimary && before.Opcode == 0x8D && before.Reg == in.RM
	return to, ok && lea && before.RIPRelative
}
