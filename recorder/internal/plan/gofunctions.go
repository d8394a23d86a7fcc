package plan

import (
	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/golang"
)

// findGoChunks makes the chunks of a Go program.
func (im *Image) findGoChunks() {
	for i := range im.Go.Functions {
		f := &im.Go.Functions[i]
		t := im.textAt(f.Start)
		if t == nil || f.End > t.end || f.End == f.Start {
			continue
		}
		if f.Resumes != 0 {
			im.markTarget(f.Resumes)
		}
		im.markTarget(f.Start)
		im.chunks = append(im.chunks, chunk{start: f.Start, end: im.processor.padded(t, f.Start, f.End), hook: hookOf(f.Name),
			names: names{uint32(len(im.names)), 1}, assembly: f.Assembly})
		im.names = append(im.names, f.Name)
	}
	for i := range im.chunks {
		im.chunks[i].owner = int32(i)
	}
}

// withoutPadding returns where what fills up a function begins, on x86-64.
func (t *text) withoutPadding(start, end uint64) uint64 {
	last := end
	for pc := start; pc < end; {
		in, err := amd64.Decode(t.data[pc-t.start : end-t.start])
		if err != nil {
			return end
		}
		pc += uint64(in.Len)
		if in.Kind != amd64.Breakpoint {
			last = pc
		}
	}
	return last
}

// goReasons are the reasons for the causes.
var goReasons = [...]Reason{golang.CauseNone: ReasonNone, golang.CauseUnexpected: ReasonGo, golang.CauseVersion: ReasonGoVersion, golang.CauseC: ReasonCgo}

// GoReason is why none of a Go program's functions is probed, ReasonNone if they may be.
func GoReason(g *golang.Program) Reason { return goReasons[g.Cause] }

// behindStackCheck is the index of the first instruction behind the check whether the stack is large enough, 0 if there is none.
func behindStackCheck(insts []inst) int {
	return golang.StackCheck(len(insts), func(k int) *amd64.Inst { return &insts[k].Inst })
}

// movable says whether the instruction can run in the stub.
func (p *planner) movable(in *inst) bool {
	return in.movable() && (p.im.Go == nil || p.frameless || !golang.MayPanic(&in.Inst))
}

// isFrameless says whether the return address is on top of the stack in all of the function.
func (p *planner) isFrameless() bool {
	for k := range p.insts {
		in := &p.insts[k]
		if d, known := in.StackDelta(); in.Kind != amd64.Return && (!known || d != 0 || in.Kind == amd64.Call || in.Kind == amd64.IndirectCall) {
			return false
		}
	}
	return true
}

// goIndirect finds out whether an indirect jump of a Go function is an exit. There are but two kinds: those by a table of a
// switch, whose words are found in data, and tail calls.
func (p *planner) goIndirect(in *inst) refusal {
	if in.HasMem && in.Index != amd64.NoReg {
		return refusal{}
	}
	if in.HasMem && in.Base == int8(amd64.RSP) || in.GPRRead()&(golang.Scratch|amd64.RSP.Mask()) != 0 {
		return refusal{ReasonInstruction, in.addr}
	}
	in.role = roleExit
	return refusal{}
}
