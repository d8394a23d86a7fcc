package probe

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/callreel/callreel/isa/amd64"
)

// Selected is a planned function that is to be probed, with its ID in the reel. ID 0 is for a function that is only
// guarded, see Guard: it writes no events.
type Selected struct {
	*Function
	Image *Image
	ID    uint32
	Slide uint64 // load address minus link address
}

// Patched are the sites that are written for it.
func (fn *Selected) Patched() []Site {
	if fn.ID == 0 {
		return fn.GuardSites()
	}
	return fn.Sites
}

// Patch is bytes of the target that change. Addresses are the target's.
type Patch struct {
	Addr     uint64
	Old, New []byte
	Island   bool // in padding: to be written before, and restored after, the sites that jump to it
	Hosted   bool // behind the jump of a window: only another site's jump leads here
	// Level orders the writing: what has a higher one leads to, or relies on, what has a lower one. Islands in padding have 0,
	// most sites 1. Text is restored the other way round.
	Level uint8
	// ID is the function's, 0 when that isn't known.
	ID uint32
}

// Pair says that an instruction of the original text and one in a stub are the same.
type Pair struct{ Text, Stub uint64 }

// Code is what the arena of some images holds, and what changes in their text to lead there.
type Code struct {
	Base    uint64
	Bytes   []byte
	Patches []Patch  // islands first, then sites, each in the order of their addresses
	Slots   []Slot   // of functions whose probes are made on the first call
	ToStub  []Pair   // from instructions that were moved to their copies, sorted by Text
	windows []window // sorted; the bytes of text that no thread may stand inside
}

type span64 struct{ start, end uint64 }

// window is the bytes of a site and whose it is.
type window struct {
	span64
	id uint32
}

// InlineLimit is up to how many probes have their event code inline. It is faster by a call and a return (some 1 ns),
// and 70 bytes longer at each site: with many probes it is the caches that count.
const InlineLimit = 256

// Compile makes the code for an arena at base: the event routines and the slow path, then each function's stubs. The
// result's size does not depend on base.
func Compile(base uint64, rt Runtime, fns []Selected) (*Code, error) {
	code := &Code{Base: base}
	c := &coder{Asm: amd64.NewAsm(base, make([]byte, 0, 4096+len(fns)*160)), rt: &rt}
	rt.Slow = c.emitSlow()
	if slices.ContainsFunc(fns, func(fn Selected) bool { return fn.Guard != GuardNone }) {
		rt.guard = c.emitGuard(rt.nap)
	}
	if rt.Go != nil {
		own := *rt.Go
		rt.Go = &own
		c.emitGoSlow()
	}
	rt.Shared = [2]uint64{}
	if len(fns) > InlineLimit && rt.Go == nil {
		shared := [2]uint64{}
		for i := range shared {
			c.Align(64)
			shared[i] = c.PC()
			c.shared(i == 1, 0)
		}
		rt.Shared = shared
	}
	if rt.Lazy {
		c.emitLazy(fns)
	}
	for i := range fns {
		if err := code.function(c, &fns[i]); err != nil {
			return nil, fmt.Errorf("callreel: stubs: %s+%#x (%s): %w", fns[i].Image.Module, fns[i].Addr, fns[i].Name, err)
		}
	}
	var err error
	if code.Bytes, err = c.Finish(); err != nil {
		return nil, fmt.Errorf("callreel: stubs: %w", err)
	}
	code.settle(c.slots)
	code.sort()
	return code, nil
}

func (code *Code) sort() {
	byAddr := func(a, b Patch) int {
		if a.Island != b.Island {
			if a.Island {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Addr, b.Addr)
	}
	slices.SortFunc(code.Patches, byAddr)
	slices.SortFunc(code.ToStub, func(a, b Pair) int { return cmp.Compare(a.Text, b.Text) })
	slices.SortFunc(code.windows, func(a, b window) int { return cmp.Compare(a.start, b.start) })
}

// stub is a function's stubs being made.
type stub struct {
	*coder
	code *Code
	fn   *Selected
	body uint64 // behind the entry event, where jumps back to the entry go
	// copies are of moved instructions that jumps lead to, by the instructions' link addresses.
	copies map[uint64]amd64.Label
}

// function emits the stubs of one function.
func (code *Code) function(c *coder, fn *Selected) error {
	s := &stub{coder: c, code: code, fn: fn}
	sites := fn.Patched()
	s.findCopies(sites)
	for turn := range 3 {
		for i := range sites {
			site := &sites[i]
			if site.turn() != turn {
				continue
			}
			c.Align(16)
			if c.rt.Lazy && site.Role == RoleEntry && fn.ID != 0 {
				c.slotStart()
			}
			at := c.PC()
			var err error
			if site.Kind == SiteBranch {
				at, err = s.branch(site, at)
			} else {
				err = s.window(site)
			}
			if err != nil {
				return err
			}
			c.flush()
			if site.Kind == SiteCopy {
				continue
			}
			if err := code.patch(fn, site, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// turn says when a site's stub is made. The entry's comes first: jumps back to the entry need its address. Branches come last,
// since they may lead to copies.
func (s *Site) turn() int {
	switch {
	case s.Role == RoleEntry:
		return 0
	case s.Kind != SiteBranch:
		return 1
	}
	return 2
}

// branch emits the stub of a branch whose displacement is changed, and returns where it is to lead.
func (s *stub) branch(site *Site, at uint64) (uint64, error) {
	m := &site.Moved[0]
	to, _ := m.Inst.Target(m.Addr)
	to += s.fn.Slide
	switch {
	case site.Role != RoleEntry && !m.Exit && !m.Loop: // one that is led to a copy
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
	case site.Role == RoleEntry:
		s.event(false, site.SPDelta)
		s.guard(s.fn.Guard)
	default:
		s.event(true, 0)
	}
	s.JmpTo(to)
	return at, nil
}

// event emits the function's event, if it is traced.
func (s *stub) event(exit bool, spDelta int32) {
	if s.fn.ID != 0 {
		s.coder.event(s.fn.ID, exit, spDelta)
	}
}

// window emits the stub of a window: the entry event if it is the entry, the moved instructions, the way back.
func (s *stub) window(site *Site) error {
	if site.Role == RoleEntry {
		s.event(false, 0)
		s.body = s.PC()
		s.guard(s.fn.Guard)
	}
	for i := range site.Moved {
		m := &site.Moved[i]
		s.code.ToStub = append(s.code.ToStub, Pair{m.Addr + s.fn.Slide, s.PC()})
		if m.Target {
			s.Place(s.copies[m.Addr])
		}
		if err := s.move(m); err != nil {
			return err
		}
	}
	if last := &site.Moved[len(site.Moved)-1]; !last.Inst.Ends() {
		s.JmpTo(site.End() + s.fn.Slide)
	}
	if site.Kind == SiteCopy {
		return nil
	}
	s.code.windows = append(s.code.windows, window{span64{site.Addr + s.fn.Slide, site.End() + s.fn.Slide}, s.fn.ID})
	return nil
}

// move emits a moved instruction, with the exit event before it if it leaves the function.
func (s *stub) move(m *Moved) error {
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
			s.event(true, 0)
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
		s.Jcc(cond, s.leaving(to))
		return nil
	case amd64.ShortLoop:
		// The same instruction over a jump: its displacement has but 8 bits.
		raw, err := s.original(m)
		if err != nil {
			return err
		}
		s.Raw(raw[:len(raw)-1]...)
		s.Raw(2, 0xEB, nearJump)
		if led {
			s.Jmp(copied)
		} else if m.Exit {
			s.Jmp(s.leaving(to))
		} else {
			s.JmpTo(to)
		}
		return nil
	}
	return s.copy(m)
}

// leaving puts off the code of a conditional exit that is taken.
func (s *stub) leaving(to uint64) amd64.Label {
	l := s.NewLabel()
	s.cold = append(s.cold, func() {
		s.Place(l)
		s.event(true, 0)
		s.JmpTo(to)
	})
	return l
}

// original returns the bytes of a moved instruction.
func (s *stub) original(m *Moved) ([]byte, error) {
	t := s.fn.Image.textAt(m.Addr)
	if t == nil || m.Addr+uint64(m.Inst.Len) > t.end {
		return nil, fmt.Errorf("instruction at %#x is outside the text", m.Addr)
	}
	return t.data[m.Addr-t.start:][:m.Inst.Len], nil
}

// copy emits an instruction as it is, with a RIP-relative operand made to name the same address from here.
func (s *stub) copy(m *Moved) error {
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

// patch notes what changes in the text so that the site leads to the stub at stub.
func (code *Code) patch(fn *Selected, site *Site, stub uint64) error {
	addr, n := site.Patch()
	p, err := fn.oldBytes(addr, n)
	if err != nil {
		return err
	}
	from := p.Addr
	p.Level, p.ID = max(1, site.Level), fn.ID
	to := stub
	if site.Island != 0 {
		island, err := fn.oldBytes(site.Island, nearJump)
		if err != nil {
			return err
		}
		if err := jumpBytes(&island, stub); err != nil {
			return err
		}
		island.Island, island.Hosted, island.ID = !site.Hosted, site.Hosted, fn.ID
		if site.Hosted {
			island.Level = site.Level - 1
		}
		code.Patches = append(code.Patches, island)
		p.New = []byte{0xEB, byte(int64(island.Addr) - int64(from+shortJump))}
		code.Patches = append(code.Patches, p)
		return nil
	}
	if site.Kind == SiteWindow {
		err = jumpBytes(&p, to)
	} else {
		// The displacement counts from the end of the branch.
		end := site.End() + fn.Slide
		p.New = make([]byte, 4)
		err = putRel32(p.New, int64(to)-int64(end))
	}
	code.Patches = append(code.Patches, p)
	return err
}

// oldBytes starts a patch with what the file has there.
func (fn *Selected) oldBytes(addr uint64, n int) (Patch, error) {
	t := fn.Image.textAt(addr)
	if t == nil || addr+uint64(n) > t.end {
		return Patch{}, fmt.Errorf("site at %#x is outside the text", addr)
	}
	return Patch{Addr: addr + fn.Slide, Old: t.data[addr-t.start:][:n:n]}, nil
}

func jumpBytes(p *Patch, to uint64) error {
	p.New = []byte{0xE9, 0, 0, 0, 0}
	return putRel32(p.New[1:], int64(to)-int64(p.Addr+nearJump))
}

func putRel32(b []byte, d int64) error {
	if d < math.MinInt32 || d > math.MaxInt32 {
		return fmt.Errorf("stub: %w", amd64.ErrAsmRange)
	}
	binary.LittleEndian.PutUint32(b, uint32(int32(d)))
	return nil
}

// Inside says whether pc lies inside a window behind its first byte: no thread may be there when the text changes.
func (code *Code) Inside(pc uint64) bool {
	_, inside := code.InsideOf(pc)
	return inside
}

// InsideOf is Inside, and says in which function's window.
func (code *Code) InsideOf(pc uint64) (id uint32, inside bool) {
	i, found := slices.BinarySearchFunc(code.windows, pc, func(w window, a uint64) int { return cmp.Compare(w.start, a) })
	if found || i == 0 || pc >= code.windows[i-1].end {
		return 0, false
	}
	return code.windows[i-1].id, true
}

// StubFor returns the copy of a moved instruction.
func (code *Code) StubFor(pc uint64) (uint64, bool) {
	i, found := slices.BinarySearchFunc(code.ToStub, pc, func(p Pair, a uint64) int { return cmp.Compare(p.Text, a) })
	if !found {
		return 0, false
	}
	return code.ToStub[i].Stub, true
}
