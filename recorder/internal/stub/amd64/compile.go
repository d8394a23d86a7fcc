package amd64

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// Code is that of x86-64, and answers what is asked of it as stub.Sites.
type Code struct {
	stub.Code

	fns      []stub.Probe
	stubs    []uint32     // offsets in Bytes where each function's stubs begin
	sites    []stub.Patch // those of Patches that are no islands
	cfg      stub.Config
	lang     language
	routines *routines

	asked, answer uint64 // see StubFor
}

// InlineLimit is up to how many probes have their event code inline. It is faster by a call and a return (some 1 ns),
// and 70 bytes longer at each site: with many probes it is the caches that count.
const InlineLimit = 256

// compile makes the code for an arena at base: the event routines and the slow path, then each function's stubs. The
// result's size does not depend on base. It keeps fns, whose images must stay open while it is in use. The code is put into buf
// if it is large enough, else elsewhere; buf may be nil.
func compile(base uint64, cfg stub.Config, fns []stub.Probe, buf []byte) (*Code, error) {
	code := &Code{Code: stub.Code{Base: base}, fns: fns, stubs: make([]uint32, len(fns)), cfg: cfg, lang: languageOf(&cfg), routines: &routines{}}
	code.Sites = code
	given := cap(buf)
	if buf == nil {
		buf = make([]byte, 0, guessedSize(fns))
	}
	c := code.coder(base, buf[:0])
	c.beginUnwind()
	if c.unwind != nil && slices.ContainsFunc(fns, func(fn stub.Probe) bool { return fn.Hook == plan.HookFindObject }) {
		c.routines.unwindList = c.emitUnwindList()
		code.UnwindList = uint32(c.routines.unwindList - base)
	}
	c.routines.marked = hasMarks(fns)
	c.emitRoutines(fns)
	stubs := c.PC()
	if err := c.emitStubs(code, given); err != nil {
		return nil, err
	}
	head := c.endUnwind(stubs)
	if len(head) > stub.UnwindHead {
		return nil, fmt.Errorf("callreel: stubs: unwind information of %d bytes in a space of %d", len(head), stub.UnwindHead)
	}
	var err error
	if code.Bytes, err = c.Finish(); err != nil {
		return nil, fmt.Errorf("callreel: stubs: %w", err)
	}
	if c.unwind != nil && len(code.Bytes) > maxUnwound {
		return nil, fmt.Errorf("callreel: stubs of %d bytes, more than unwind information can tell of", len(code.Bytes))
	}
	copy(code.Bytes, head)
	code.sort()
	return code, nil
}

// guessedSize is how many bytes the code of these functions has, about.
func guessedSize(fns []stub.Probe) int {
	size := 48 // of a site's stub
	if len(fns) <= InlineLimit {
		size = 128
	}
	sites := 0
	for i := range fns {
		sites += len(fns[i].Patched())
	}
	return 4096 + sites*size
}

// coder begins code at an address of the arena, in buf if it isn't nil.
func (code *Code) coder(at uint64, buf []byte) *coder {
	return &coder{Asm: amd64.NewAsm(at, buf), cfg: &code.cfg, lang: code.lang, routines: code.routines, base: code.Base}
}

// emitRoutines appends what the stubs of these functions call.
func (c *coder) emitRoutines(fns []stub.Probe) {
	cfg, to := c.cfg, c.routines
	c.emitThreadID()
	to.slow = c.emitSlow()
	if cfg.Areas != 0 {
		c.emitOpenStack()
		if cfg.Chooses() {
			c.emitChosen()
		}
	}
	if cfg.Predicates != 0 {
		c.emitPredicates()
	}
	if slices.ContainsFunc(fns, func(fn stub.Probe) bool { return fn.Hook.Restricts() }) {
		to.seccomp = c.emitSeccomp(to.nap)
	}
	if cfg.Loads && slices.ContainsFunc(fns, func(fn stub.Probe) bool { return fn.Hook == plan.HookLoader }) {
		to.loader = c.emitLoader(to.nap)
	}
	if cfg.Follow {
		to.follow = c.emitFollow()
		to.exec = c.emitExec(to.nap)
	}
	if cfg.Names && slices.ContainsFunc(fns, func(fn stub.Probe) bool { return fn.Hook.Names() }) {
		to.names = c.emitNames()
	}
	c.lang.routines(c)
	if len(cfg.Captures) > 0 {
		c.emitCaptures(fns)
	}
	if len(cfg.Keeps) > 0 {
		c.emitKept()
	}
	if len(fns) > InlineLimit && c.lang.shared {
		c.emitShared()
	}
	if cfg.Lazy {
		c.emitLazy(fns)
	}
}

// stub is a function's stubs being made.
type emitter struct {
	*coder
	code *Code
	fn   *stub.Probe
	body uint64 // behind the entry event, where jumps back to the entry go
	// copies are of moved instructions that jumps lead to, by the instructions' link addresses.
	copies map[uint64]amd64.Label
}

// function emits the stubs of one function.
func (s *emitter) function(index int) error {
	c, code, fn := s.coder, s.code, &s.code.fns[index]
	s.fn, s.body = fn, 0
	c.inside = fn.Inside
	sites := fn.Patched()
	s.findCopies(sites)
	if fn.Import != nil {
		s.imported(index)
	}
	for k := range 3 {
		for i := range sites {
			site := &sites[i]
			if turn(site) != k {
				continue
			}
			c.moved = fn.Image.Moved(site, c.moved[:0])
			if len(c.moved) != int(site.Count) || site.Count == 0 {
				return fmt.Errorf("site at %#x: its instructions can't be read again", site.Addr)
			}
			c.alignStub()
			if c.cfg.Lazy && site.Role == plan.RoleEntry && fn.ID != 0 {
				c.slotStart(fn.ID)
			}
			at := c.PC()
			c.stands(site.Addr + fn.Slide)
			var err error
			if site.Kind == plan.SiteBranch {
				at, err = s.branch(site, at)
			} else {
				err = s.displaced(site)
			}
			if err != nil {
				return err
			}
			c.flush()
			if site.Kind == plan.SiteCopy {
				continue
			}
			if err := code.patch(index, site, at); err != nil {
				return err
			}
		}
	}
	c.Resolve()
	c.settle(code)
	return nil
}

// alignStub makes a stub begin where its event needs no padding, see beginSwitch. A program of few functions has space for more; of many
// functions the stubs are what a recording takes of the program's memory.
func (c *coder) alignStub() {
	switch {
	case c.routines.shared[0] == 0:
		c.Align(16)
	case c.PC()&7 > 8-switchSize:
		c.Align(8)
	}
}

// turn says when the stub of a site is made. The entry's comes first: jumps back to the entry need its address. Branches come last,
// since they may lead to copies.
func turn(s *plan.Site) int {
	switch {
	case s.Role == plan.RoleEntry:
		return 0
	case s.Kind != plan.SiteBranch:
		return 1
	}
	return 2
}

// branch emits the stub of a branch whose displacement is changed, and returns where it is to lead.
func (s *emitter) branch(site *plan.Site, at uint64) (uint64, error) {
	m := &s.moved[0]
	to, _ := m.Inst.Target(m.Addr)
	to += s.fn.Slide
	switch {
	case site.Role == plan.RoleMark && s.fn.Import != nil: // a call behind the one that has returned
		return 0, fmt.Errorf("call at %#x in place of a return", m.Addr)
	case site.Role == plan.RoleMark: // a call, which is over
		s.stands(to)
		s.lang.mark(s.coder, s.fn.ID, site.SPDelta)
	case site.Role != plan.RoleEntry && !m.Exit && !m.Loop: // one that is led to a copy
		l, ok := s.copies[to-s.fn.Slide]
		if !ok {
			return 0, fmt.Errorf("jump at %#x has nowhere to go", m.Addr)
		}
		return s.Placed(l), nil
	case m.Loop:
		if s.body == 0 {
			return 0, fmt.Errorf("jump to the entry at %#x has nowhere to go", m.Addr)
		}
		return s.body, nil
	case site.Role == plan.RoleEntry:
		if m.Inst.Kind == amd64.Call { // which is over: this is what it calls, at its beginning
			s.stands(to)
		}
		s.event(false, site.SPDelta)
		s.hooks()
	default:
		s.event(true, 0)
	}
	s.JmpTo(to)
	return at, nil
}

// event emits the function's event, if it is traced.
func (s *emitter) event(exit bool, spDelta int32) {
	if s.fn.ID == 0 {
		return
	}
	switch p := s.captures(); {
	case p == nil || exit && !p.Chosen() || !exit && !p.Chosen() && p.Entry == nil:
		s.lang.event(s.coder, s.fn.ID, exit, spDelta)
	case exit: // by a tail jump
		s.lang.captured(s.coder, s.fn.ID, true, spDelta, nil)
	default:
		s.lang.captured(s.coder, s.fn.ID, false, spDelta, p.Entry)
	}
	s.predicates(exit, spDelta)
}

// predicates emits the test of the function's predicates, if it has any.
func (s *emitter) predicates(exit bool, spDelta int32) {
	if s.fn.Predicates.Count != 0 && s.cfg.Predicates != 0 {
		s.lang.predicates(s.coder, s.fn.Predicates, s.fn.ID, exit, spDelta)
	}
}

// returns emits the event of a return, which has a result, unlike that of a tail jump.
func (s *emitter) returns() {
	p := s.captures()
	if p == nil || p.Return == nil {
		s.event(true, 0)
		return
	}
	s.lang.captured(s.coder, s.fn.ID, true, 0, p.Return)
	s.predicates(true, 0)
}

// hooks emits what a hook at the function's entry does.
func (s *emitter) hooks() {
	switch {
	case s.fn.Hook.OfGo():
		s.goSays(s.fn.Hook)
	case s.fn.Hook != plan.HookFindObject:
		s.hook(s.fn.Hook)
	case s.routines.unwindList != 0:
		if s.unwind != nil {
			s.unwind.hook = s.moved[0].Addr + s.fn.Slide
		}
		s.findObject(func() { s.event(true, 0) })
	}
}

// displaced emits the stub of displaced instructions: the entry event if it is the entry, the moved instructions, the way back.
func (s *emitter) displaced(site *plan.Site) error {
	enter := func() {
		s.event(false, 0)
		s.body = s.PC()
		s.hooks()
	}
	for i := range s.moved {
		if site.Role == plan.RoleEntry && i == int(site.Before) {
			enter()
		}
		m := &s.moved[i]
		if m.Target {
			s.Place(s.copies[m.Addr])
		}
		s.marks(site, m.Addr, i)
		s.copied(m.Addr + s.fn.Slide)
		if m.Addr+s.fn.Slide == s.code.asked && !site.Reordered() { // nowhere else have the same instructions been run by then
			s.code.answer = s.PC()
		}
		if err := s.move(m); err != nil {
			return err
		}
	}
	if site.Role == plan.RoleEntry && int(site.Before) == len(s.moved) {
		enter()
	}
	if last := &s.moved[len(s.moved)-1]; !last.Inst.Ends() {
		s.copied(site.End() + s.fn.Slide)
		s.JmpTo(site.End() + s.fn.Slide)
	}
	return nil
}

// move emits a moved instruction, with the exit event before it if it leaves the function.
func (s *emitter) move(m *plan.Moved) error {
	to, direct := m.Inst.Target(m.Addr)
	to += s.fn.Slide
	if m.Loop {
		if s.body == 0 {
			return fmt.Errorf("jump to the entry at %#x has nowhere to go", m.Addr)
		}
		to = s.body
	}
	copied, led := s.target(m)
	switch m.Inst.Kind {
	case amd64.Return, amd64.IndirectJump, amd64.Jump:
		if m.Exit {
			s.stands(m.Addr + s.fn.Slide)
			if m.Inst.Kind == amd64.Return {
				s.returns()
			} else {
				s.event(true, 0)
			}
		}
		if led {
			s.Jmp(copied)
			return nil
		}
		if direct {
			s.JmpTo(to)
			return nil
		}
		return s.copy(m)
	case amd64.CondJump:
		cond := amd64.Cond(m.Inst.Opcode & 15)
		if led {
			s.Jcc(cond, copied)
			return nil
		}
		if !m.Exit {
			s.JccTo(cond, to)
			return nil
		}
		s.Jcc(cond, s.leaving(m, to))
		return nil
	case amd64.ShortLoop:
		// The same instruction over a jump: its displacement has but 8 bits.
		raw, err := s.original(m)
		if err != nil {
			return err
		}
		s.Raw(raw[:len(raw)-1]...)
		s.Raw(2, 0xEB, plan.NearJump)
		if led {
			s.Jmp(copied)
		} else if m.Exit {
			s.Jmp(s.leaving(m, to))
		} else {
			s.JmpTo(to)
		}
		return nil
	}
	return s.copy(m)
}

// leaving puts off the code of a conditional exit that is taken.
func (s *emitter) leaving(m *plan.Moved, to uint64) amd64.Label {
	l, from := s.NewLabel(), m.Addr+s.fn.Slide
	s.cold = append(s.cold, func() {
		s.stands(from)
		s.Place(l)
		s.event(true, 0)
		s.JmpTo(to)
	})
	return l
}

// original returns the bytes of a moved instruction.
func (s *emitter) original(m *plan.Moved) ([]byte, error) {
	raw := s.fn.Image.Code(m.Addr, int(m.Inst.Len))
	if raw == nil {
		return nil, fmt.Errorf("instruction at %#x is outside the text", m.Addr)
	}
	return raw, nil
}

// copy emits an instruction as it is, with a RIP-relative operand made to name the same address from here.
func (s *emitter) copy(m *plan.Moved) error {
	raw, err := s.original(m)
	if err != nil {
		return err
	}
	if !m.Inst.RIPRelative {
		s.Raw(raw...)
		return nil
	}
	operand, _ := m.Inst.MemTarget(m.Addr)
	d := int64(operand+s.fn.Slide) - int64(s.PC()+uint64(len(raw)))
	if d < math.MinInt32 || d > math.MaxInt32 {
		return fmt.Errorf("operand of the instruction at %#x: %w", m.Addr, amd64.ErrAsmRange)
	}
	var moved [amd64.MaxLen]byte
	copy(moved[:], raw)
	binary.LittleEndian.PutUint32(moved[m.Inst.DispOff:], uint32(int32(d)))
	s.Raw(moved[:len(raw)]...)
	return nil
}
