package plan

import (
	"cmp"

	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/recorder/internal/golang"
)

// A Go program's functions are planned by the rules of all, with these of their own: the entry's event comes behind the check whether the stack
// is large enough, to which those come back that have made it larger; what is in assembly is left alone where it may have something in the
// registers that an event takes (see goassembly.go); and all of a function that may leave it must have been reached.
//
// The one instruction that is moved from an entry is what makes the frame, or the first one of a function without a frame. If it faults there, since it
// looks through a nil pointer, the return address is in the link register, and the runtime takes the fault for one of the caller's
// (runtime/signal_unix.go, shouldPushSigpanic). At a return nothing is moved that may fault.

// withoutZeros returns where what fills up a function begins, on arm64.
func (t *text) withoutZeros(start, end uint64) uint64 {
	for end > start+arm64.Len && t.word(end-arm64.Len) == 0 {
		end -= arm64.Len
	}
	return end
}

// markResumes notes the places where functions go on that have recovered from a panic, to which nothing leads.
func (im *Image) markResumes() {
	if im.Go == nil || im.Go.DeferReturn == 0 {
		return
	}
	for i := range im.chunks {
		c := &im.chunks[i]
		if c.assembly {
			continue
		}
		t := im.textAt(c.start)
		for pc := c.start; pc+arm64.Len <= c.end; pc += arm64.Len {
			var in arm64.Inst
			if t.word(pc)>>26 != 0x94000000>>26 || arm64.DecodeWord(&in, t.word(pc)) != nil {
				continue
			}
			if to, ok := in.Target(pc); ok && to == im.Go.DeferReturn {
				t.take(pc)
			}
		}
	}
}

// resolveGo looks at an indirect jump of a Go function. The compiler makes none but that of a switch, whose table is among the labels in data:
//
//	ldr x27, [table, index, lsl #3]; br x27
func (w *walker) resolveGo(k int) {
	const temporary = 27
	in := &w.words[k]
	if k > 0 && in.Rn() == temporary {
		load := &w.words[k-1]
		if load.reached && load.end() == in.addr && load.Class == arm64.Load && load.Index && load.Size == 8 && load.Rd() == temporary {
			return
		}
	}
	w.lost = cmp.Or(w.lost, in.addr)
}

// goEntry chooses the entry site of a Go function.
func (p *wordPlanner) goEntry() (at int, why Reason) {
	s := p.spans[0]
	k := s.from + golang.StackCheckARM64(s.to-s.from, func(k int) *arm64.Inst { return &p.words[s.from+k].Inst })
	switch in := &p.words[k]; {
	case !in.known:
		return k, ReasonUndecodable
	case !in.displaceable():
		return k, ReasonInstruction
	}
	return k, ReasonNone
}

// closesGo refuses a function with a return to which nothing is known to lead.
func (p *wordPlanner) closesGo() refusal {
	for k := range p.words {
		if in := &p.words[k]; in.known && !in.reached && in.Kind == arm64.Return {
			return refusal{ReasonJump, in.addr}
		}
	}
	return refusal{}
}
