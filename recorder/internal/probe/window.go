package probe

import (
	"slices"

	"github.com/callreel/callreel/cfi"
	"github.com/callreel/callreel/isa/amd64"
)

// refusal is why a function can't be probed, and where.
type refusal struct {
	why Reason
	at  uint64
}

// planner plans one function at a time; its buffers are reused.
type planner struct {
	im    *Image
	f     *function
	insts []inst // all parts, in the order of f.parts
	spans []span
	sites []Site
}

// span is the instructions of one part: insts[from:to].
type span struct {
	from, to int
	end      uint64
}

type inst struct {
	addr uint64
	amd64.Inst
	role    instRole
	covered bool // a site takes it over
}

type instRole uint8

const (
	rolePlain instRole = iota
	roleExit           // leaves the function
	roleLoop           // jumps back to the function's entry
)

func (i *inst) end() uint64 { return i.addr + uint64(i.Len) }

// plan fills in the tier or the refusal of f.
func (p *planner) plan(f *function) Function {
	im := p.im
	c := &im.chunks[f.entry]
	out := Function{Name: im.name(c), Addr: c.start}
	if len(c.names) > 1 {
		out.Aliases = c.names[1:]
	}
	for _, i := range f.parts {
		out.Size += im.chunks[i].end - im.chunks[i].start
	}
	p.f, p.insts, p.spans, p.sites = f, p.insts[:0], p.spans[:0], nil
	if r := p.run(); r.why != ReasonNone {
		p.unclaim()
		out.Reason, out.At = r.why, r.at
		return out
	}
	out.Tier, out.Sites = TierExitSite, p.sites
	return out
}

func (p *planner) run() refusal {
	if r := p.refuseEarly(); r.why != ReasonNone {
		return r
	}
	p.decode()
	if r := p.classify(); r.why != ReasonNone {
		return r
	}
	if r := p.entry(); r.why != ReasonNone {
		return r
	}
	return p.exits()
}

// refuseEarly finds what speaks against the function as a whole.
func (p *planner) refuseEarly() refusal {
	if p.f.why != ReasonNone {
		return refusal{p.f.why, 0}
	}
	if p.im.Loader {
		return refusal{ReasonLoader, 0}
	}
	for _, i := range p.f.parts {
		c := &p.im.chunks[i]
		switch {
		case c.linkage:
			return refusal{ReasonLinkage, 0}
		case c.overlap:
			return refusal{ReasonOverlap, c.start}
		case c.badAt != 0:
			return refusal{ReasonUndecodable, c.badAt}
		case c.far:
			return refusal{ReasonInstruction, c.start}
		case c.end == c.start:
			return refusal{ReasonEntryShort, c.start}
		case c.isSignalReturn(p.im):
			return refusal{ReasonSignalReturn, c.start}
		}
	}
	return refusal{}
}

// signalReturn is the code by which unwinders know a signal frame (libgcc's config/i386/linux-unwind.h).
var signalReturn = []byte{0x48, 0xC7, 0xC0, 0x0F, 0, 0, 0, 0x0F, 0x05}

func (c *chunk) isSignalReturn(im *Image) bool {
	t := im.textAt(c.start)
	return c.end-c.start <= 16 && len(t.data[c.start-t.start:]) >= len(signalReturn) &&
		slices.Equal(t.data[c.start-t.start:][:len(signalReturn)], signalReturn)
}

// decode gathers the instructions of all parts.
func (p *planner) decode() {
	for _, i := range p.f.parts {
		c := &p.im.chunks[i]
		t := p.im.textAt(c.start)
		s := span{from: len(p.insts), end: c.end}
		for pc := c.start; pc < c.end; {
			in, err := amd64.Decode(t.data[pc-t.start : c.end-t.start])
			if err != nil {
				break // refuseEarly has seen to it
			}
			p.insts = append(p.insts, inst{addr: pc, Inst: in})
			pc += uint64(in.Len)
		}
		s.to = len(p.insts)
		p.spans = append(p.spans, s)
	}
}

// classify finds the exits and the jumps back to the entry.
func (p *planner) classify() refusal {
	entry, behind := p.insts[0].addr, p.insts[0].addr
	if p.insts[0].IsEndbr64() {
		behind = p.insts[0].end()
	}
	for si, s := range p.spans {
		for k := s.from; k < s.to; k++ {
			in := &p.insts[k]
			switch in.Kind {
			case amd64.Return:
				in.role = roleExit
			case amd64.Jump, amd64.CondJump, amd64.ShortLoop:
				to, _ := in.Target(in.addr)
				switch {
				case to == entry || to == behind:
					in.role = roleLoop
				case !p.im.inFunction(p.f, to):
					in.role = roleExit
				case !p.im.onInstruction(to) && !p.im.behindLock(to):
					return refusal{ReasonUndecodable, in.addr}
				}
			case amd64.IndirectJump:
				leaves, ok := p.leaves(si, k)
				if !ok {
					return refusal{ReasonJump, in.addr}
				}
				if leaves {
					in.role = roleExit
				}
			}
		}
		// Control must not run out of a part into what follows.
		if last := &p.insts[s.to-1]; !last.Ends() && last.Kind != amd64.Call && last.Kind != amd64.IndirectCall && !last.IsPadding() {
			if k := p.im.chunkAt(s.end); k >= 0 && p.im.chunks[k].start == s.end && !p.im.inFunction(p.f, s.end) {
				return refusal{ReasonShared, last.addr}
			}
		}
	}
	return refusal{}
}

// onInstruction says whether the linear sweep has an instruction at addr.
func (im *Image) onInstruction(addr uint64) bool {
	t := im.textAt(addr)
	return t != nil && t.starts.has(addr-t.start)
}

// behindLock says whether addr is an instruction without its lock prefix: C libraries jump over the prefix while the
// process has one thread.
func (im *Image) behindLock(addr uint64) bool {
	t := im.textAt(addr)
	return t != nil && addr > t.start && t.data[addr-1-t.start] == 0xF0 && t.starts.has(addr-1-t.start)
}

// leaves says whether an indirect jump leaves the function (a tail call through a pointer) or is internal (a switch, a
// computed goto). Where the stack frame isn't gone it is internal; where it is, or isn't known, the way the target was
// computed tells. An internal one is only known well enough when labels inside the function were found.
func (p *planner) leaves(si, k int) (leaves, ok bool) {
	in := &p.insts[k]
	known, gone := p.frameGone(in.addr)
	labels := false
	for _, i := range p.f.parts {
		labels = labels || p.im.chunks[i].labels != 0
	}
	if known && !gone {
		return false, labels
	}
	if p.looksLikeSwitch(p.spans[si].from, k) {
		return false, labels
	}
	if !known && labels {
		return false, false
	}
	return true, true
}

// frameGone says what CFI knows: whether the CFA at addr is rsp+8.
func (p *planner) frameGone(addr uint64) (known, gone bool) {
	if p.im.CFI == nil {
		return false, false
	}
	f, ok := p.im.CFI.Find(addr)
	if !ok {
		return false, false
	}
	row, err := f.RowAt(addr)
	if err != nil {
		return false, false
	}
	return true, row.CFA.Kind == cfi.RegOffset && row.CFA.Reg == dwarfRSP && row.CFA.Offset == 8
}

// looksLikeSwitch looks how the target of an indirect jump is made: by adding to a table's base, or by an indexed load.
func (p *planner) looksLikeSwitch(from, k int) bool {
	in := &p.insts[k]
	if in.Notrack {
		return true
	}
	if in.HasMem {
		return in.Index != amd64.NoReg && in.Base == amd64.NoReg
	}
	const lookBack = 12
	target := amd64.Reg(in.RM)
	for j := k - 1; j >= from && j >= k-lookBack; j-- {
		d := &p.insts[j]
		if d.GPRWritten()&target.Mask() == 0 {
			continue
		}
		if d.Map != amd64.MapPrimary {
			return false
		}
		switch d.Opcode {
		case 0x01, 0x03: // add
			return true
		case 0x8B: // mov from an indexed table of addresses
			return d.HasMem && d.Index != amd64.NoReg && d.Scale == 8 && d.Base == amd64.NoReg
		}
		return false
	}
	return false
}
