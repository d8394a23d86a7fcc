package plan

import (
	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/recorder/internal/golang"
)

// assemblyARM64 is what the look at assembly of Go programs asks of arm64.
func assemblyARM64() assemblyCode {
	return assemblyCode{all: liveFlags | golang.ScratchARM64, steps: (*Image).stepsOfARM64}
}

// stepsOfARM64 decodes a chunk. What is no instruction, as in a pool of literals, is udf.
func (im *Image) stepsOfARM64(c *chunk) (steps []step, behindCheck int) {
	t := im.textAt(c.start)
	words := make([]arm64.Inst, (c.end-c.start)/arm64.Len)
	steps = make([]step, len(words))
	for k := range words {
		pc := c.start + uint64(k)*arm64.Len
		if arm64.DecodeWord(&words[k], t.word(pc)) != nil {
			words[k] = arm64.Inst{Kind: arm64.Undefined, Base: arm64.NoReg}
		}
		steps[k] = stepOfARM64(words, k, pc)
	}
	return steps, golang.StackCheckARM64(len(words), func(k int) *arm64.Inst { return &words[k] })
}

func stepOfARM64(words []arm64.Inst, k int, pc uint64) step {
	in := &words[k]
	s := step{addr: pc, on: !in.Ends()}
	to, _ := in.Target(pc)
	switch in.Kind {
	case arm64.Syscall, arm64.Breakpoint, arm64.Undefined:
		return s // as on x86-64
	case arm64.Return:
		s.kind = stepReturn
	case arm64.Call:
		s.kind, s.to = stepCall, to
	case arm64.IndirectCall:
		s.kind = stepTable // what loads from a table comes before
	case arm64.Jump, arm64.CondJump:
		s.kind, s.to = stepJump, to
	case arm64.IndirectJump:
		s.kind = stepWild
		if to, known := ledToARM64(words, k, pc); known {
			s.kind, s.to = stepJump, to
		}
	}
	s.read = goLive(in.GPRRead() & golang.ScratchARM64)
	if in.FlagsRead() {
		s.read |= liveFlags
	}
	if in.Class != arm64.SVE && in.Class != arm64.SME { // of which more is said to be written than is
		s.writes = goLive(in.GPRWritten() & golang.ScratchARM64)
		if in.FlagsWritten() {
			s.writes |= liveFlags
		}
	}
	return s
}

// ledToARM64 is where an indirect jump goes whose register was given a function's address just before, by adrp and add.
func ledToARM64(words []arm64.Inst, k int, pc uint64) (uint64, bool) {
	if k < 2 {
		return 0, false
	}
	page, low, r := &words[k-2], &words[k-1], words[k].Rn()
	at, ok := page.MemTarget(pc - 2*arm64.Len)
	if !ok || !page.IsADRP() || page.Rd() != r {
		return 0, false
	}
	const addImm64 = 0x91000000 // Arm ARM C6.2.5, of 64 bits, not shifted
	return at + uint64(low.Immediate()), low.Word&0xFFC00000 == addImm64 && low.Rd() == r && low.Rn() == r
}
