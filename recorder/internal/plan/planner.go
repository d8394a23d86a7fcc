package plan

import (
	"slices"

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
	fns   []function
	f     *function
	insts []inst // all parts, in the order of partsOf
	spans []span
	sites []Site
	pad   amd64.Inst // of padding, the one at work
	slab  slab       // what the sites of all functions are kept in
	jumps []jump     // the function's direct jumps, sorted by their target once they are asked for

	offsets []uint64 // addresses of the jump tables that the function's code refers to, sorted

	frames   frameRows
	traces   int     // instructions looked at for what made the targets of indirect jumps
	tables   uint16  // see tableRegs
	tabled   bool    // tables is made
	labels   uint16  // see labelRegs
	labelled bool    // labels is made
	sorted   bool    // jumps is made
	siteOf   []int32 // by instruction, the index of its site plus 1, else 0, see levels
	tracer   tracer

	ofLoader  bool // it is the one of a loader's functions that has a hook
	frameless bool // a Go function without a frame
	first     int  // index of the instruction before which the entry's event is due

	marked map[uint64]bool // addresses of marks in the function at work, while they are placed
	held   []int           // the marks, by their places in Image.Marked, whose windows are to be left alone
}

func newPlanner(im *Image, fns []function) *planner {
	return &planner{im: im, fns: fns, frames: frameRows{im: im}}
}

// span is the instructions of one part: insts[from:to].
type span struct {
	from, to int
	end      uint64
}

type inst struct {
	addr uint64
	amd64.Inst
	role        instRole
	covered     bool  // a site takes it over
	thunk       thunk // that it jumps to, if it does
	displacedBy int32 // index of the site of the one whose displaced instructions end here, plus 1; else 0
}

type instRole uint8

const (
	rolePlain  instRole = iota
	roleExit            // leaves the function
	roleLoop            // jumps back to the function's entry
	roleDetour          // jumps to one instruction elsewhere and comes back, on arm64
)

func (i *inst) end() uint64 { return i.addr + uint64(i.Len) }

// describe makes what is told of a function, planned or not.
func (im *Image) describe(f *function) Function {
	c := im.entryOf(f)
	out := Function{Name: im.name(c), Addr: c.start, Hook: c.hook, Found: c.found}
	if c.names.n > 1 {
		out.more = &more{names: im.namesOf(c)}
	}
	for _, i := range im.partsOf(f) {
		out.Size += im.chunks[i].end - im.chunks[i].start
	}
	if out.Hook.OfGo() != (im.Go != nil) {
		out.Hook = HookNone
	}
	return out
}

// plan fills in the tier of function i, or why it has none.
func (p *planner) plan(i int, out *Function) {
	if marks := p.im.marksOf[i]; len(marks) > 0 {
		p.planAround(i, marks, out)
		return
	}
	p.planOne(i, out)
}

func (p *planner) planOne(i int, out *Function) {
	p.begin(i)
	if r := p.run(); r.why != ReasonNone {
		p.unclaim()
		out.Reason, out.At = r.why, r.at
		return
	}
	if !p.levels() {
		p.unclaim()
		out.Reason, out.At = ReasonExitShort, p.im.entryOf(p.f).start
		return
	}
	p.joinMarks(p.im.marksOf[i])
	out.Tier, out.Reason, out.At = TierExitSite, ReasonNone, 0
	out.Sites = p.slab.keep(p.sites)
}

// begin makes the planner ready for another function.
func (p *planner) begin(i int) {
	p.f, p.insts, p.spans, p.sites = &p.fns[i], p.insts[:0], p.spans[:0], p.sites[:0]
	p.offsets = p.im.tables[i/batchSize].of(i)
	p.sorted, p.tabled, p.labelled, p.traces = false, false, false, 0
}

func (p *planner) run() refusal {
	if r := p.enter(); r.why != ReasonNone {
		return r
	}
	return p.exits()
}

// enter places the entry site, and finds what else there must be sites for.
func (p *planner) enter() refusal {
	if r := p.refuseEarly(); r.why != ReasonNone {
		return r
	}
	p.decode()
	if r := p.classify(); r.why != ReasonNone {
		return r
	}
	if len(p.held) > 0 {
		p.hold(p.held)
	}
	return p.entry()
}

// maxFunction bounds the code of a function that is planned, in bytes: while it is, each takes some hundred bytes of memory. The
// largest functions of LLVM, GCC and V8 have 0.2 to 0.5 MB.
const maxFunction = 1 << 20

// refuseEarly finds what speaks against the function as a whole.
func (p *planner) refuseEarly() refusal {
	if p.f.why != ReasonNone {
		return refusal{p.f.why, 0}
	}
	if p.im.Loader && !p.ofLoader {
		return refusal{ReasonLoader, 0}
	}
	size := uint64(0)
	for _, i := range p.im.partsOf(p.f) {
		c := &p.im.chunks[i]
		size += c.end - c.start
		switch {
		case size > maxFunction:
			return refusal{ReasonLarge, c.start}
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
		case c.cancels:
			return refusal{ReasonCancellation, c.start}
		case c.assembly && !c.plain:
			return refusal{ReasonAssembly, c.start}
		case c.zone:
			return refusal{ReasonShared, c.start}
		}
		if at, ok := p.tableTarget(int(i)); ok {
			return refusal{ReasonUndecodable, at}
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
	for _, i := range p.im.partsOf(p.f) {
		c := &p.im.chunks[i]
		t := p.im.textAt(c.start)
		s := span{from: len(p.insts), end: c.end}
		tables := p.im.tablesIn(int(i))
		for pc := c.start; pc < c.end; {
			if len(tables) > 0 && pc == tables[0] {
				pc, tables = tables[1], tables[2:]
			}
			in := p.next()
			if !t.decode(&in.Inst, pc, c.end) {
				p.insts = p.insts[:len(p.insts)-1]
				break // refuseEarly has seen to it
			}
			in.addr = pc
			pc += uint64(in.Len)
		}
		s.to = len(p.insts)
		p.spans = append(p.spans, s)
	}
}

// next makes space for an instruction, in which nothing is left of another but what decoding sets. Appending one would copy it, which takes as
// long as decoding it does.
func (p *planner) next() *inst {
	n := len(p.insts)
	p.insts = slices.Grow(p.insts, 1)[:n+1]
	in := &p.insts[n]
	in.role, in.covered, in.thunk, in.displacedBy = rolePlain, false, thunk{}, 0
	return in
}

// classify finds the exits and the jumps back to the entry.
func (p *planner) classify() refusal {
	p.first = 0
	if p.im.Go != nil {
		p.first, p.frameless = behindStackCheck(p.insts[p.spans[0].from:p.spans[0].to]), p.isFrameless()
	}
	entry, behind := p.insts[p.first].addr, p.insts[p.first].addr
	if p.insts[0].IsEndbr64() {
		behind = p.insts[0].end()
	}
	for _, s := range p.spans {
		for k := s.from; k < s.to; k++ {
			in := &p.insts[k]
			switch in.Kind {
			case amd64.Return:
				if k == s.from || !replacesReturn(&p.insts[k-1].Inst) {
					in.role = roleExit
				} else if r := p.thunkInLine(k, s); r.why != ReasonNone {
					return r
				}
			case amd64.Jump, amd64.CondJump, amd64.ShortLoop:
				to, _ := in.Target(in.addr)
				switch {
				case to == entry || to == behind:
					in.role = roleLoop
				case !p.im.inFunction(p.f, to):
					if in.thunk = p.im.thunkAt(to); in.thunk.is {
						if r := p.indirect(in, k); r.why != ReasonNone {
							return r
						}
						break
					}
					in.role = roleExit
				case !p.im.onInstruction(to) && !p.im.behindLock(to):
					return refusal{ReasonUndecodable, in.addr}
				}
			case amd64.IndirectJump:
				if r := p.indirect(in, k); r.why != ReasonNone {
					return r
				}
			}
		}
		// Control must not run out of a part into what follows.
		if at, ok := p.unreached(s); !ok {
			return refusal{ReasonJump, at}
		}
		if last := &p.insts[s.to-1]; !last.Ends() && last.Kind != amd64.Call && last.Kind != amd64.IndirectCall && !last.IsPadding() {
			if k := p.im.chunkAt(s.end); k >= 0 && p.im.chunks[k].start == s.end && !p.im.inFunction(p.f, s.end) {
				return refusal{ReasonShared, last.addr}
			}
		}
	}
	if p.hasTables() {
		p.onlyCalled()
	}
	return refusal{}
}

// indirect finds out whether an indirect jump is an exit.
func (p *planner) indirect(in *inst, k int) refusal {
	if p.im.Go != nil {
		return p.goIndirect(in)
	}
	leaves, ok := p.leaves(k)
	switch {
	case !ok:
		return refusal{ReasonJump, in.addr}
	case leaves && in.HasMem && in.Base == int8(amd64.RSP) && in.Disp < 0:
		return refusal{ReasonInstruction, in.addr} // the event would write over the operand
	case leaves:
		in.role = roleExit
	}
	return refusal{}
}

// unreached returns where there is code that nothing is known to lead to: it is reached in some unknown way, or it is
// data. What compilers put behind a call or a jump that never comes back is neither.
func (p *planner) unreached(s span) (at uint64, ok bool) {
	comes := true
	for k := s.from; k < s.to; k++ {
		in := &p.insts[k]
		comes = comes || p.isTarget(in.addr)
		if !comes && !in.IsPadding() && in.Kind != amd64.Undefined && in.Kind != amd64.Halt {
			return in.addr, false
		}
		if in.Ends() && in.Kind != amd64.Halt { // a loop around hlt has its jump behind
			comes = false
		}
	}
	return 0, true
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
