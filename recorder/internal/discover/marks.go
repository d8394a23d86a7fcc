package discover

import (
	"sync/atomic"

	"github.com/callreel/callreel/isa/amd64"
)

// marks are what is known of the addresses of a text.
type marks struct {
	*Text
	called  offsets // a direct call leads there
	pointed offsets // data holds the address
	loaded  offsets // an instruction has the address
	jumped  offsets // a direct jump leads there
	branch  offsets // a conditional one does
	label   offsets // a table of jumps leads there
}

func newMarks(t *Text) *marks {
	m := &marks{Text: t}
	for _, set := range []*offsets{&m.called, &m.pointed, &m.loaded, &m.jumped, &m.branch, &m.label} {
		*set = make(offsets, (len(t.Data)+31)/32)
	}
	return m
}

// offsets is a set of offsets that several goroutines may add to.
type offsets []uint32

func (b offsets) has(i uint64) bool { return atomic.LoadUint32(&b[i/32])>>(i%32)&1 != 0 }

func (b offsets) add(i uint64) {
	if !b.has(i) {
		atomic.OrUint32(&b[i/32], 1<<(i%32))
	}
}

// mark adds an address to a set of the text that holds it.
func (s *state) mark(addr uint64, set func(*marks) offsets) {
	if m := s.marks(addr); m != nil {
		set(m).add(addr - m.Start)
	}
}

func calledOf(m *marks) offsets  { return m.called }
func pointedOf(m *marks) offsets { return m.pointed }
func loadedOf(m *marks) offsets  { return m.loaded }
func jumpedOf(m *marks) offsets  { return m.jumped }
func branchOf(m *marks) offsets  { return m.branch }
func labelOf(m *marks) offsets   { return m.label }

func (s *state) point(addr uint64) { s.mark(addr, pointedOf) }

// quiet is how many bytes behind what is no instruction nothing is believed: decoding falls into step again soon, but not at once.
const quiet = 48

// gather decodes a piece of text, known functions from their starts, and notes where calls, jumps and addresses lead.
func (s *state) gather(i int, r Range) {
	t := s.text(r.Start)
	at := r.Start
	k := s.firstKnown(at)
	believe := at
	if at > t.Start {
		believe = at + quiet // it may begin within an instruction
	}
	var tr tracker
	tr.clear()
	var in amd64.Inst
	for at < r.End {
		for k < len(s.Known) && s.Known[k].Start < at {
			k++
		}
		stop := r.End
		if k < len(s.Known) {
			if stop = min(stop, s.Known[k].Start); stop == at {
				stop, believe = r.End, at
				k++
				if k < len(s.Known) {
					stop = min(stop, max(s.Known[k].Start, at+1))
				}
			}
		}
		if amd64.DecodeTo(&in, t.Data[at-t.Start:]) != nil {
			at++
			believe = at + quiet
			tr.clear()
			continue
		}
		next := at + uint64(in.Len)
		if next > stop && stop < r.End { // a known function begins within
			at = stop
			tr.clear()
			continue
		}
		if at >= believe {
			if in.Kind == amd64.IndirectJump && tr.isSwitch(&in) {
				s.switches[i] = append(s.switches[i], tr.site(at, &in))
			}
			s.note(at, &in, &tr)
		}
		at = next
	}
}

// firstKnown returns the index of the first known function that starts at addr or behind it.
func (s *state) firstKnown(addr uint64) int {
	lo, hi := 0, len(s.Known)
	for lo < hi {
		if mid := (lo + hi) / 2; s.Known[mid].Start < addr {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

func (s *state) note(at uint64, in *amd64.Inst, tr *tracker) {
	if to, ok := in.Target(at); ok {
		switch in.Kind {
		case amd64.Call:
			if in.Rel != 0 { // a call of what follows is how code finds its own address
				s.mark(to, calledOf)
			}
		case amd64.Jump:
			s.mark(to, jumpedOf)
		default:
			s.mark(to, jumpedOf)
			s.mark(to, branchOf)
		}
	}
	if to, ok := in.MemTarget(at); ok && isLea(in) {
		s.mark(to, loadedOf)
	}
	if s.Fixed && in.ImmSize >= 4 && in.Imm > 0 && in.Kind == amd64.Other {
		s.mark(uint64(in.Imm), loadedOf)
	}
	tr.see(at, in)
}

func isLea(in *amd64.Inst) bool {
	return in.Encoding == amd64.Legacy && in.Map == amd64.MapPrimary && in.Opcode == 0x8D
}

// tracker remembers what of the last instructions says where a table of jumps is.
type tracker struct {
	bases [4]uint64 // what lea has named, the last at last
	n     int
	limit int64 // what an index was compared with, -1 for nothing
	age   int   // instructions since then
	added bool  // two registers were added a few instructions ago
	since int
}

func (tr *tracker) clear() { *tr = tracker{limit: -1} }

const recent = 16 // instructions

func (tr *tracker) see(at uint64, in *amd64.Inst) {
	tr.age++
	tr.since++
	if in.Ends() {
		tr.limit = -1
	}
	if in.Encoding != amd64.Legacy || in.Map != amd64.MapPrimary {
		return
	}
	switch op := in.Opcode; {
	case op == 0x8D:
		if to, ok := in.MemTarget(at); ok {
			tr.bases[tr.n%len(tr.bases)] = to
			tr.n++
		}
	case (op == 0x83 || op == 0x81 || op == 0x80) && (in.Reg&7 == 7 || in.Reg&7 == 5), op == 0x3D, op == 0x3C, op == 0x2D, op == 0x2C:
		tr.limit, tr.age = in.Imm, 0
	case (op == 0x01 || op == 0x03) && !in.HasMem:
		tr.added, tr.since = true, 0
	}
}

// isSwitch says whether an indirect jump goes by a table, and not by a pointer as calls at a function's end do.
func (tr *tracker) isSwitch(in *amd64.Inst) bool {
	if in.HasMem {
		return in.Index != amd64.NoReg && in.Scale == 8
	}
	return in.Notrack || tr.added && tr.since <= recent/2
}
