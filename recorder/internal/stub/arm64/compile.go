package arm64

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// Code is that of AArch64, and answers what is asked of it as stub.Sites.
type Code struct {
	stub.Code

	fns      []stub.Probe
	stubs    []uint32 // offsets in Bytes where each function's stubs begin
	cfg      stub.Config
	routines *routines
}

// InlineLimit is up to how many probes have their event code inline.
const InlineLimit = 256

// compile makes the code for an arena at base: the routines, then each function's stubs. The result's size does not depend on base.
func compile(base uint64, cfg stub.Config, fns []stub.Probe, buf []byte) (*Code, error) {
	code := &Code{Code: stub.Code{Base: base}, fns: fns, stubs: make([]uint32, len(fns)), cfg: cfg, routines: &routines{}}
	code.Sites = code
	if buf == nil {
		buf = make([]byte, 0, Generator{}.Bound(&cfg, fns))
	}
	c := code.coder(base, buf[:0])
	if cfg.Go == nil { // Go's runtime walks stacks by tables of its own
		c.beginUnwind()
	}
	hooked := func(is func(g plan.Hook) bool) bool {
		return slices.ContainsFunc(fns, func(fn stub.Probe) bool { return is(fn.Hook) })
	}
	if c.unwind != nil && hooked(func(g plan.Hook) bool { return g == plan.HookFindObject }) {
		c.routines.unwindList = c.emitUnwindList()
		code.UnwindList = uint32(c.routines.unwindList - base)
	}
	if err := c.emitRoutines(fns, hooked); err != nil {
		return nil, fmt.Errorf("callreel: stubs: %w", err)
	}
	c.Resolve()
	stubs := c.PC()
	for i := range fns {
		code.stubs[i] = c.offset()
		if err := (&emitter{coder: c, code: code, fn: &fns[i], index: uint32(i)}).function(); err != nil {
			return nil, fmt.Errorf("callreel: stubs: %s+%#x (%s): %w", fns[i].Image.Module, fns[i].Addr, fns[i].Name, err)
		}
	}
	if c.unwind != nil {
		if err := c.endUnwind(stubs); err != nil {
			return nil, fmt.Errorf("callreel: stubs: %w", err)
		}
	}
	var err error
	if code.Bytes, err = c.Finish(); err != nil {
		return nil, fmt.Errorf("callreel: stubs: %w", err)
	}
	if c.unwind != nil {
		c.placeUnwind(code.Bytes)
	}
	slices.SortFunc(code.Patches, func(a, b stub.Patch) int { return cmp.Compare(a.Addr, b.Addr) })
	return code, nil
}

// coder begins code at an address of the arena, in buf if it isn't nil.
func (code *Code) coder(at uint64, buf []byte) *coder {
	return &coder{Asm: arm64.NewAsm(at, buf), cfg: &code.cfg, routines: code.routines, base: code.Base}
}

// emitRoutines appends what the stubs of these functions call.
func (c *coder) emitRoutines(fns []stub.Probe, hooked func(func(plan.Hook) bool) bool) error {
	to := c.routines
	c.emitThreadID()
	to.slow = c.emitSlow()
	if c.cfg.Go != nil {
		c.emitGo(fns)
		return nil
	}
	if hooked(plan.Hook.Restricts) {
		to.seccomp = c.emitSeccomp()
	}
	if c.cfg.Loads && hooked(func(g plan.Hook) bool { return g == plan.HookLoader }) {
		to.loader = c.emitLoader()
	}
	if c.cfg.Follow {
		to.follow, to.exec = c.emitFollow(), c.emitExec()
	}
	if c.cfg.Names && hooked(plan.Hook.Names) {
		to.names = c.emitNames()
	}
	if c.cfg.Areas != 0 {
		c.emitOpenStack()
		if c.cfg.Chooses() {
			c.emitChosen()
		}
	}
	if c.cfg.Predicates != 0 {
		c.emitPredicates()
	}
	if len(fns) > InlineLimit {
		c.emitShared()
	}
	if len(c.cfg.Captures) > 0 {
		c.emitCaptures(fns)
	}
	if !c.cfg.Lazy && to.shared[0] == 0 {
		return nil
	}
	var deltas []int32
	for i := range fns {
		e := emitter{coder: c, fn: &fns[i]}
		if d := (&place{}).lowered(); fns[i].Import != nil && !slices.Contains(deltas, d) {
			deltas = append(deltas, d)
		}
		for _, s := range fns[i].Patched() {
			if s.Role != plan.RoleEntry {
				continue
			}
			m, err := e.moved(&s)
			if err != nil {
				return err
			}
			p := e.place(m, false)
			if d := p.lowered(); !slices.Contains(deltas, d) {
				deltas = append(deltas, d)
			}
		}
	}
	c.emitLower(deltas)
	return nil
}

// emitter makes one function's stubs.
type emitter struct {
	*coder
	code  *Code // nil where the stubs are only made to be looked at
	fn    *stub.Probe
	index uint32
	body  uint64 // behind the entry event, where jumps back to the entry go
}

// A moved instruction is one that is replaced by a branch to its stub.
type moved struct {
	addr          uint64 // in the target
	word          uint32
	entry         bool
	exit          bool // it leaves the function: the exit's event comes before it, of a conditional jump if it is taken
	loop          bool // it goes back to the entry, which isn't a call: it is led past the entry's event
	returned      bool // a call by a slot of imports returns here
	spDelta       int32
	alive         bool     // there is something in x16 and x17
	leadElsewhere bool     // it stays a b or bl, which leads to the stub
	marks         []uint32 // the markers before it, by their IDs
}

// function emits the stubs. The entry's comes first: jumps back to the entry need its address.
func (s *emitter) function() error {
	sites := s.fn.Patched()
	from := s.offset()
	s.flushed = from
	if s.fn.Import != nil {
		s.imported()
	}
	for _, entries := range []bool{true, false} {
		for i := range sites {
			site := &sites[i]
			if (site.Role == plan.RoleEntry) != entries {
				continue
			}
			m, err := s.moved(site)
			if err != nil {
				return err
			}
			s.alignStub()
			at := s.PC()
			if err := s.site(m); err != nil {
				return err
			}
			s.flushOften()
			if s.code != nil {
				if err := s.patch(m, site, at); err != nil {
					return err
				}
			}
		}
	}
	s.flush()
	s.Resolve()
	var slots []stub.Slot
	if s.code != nil {
		slots = s.code.Slots
	}
	slots = s.settle(slots, from)
	if s.code != nil {
		s.code.Slots = slots
	}
	return nil
}

// alignStub keeps the inline events of few functions from cache lines that they needn't touch.
func (c *coder) alignStub() {
	if c.routines.shared[0] == 0 {
		c.Align(16)
	}
}

// moved reads the instruction of a site.
func (s *emitter) moved(site *plan.Site) (m moved, err error) {
	b := s.fn.Image.Code(site.Addr, 4)
	if b == nil || site.Count != 1 || site.Size != 4 {
		return m, fmt.Errorf("site at %#x isn't one instruction of the text", site.Addr)
	}
	m = moved{addr: site.Addr + s.fn.Slide, word: binary.LittleEndian.Uint32(b), entry: site.Role == plan.RoleEntry, exit: site.Exits() > 0,
		returned: site.Role == plan.RoleMark && s.fn.Import != nil, spDelta: site.SPDelta, leadElsewhere: site.Kind == plan.SiteBranch}
	if !m.returned {
		m.marks = s.marksAt(site)
	}
	if m.leadElsewhere && kindOf(m.word) != jump && kindOf(m.word) != call_ {
		return m, fmt.Errorf("no b or bl at %#x", site.Addr)
	}
	switch to := targetOf(m.word, site.Addr); kindOf(m.word) {
	case jump, condJump:
		m.loop = site.Role == plan.RoleLoop || m.entry && !m.exit && to >= s.fn.Addr && to <= site.Addr
	}
	// What jumps by a register at once may jump by one of them, or pass them on.
	k := kindOf(m.word)
	m.alive = s.cfg.Go == nil && (site.Role == plan.RoleMark || m.entry && (k == indirectJump || k == indirectCall || !s.untouched(site.Addr)))
	return m, nil
}

// untouched says whether nothing but landing pads and signatures comes before an entry's site: so there is nothing in x16 and x17 there.
func (s *emitter) untouched(site uint64) bool {
	for addr := s.fn.Addr; addr < site; addr += 4 {
		b := s.fn.Image.Code(addr, 4)
		if b == nil || binary.LittleEndian.Uint32(b)&0xFFFFF01F != 0xD503201F { // a hint
			return false
		}
	}
	return true
}

// site emits the stub of one instruction.
func (s *emitter) site(m moved) error {
	s.low = 0
	s.stands(m.addr)
	if m.entry {
		s.entryEvent(m)
		s.body = s.PC()
		s.hooks(m)
	}
	for _, id := range m.marks {
		s.mark(id)
	}
	if m.returned {
		s.returned(m)
	}
	to := targetOf(m.word, m.addr)
	if m.loop {
		if s.body == 0 {
			return fmt.Errorf("jump to the entry at %#x has nowhere to go", m.addr)
		}
		to = s.body
	}
	switch k := kindOf(m.word); {
	case k == condJump:
		s.conditional(m, to)
	case k == jump, k == call_ && m.leadElsewhere: // of a bl the link register is there already
		s.exitEvent(m)
		s.BTo(to)
	case k == indirectJump, k == ret:
		m.alive = k == indirectJump // the jump may be by them, or pass them on
		if k == ret {
			s.returnEvent(m)
		} else {
			s.exitEvent(m)
		}
		s.Word(m.word)
	default:
		if err := s.copy(m.word, m.addr, m.alive); err != nil {
			return err
		}
	}
	if !ends(m.word) && !(kindOf(m.word) == call_ || kindOf(m.word) == indirectCall) {
		s.stands(m.addr + 4)
		s.BTo(m.addr + 4)
	}
	return nil
}

// entryEvent emits the entry's event, if the function is traced.
func (s *emitter) entryEvent(m moved) {
	if p := s.captures(); p != nil && (p.Entry != nil || p.Chosen() || p.NotesResult()) {
		s.capturedEvent(s.place(m, false), p, p.Entry)
	} else if s.fn.ID != 0 {
		s.event(s.place(m, false))
	}
	s.holdAgainst(m, false)
}

// holdAgainst emits what the function's predicates ask for behind an event, if it has any.
func (s *emitter) holdAgainst(m moved, exit bool) {
	if s.fn.ID != 0 && s.fn.Predicates.Count != 0 && s.cfg.Predicates != 0 {
		s.predicates(s.place(m, exit), s.fn.Predicates)
	}
}

// hooks emits what a hook at the function's entry does.
func (s *emitter) hooks(m moved) {
	g := s.fn.Hook
	if s.cfg.Go != nil {
		if g.OfGo() {
			s.goSays(g)
		}
		return
	}
	if g == plan.HookNone {
		return
	}
	if m.alive {
		s.push(x16, x17)
	}
	switch {
	case g != plan.HookFindObject:
		s.hook(g)
	case s.routines.unwindList != 0 && !m.alive && m.spDelta == 0: // where it can answer for the function
		if s.unwind != nil {
			s.unwind.hook = m.addr
		}
		s.findObject(func() {
			if s.fn.ID != 0 {
				s.event(s.place(m, true))
			}
			s.holdAgainst(m, true)
		})
	}
	if m.alive {
		s.pop(x16, x17)
	}
}

func (s *emitter) place(m moved, exit bool) place {
	return place{id: s.fn.ID, exit: exit, spDelta: m.spDelta, alive: m.alive, inside: s.fn.Inside}
}

// exitEvent emits the event of an exit, if the instruction is one.
func (s *emitter) exitEvent(m moved) {
	if p := s.captures(); m.exit && p != nil && p.Chosen() {
		s.capturedEvent(s.place(m, true), p, nil)
	} else if m.exit && s.fn.ID != 0 {
		s.event(s.place(m, true))
	}
	if m.exit {
		s.holdAgainst(m, true)
	}
}

// returnEvent emits the event of a return, which has a result, unlike that of a tail jump.
func (s *emitter) returnEvent(m moved) {
	if p := s.captures(); m.exit && p != nil && p.Return != nil {
		s.capturedEvent(s.place(m, true), p, p.Return)
		s.holdAgainst(m, true)
		return
	}
	s.exitEvent(m)
}

// conditional emits a conditional jump. Where it leaves the function the event is in a part that is put off; so is the jump itself where
// its own distance wouldn't do.
func (s *emitter) conditional(m moved, to uint64) {
	l := s.NewLabel()
	s.condTo(m.word, l)
	s.cold = append(s.cold, func() {
		s.low = 0
		s.stands(m.addr)
		s.Place(l)
		s.exitEvent(m)
		s.BTo(to)
	})
}

// patch notes what changes in the text so that the site leads to the stub at to.
func (s *emitter) patch(m moved, site *plan.Site, to uint64) error {
	d := int64(to - m.addr)
	if d < -1<<27 || d >= 1<<27 {
		return fmt.Errorf("site at %#x: %w", site.Addr, arm64.ErrAsmRange)
	}
	word := branch(uint32(d))
	if m.leadElsewhere {
		word |= m.word & (1 << 31) // bl stays bl
	}
	p := stub.NewPatch(m.addr, binary.LittleEndian.AppendUint32(nil, m.word), binary.LittleEndian.AppendUint32(nil, word))
	p.ID, p.Index, p.Level, p.Alone = s.fn.ID, s.index, 1, true
	s.code.Patches = append(s.code.Patches, p)
	return nil
}
