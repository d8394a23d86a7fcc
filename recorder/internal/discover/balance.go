package discover

import "github.com/callreel/callreel/isa/amd64"

// mostSteps is how many instructions of a function are looked at for how it keeps the stack.
const mostSteps = 4096

// balanced says whether nothing tells against the code being a function from start on, and before end: along all direct ways, what it takes from the
// stack it has put there, and it returns with the stack as it was. Where the stack pointer is set otherwise than by numbers the
// way isn't followed.
func (w *walker) balanced(start, end uint64) bool {
	type place struct {
		at     uint64
		height int
	}
	seen := map[uint64]int{}
	todo := []place{{start, 0}}
	var in amd64.Inst
	for steps := 0; len(todo) > 0; {
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for prev := amd64.Other; p.at >= start && p.at < end; prev = in.Kind {
			if p.at != start && w.isFirm(p.at) {
				break // another function
			}
			if before, ok := seen[p.at]; ok {
				if before != p.height {
					return false
				}
				break
			}
			if steps++; steps > mostSteps {
				return true
			}
			if w.left--; w.left < 0 {
				return false
			}
			seen[p.at] = p.height
			if amd64.DecodeTo(&in, w.Data[p.at-w.Start:]) != nil {
				return false
			}
			if prev == amd64.Call && in.IsPadding() {
				break // the call doesn't return, perhaps
			}
			if in.Kind == amd64.Return {
				if p.height != 0 {
					return false
				}
				break
			}
			delta, known := in.StackDelta()
			if !known {
				if p.height == 0 && fromFrame(&in) {
					return false // a frame that it hasn't made
				}
				break
			}
			if in.Kind != amd64.Call && in.Kind != amd64.IndirectCall {
				p.height += delta
			}
			if p.height > 0 { // it has taken its return address
				return false
			}
			if to, ok := in.Target(p.at); ok && in.Kind != amd64.Call {
				if to >= start && to < end && (to == start || !w.isFirm(to)) {
					todo = append(todo, place{to, p.height})
				} else if in.Kind == amd64.Jump && p.height != 0 {
					return false // it leaves with something on the stack: a part
				}
			}
			if in.Ends() {
				break
			}
			p.at += uint64(in.Len)
		}
	}
	return true
}

// fromFrame says whether an instruction sets the stack pointer from the frame pointer.
func fromFrame(in *amd64.Inst) bool {
	if in.Encoding != amd64.Legacy || in.Map != amd64.MapPrimary {
		return false
	}
	switch in.Opcode {
	case 0xC9: // leave
		return true
	case 0x8D:
		return amd64.Reg(in.Reg) == amd64.RSP && in.Base == int8(amd64.RBP)
	case 0x89:
		return !in.HasMem && amd64.Reg(in.RM) == amd64.RSP && amd64.Reg(in.Reg) == amd64.RBP
	case 0x8B:
		return !in.HasMem && amd64.Reg(in.Reg) == amd64.RSP && amd64.Reg(in.RM) == amd64.RBP
	}
	return false
}

// stack is how far the stack pointer is below its value at the start, as far as that can be told from instruction to instruction.
type stack struct {
	height int
	known  bool
	places [8]struct { // to which jumps lead, and how far it is there
		at     uint64
		height int
	}
	n int
}

// arrive is for an instruction that control comes to by a jump, or for the first.
func (s *stack) arrive(at uint64, first bool) {
	if s.known = first; first {
		*s = stack{known: true}
		return
	}
	for i := range s.places {
		if s.places[i].at == at {
			s.known, s.height = true, s.places[i].height
		}
	}
}

// leave is for a jump.
func (s *stack) leave(to uint64) {
	if s.known {
		p := &s.places[s.n%len(s.places)]
		p.at, p.height = to, s.height
		s.n++
	}
}

// step is for any instruction.
func (s *stack) step(in *amd64.Inst) {
	delta, known := in.StackDelta()
	s.height += delta
	s.known = s.known && known
}

// makesFrame says whether what stands at addr begins as functions do that keep something on the stack.
func (w *walker) makesFrame(addr, end uint64) bool {
	var in amd64.Inst
	const looked = 4 // instructions
	for range looked {
		if addr >= end || amd64.DecodeTo(&in, w.Data[addr-w.Start:]) != nil || in.Kind != amd64.Other {
			return false
		}
		if delta, known := in.StackDelta(); known && delta < 0 {
			return true
		}
		addr += uint64(in.Len)
	}
	return false
}

// isFirm says whether surely a function begins at an address of the gap's text: a call or data leads there.
func (w *walker) isFirm(addr uint64) bool {
	off := addr - w.Start
	return w.called.has(off) || w.pointed.has(off) && !w.label.has(off)
}
