package discover

import (
	"github.com/callreel/callreel/isa/amd64"
)

// segment is a run of code that may be a function.
type segment struct {
	Range
	evidence Evidence
	jumped   bool // a jump leads to its start
	branch   bool // a conditional one
	balanced bool // nothing in how it keeps the stack tells against its being a function
	returns  bool // it has a return, or leaves by a jump
	frame    bool // it stands where functions are aligned, and begins as they do
	label    bool // a table of jumps leads to its start
	padded   bool // padding is before it, or it stands where functions are aligned
	sound    bool // it is code throughout, and control doesn't run out of its end
	jumps    []uint64
}

// divide divides a gap into functions, one after the other. Behind what is no code only functions that are called are believed:
// there is data among the code, such as the tables that GHC puts before each function, and what follows it may be more of that.
func (s *state) divide(gap Range) (out []segment) {
	m := s.marks(gap.Start)
	w := walker{s: s, marks: m, gap: gap, left: 64 * int(min(gap.End-gap.Start, 1<<40))}
	w.labels = allLabels * int(1+(gap.End-gap.Start)/shard)
	at, between := w.skipPadding(gap.Start)
	trusted, firm, prev := true, false, amd64.Return
	for at < gap.End && w.left > 0 {
		called := m.called.has(at - m.Start)
		if !w.walk(at) {
			at, between, trusted = w.resume(at+1), noPadding, false
			continue
		}
		g := w.segment(at, between)
		apart := between == proper || at%16 == 0 || between == noPadding && (prev == amd64.Return || s.dense)
		switch {
		case called && g.sound:
			out, trusted, firm = append(out, g), true, true
		case !g.sound || w.inside != 0 && g.evidence == Behind || !trusted && between != proper:
			trusted = false
		case trusted && apart && (firm || g.evidence != Behind): // a shape alone is believed beside a function that is called
			out = append(out, g)
		}
		prev = w.last
		if !g.sound && w.inside != 0 || w.inside != 0 && g.evidence == Behind {
			at, between = w.inside, noPadding
			continue
		}
		at, between = w.skipPadding(w.end)
	}
	return out
}

// padding is what stands before a function.
type padding uint8

const (
	noPadding padding = iota
	zeros             // which may be data, too
	proper            // nops, int3
)

// walker follows the code of one function at a time.
type walker struct {
	s *state
	*marks
	gap Range

	left   int // instructions that may still be looked at
	labels int // targets of tables that may be

	stack    stack
	end      uint64
	last     amd64.Kind // of its last instruction
	jumps    []uint64
	returns  bool   // it has a return or leaves by a jump
	switches bool   // it has jumps by tables
	odd      bool   // it has instructions that programs don't have
	inside   uint64 // where data points into it, behind its start; 0 if nowhere
	closed   bool   // control doesn't run out of its end
}

// skipPadding returns where code goes on at addr or behind it, and what is before it.
func (w *walker) skipPadding(addr uint64) (uint64, padding) {
	var in amd64.Inst
	kind := noPadding
	for addr < w.gap.End {
		code := w.Data[addr-w.Start : w.gap.End-w.Start]
		switch {
		case code[0] == 0 && (len(code) == 1 || code[1] == 0 || addr%2 == 1):
			addr, kind = addr+1, zeros
		case amd64.DecodeTo(&in, code) == nil && in.IsPadding():
			addr, kind = addr+uint64(in.Len), proper
		default:
			return addr, kind
		}
	}
	return w.gap.End, kind
}

// resume returns where code may begin again behind something else: at a function that is called, or that data points to.
func (w *walker) resume(addr uint64) uint64 {
	for ; addr < w.gap.End; addr++ {
		off := addr - w.Start
		if w.called.has(off) || addr%16 == 0 && (w.pointed.has(off) || w.loaded.has(off)) {
			return addr
		}
	}
	return w.gap.End
}

// begins says whether another function begins at addr, where what precedes it ends. padded says that there is padding between.
func (w *walker) begins(addr uint64, padded bool, prev amd64.Kind) bool {
	off := addr - w.Start
	switch {
	case w.called.has(off):
		return true
	case w.label.has(off):
		return false
	case w.pointed.has(off), w.loaded.has(off):
		return padded || addr%16 == 0 || prev == amd64.Return || w.s.dense
	}
	return false
}

// walk follows the code from start to where it ends: at an instruction that doesn't go on, beyond which no jump of its own leads, or
// where another function begins. It is false if there is no code.
func (w *walker) walk(start uint64) bool {
	w.jumps, w.returns, w.switches, w.odd, w.closed = w.jumps[:0], false, false, false, false
	w.end, w.inside = start, 0
	var in amd64.Inst
	reach, perhaps := start, start // how far its jumps lead; perhaps by those that may be calls at its end
	code, end := start, w.gap.End  // where the last instruction that isn't padding ended
	prev, padded := amd64.Other, false
	for pc := start; pc < end; {
		w.left--
		off := pc - w.Start
		if amd64.DecodeTo(&in, w.Data[off:end-w.Start]) != nil {
			break
		}
		closed := ends(prev) || prev == amd64.Call
		next := pc + uint64(in.Len)
		if closed && in.IsPadding() && !w.called.has(off) {
			if pc <= reach { // it is led to, and so is what follows
				reach = max(reach, next)
			}
			if pc <= perhaps {
				perhaps = max(perhaps, next)
			}
			pc, padded = next, true
			continue
		}
		if ends(prev) && pc > max(reach, perhaps) && w.Data[off] == 0 { // padding, too
			break
		}
		if pc > start && closed && (ends(prev) || padded || w.called.has(off)) && w.begins(pc, padded, prev) && !(pc < reach && !w.called.has(off) && !padded) {
			break
		}
		if prev == amd64.Call && pc%16 == 0 && pc > max(reach, perhaps) && !w.label.has(off) &&
			(padded || w.pointed.has(off) || w.makesFrame(pc, end)) && w.balanced(pc, end) {
			break // the call doesn't return: what follows would have to take away the frame that it was made with
		}
		if pc > start && ends(prev) && pc > reach && !w.goesOn(pc, padded) {
			if pc > perhaps || !w.jumped.has(off) && w.balanced(pc, end) {
				break
			}
			reach = perhaps
		}
		if pc > start && w.inside == 0 && (w.pointed.has(off) || w.loaded.has(off)) && !w.label.has(off) {
			w.inside = pc
		}
		if strange(&in) {
			w.odd = true
			break
		}
		if ends(prev) || pc == start {
			w.stack.arrive(pc, pc == start)
		}
		if to, ok := in.Target(pc); ok && in.Kind != amd64.Call && w.leaves(pc, to, in.Kind == amd64.Jump) {
			w.returns = w.returns || in.Kind == amd64.Jump
		} else if ok && in.Kind != amd64.Call {
			w.stack.leave(to)
			if far := w.follow(start, to); in.Kind == amd64.Jump {
				perhaps = max(perhaps, far)
			} else {
				reach = max(reach, far)
			}
			if in.Kind == amd64.Jump && (to < start || to >= w.gap.End || w.isStart(to)) {
				w.returns = true
			}
		}
		switch in.Kind {
		case amd64.Return:
			w.returns = true
		case amd64.IndirectJump:
			jump := w.s.siteAt(pc)
			if jump == nil {
				w.returns = true
				break
			}
			w.switches = true
			w.s.eachLabel(jump, &w.labels, func(to uint64) {
				if to > start && to < end && to-start < labelReach {
					reach = max(reach, to)
				}
			})
		}
		w.stack.step(&in)
		prev, padded = in.Kind, false
		pc, code = next, next
	}
	w.end, w.last, w.closed = code, prev, ends(prev) || prev == amd64.Call
	return w.end > start
}

// leaves says whether a jump, with nothing of the function's on the stack, leads to what looks as another function begins: a call at
// its end. Where it is a part of the same after all, the jump makes it one.
func (w *walker) leaves(from, to uint64, always bool) bool {
	const far = 512 // bytes; what is nearer is more often a way of its own that makes its own frame
	if to <= w.gap.Start || to >= w.gap.End {
		return false
	}
	if near := to-from < far; near && !(always && w.makesFrame(to, w.gap.End)) {
		return false
	}
	if w.s.dense || !w.stack.known || w.stack.height != 0 || to%16 != 0 || w.label.has(to-w.Start) {
		return false
	}
	switch w.Data[to-w.Start-1] {
	case 0x00, 0x90, 0xCC, 0xC3: // the last byte of padding, or of a return
		return w.balanced(to, w.gap.End)
	}
	return false
}

// goesOn says whether what stands at pc, behind an end, is still of the same function.
func (w *walker) goesOn(pc uint64, padded bool) bool {
	off := pc - w.Start
	return w.label.has(off) || w.switches && !padded && pc%16 != 0 && !w.called.has(off) && !w.pointed.has(off)
}

// ends says whether control never goes on behind an instruction of the kind.
func ends(k amd64.Kind) bool {
	switch k {
	case amd64.Jump, amd64.IndirectJump, amd64.Return, amd64.Undefined, amd64.Halt:
		return true
	}
	return false
}

// isStart says whether a function is known, or surely is, at addr.
func (w *walker) isStart(addr uint64) bool {
	m := w.s.marks(addr)
	if m == nil {
		return true
	}
	off := addr - m.Start
	if m.called.has(off) || m.pointed.has(off) && !m.label.has(off) {
		return true
	}
	k := w.s.firstKnown(addr)
	return k < len(w.s.Known) && w.s.Known[k].Start == addr
}

// follow notes where a jump leads, and returns how far the function reaches by it.
func (w *walker) follow(start, to uint64) uint64 {
	if to >= start && to < w.gap.End && to-start < labelReach && !w.isStart(to) {
		return to
	}
	if to < start || to >= w.gap.End || to-start >= labelReach {
		w.jumps = append(w.jumps, to)
	}
	return start
}

// strange says whether programs hardly have an instruction, so that it is rather data.
func strange(in *amd64.Inst) bool {
	switch in.Kind {
	case amd64.FarBranch:
		return true
	case amd64.Breakpoint:
		return in.Opcode == 0xF1
	}
	if in.Encoding != amd64.Legacy || in.Map != amd64.MapPrimary {
		return false
	}
	switch op := in.Opcode; {
	case op == 0x00 && in.HasMem && in.Base == int8(amd64.RAX) && in.Index == amd64.NoReg && in.Reg == 0 && in.Disp == 0: // zeros
		return true
	case op >= 0xE4 && op <= 0xE7, op >= 0xEC && op <= 0xEF, op == 0xFA, op == 0xFB: // in, out, cli, sti
		return true
	case op >= 0x6C && op <= 0x6F: // ins, outs
		return true
	case op == 0xCD: // int n
		return in.Imm != 0x80 && in.Imm != 0x29
	case op >= 0xA0 && op <= 0xA3: // mov by a whole address, which Free Pascal likes
		return uint64(in.Imm) < 1<<12 || uint64(in.Imm) >= 1<<47
	case op == 0xD7: // xlat
		return true
	}
	return false
}

// segment is what was walked last. between is what is before it.
func (w *walker) segment(start uint64, between padding) segment {
	off := start - w.Start
	g := segment{Range: Range{start, w.end}, jumped: w.jumped.has(off), branch: w.branch.has(off), label: w.label.has(off),
		padded: between == proper || start%16 == 0, sound: w.closed && !w.odd, returns: w.returns}
	g.jumps = append(g.jumps, w.jumps...)
	switch {
	case w.called.has(off):
		g.evidence = Called
	case w.pointed.has(off), w.loaded.has(off):
		g.evidence = Pointed
	default:
		g.evidence = Behind
	}
	g.frame = between == proper && start%16 == 0 && w.makesFrame(start, w.end)
	g.balanced = g.evidence == Called || w.balanced(start, w.end)
	return g
}
