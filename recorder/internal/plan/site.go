package plan

import (
	"math/bits"
	"slices"

	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/recorder/internal/discover"
)

// SiteKind says what is written at a site.
type SiteKind uint8

// The kinds of sites.
const (
	// SiteDisplaced is whole instructions that are moved into the stub; a jump takes their place.
	SiteDisplaced SiteKind = iota
	// SiteBranch is a direct branch (jmp, jcc or call with a 32-bit displacement) whose displacement is changed.
	SiteBranch
	// SiteCopy is whole instructions that control comes to by jumps alone, which are all led to the copy in the stub.
	// Nothing is written.
	SiteCopy
	// SiteWord is one instruction of arm64 that is moved into the stub; a branch takes its place. There SiteBranch is b or bl.
	SiteWord
)

// Role says which event a site's stub writes besides those of exits that were moved with it.
type Role uint8

// The roles.
const (
	RoleExit  Role = iota // none at its start; exits inside it
	RoleEntry             // the entry event first
	RoleLoop              // none: it only leads a jump past the entry event
	RoleMark              // a marker's, before the instruction behind the first Before
)

// Site is one patched place of a function.
type Site struct {
	Addr uint64 // link address of the first byte that changes, or of the branch instruction
	// Island is the address of five bytes of padding that hold the jump to the stub, when the site itself is only
	// long enough for a two-byte jump to them; else 0.
	Island uint64

	exits, loops, targets uint64 // bit i tells of the instruction i; of loops the highest are freeX16 and freeX17

	// SPDelta is how far the stack pointer at the site's event is below its value at the function's entry, for RoleEntry; below that at the
	// marker for RoleMark.
	SPDelta int32
	Kind    SiteKind
	Role    Role
	Size    uint8 // bytes of the displaced instructions, the padding taken with it included; or of the branch
	// Count is how many instructions from Addr on run in the stub instead, see Image.Moved: at most maxExtended.
	Count uint8
	// Level says after which others the site may be written: those of lower levels. 0 is 1, see levels.
	Level uint8
	// Hosted says that the island is in another site, behind its jump.
	Hosted bool
	hosts  bool // another site's island
	bound  bool // it relies on another site, or another on it, see levels
	apart  bool // and one of those that are bound to each other is on another page

	// Before is how many of the instructions run before the event of RoleEntry, or RoleMark.
	Before    uint8
	swapped   uint8 // the index of one that runs elsewhere, plus 1, see gofault.go; else 0
	swappedTo uint8 // and there
}

// Exits is how many of the instructions leave the function.
func (s *Site) Exits() int { return bits.OnesCount64(s.exits) }

// HasTargets says whether jumps lead to one of the instructions.
func (s *Site) HasTargets() bool { return s.targets != 0 }

// Reordered says whether one of the instructions runs in another's place, see Image.Moved.
func (s *Site) Reordered() bool { return s.swapped != 0 }

// Of Site.loops on arm64, where a site is of one instruction: what the program doesn't need there.
const (
	freeX16 = 1 << 62
	freeX17 = 1 << 63
)

// Free says which of the registers that linkers' veneers may change (AAPCS64 §6.1.1) nothing is kept in where the site is, on arm64: as far as the
// function's own code shows, no instruction from the site's own on reads what is in it now.
func (s *Site) Free() (x16, x17 bool) { return s.loops&freeX16 != 0, s.loops&freeX17 != 0 }

// Alone says whether all that is to be written before or after the site, for it to be right, is on its own page.
func (s *Site) Alone() bool { return !s.apart && !s.islandApart() }

// Moved is an instruction that runs in the stub instead.
type Moved struct {
	Addr   uint64
	Inst   amd64.Inst
	Exit   bool // leaves the function: an exit event is written before it (for a jcc: if it is taken)
	Target bool // jumps lead to it, which are led to its copy
	Loop   bool // jumps back to the function's entry, which must not count as a call: it is led past the entry event
}

// take adds an instruction, the site's last so far.
func (s *Site) take(in *inst) {
	if in.role == roleExit {
		s.exits |= 1 << s.Count
	}
	if in.role == roleLoop {
		s.loops |= 1 << s.Count
	}
	s.Count++
}

// Moved appends the instructions to list that run in the site's stub, in the order in which they run there.
func (im *Image) Moved(s *Site, list []Moved) []Moved {
	t, first := im.textAt(s.Addr), len(list)
	addr := s.Addr
	for i := range s.Count {
		n := len(list)
		list = slices.Grow(list, 1)[:n+1]
		m := &list[n]
		if amd64.DecodeTo(&m.Inst, t.data[addr-t.start:]) != nil {
			return list[:n] // it was decoded before
		}
		m.Addr, m.Exit, m.Target, m.Loop = addr, s.exits>>i&1 != 0, s.targets>>i&1 != 0, s.loops>>i&1 != 0
		addr += uint64(m.Inst.Len)
	}
	s.swap(list[first:])
	return list
}

// MovedWord is the instruction of arm64 that runs in the stub of a site instead, or the branch whose distance is changed.
type MovedWord struct {
	Addr uint64
	Inst arm64.Inst
	Exit bool // leaves the function: an exit event is written before it; for a conditional branch if it is taken
	Loop bool // jumps back to the function's entry, which must not count as a call: it is led past the entry event
}

// MovedWord returns it. It reports false for a site that is none of arm64's.
func (im *Image) MovedWord(s *Site) (m MovedWord, ok bool) {
	t := im.textAt(s.Addr)
	if t == nil || im.processor.arch != object.ARM64 || s.Kind != SiteWord && s.Kind != SiteBranch {
		return m, false
	}
	m = MovedWord{Addr: s.Addr, Exit: s.exits&1 != 0, Loop: s.loops&1 != 0}
	return m, arm64.DecodeWord(&m.Inst, t.word(s.Addr)) == nil
}

// End is the address behind the site.
func (s *Site) End() uint64 { return s.Addr + uint64(s.Size) }

// Patch returns the address of the bytes that change at the site itself and how many they are.
func (s *Site) Patch() (addr uint64, n int) {
	switch {
	case s.Kind == SiteBranch, s.Kind == SiteWord:
		return s.End() - 4, 4
	case s.Island != 0:
		return s.Addr, ShortJump
	}
	return s.Addr, NearJump
}

// islandApart says whether its island is on another page.
func (s *Site) islandApart() bool { return s.Island != 0 && !samePage(s.Addr, s.Island) }

// Sizes of the jumps that are written (Intel SDM vol. 2, JMP).
const (
	NearJump  = 5 // E9 rel32
	ShortJump = 2 // EB rel8
)

// crossesPage says whether n bytes at addr lie on two pages. A write to another process is atomic against the death of the
// writer within one. Load addresses are whole pages away from link addresses, so link addresses tell.
func crossesPage(addr uint64, n int) bool { return addr%amd64.PageSize+uint64(n) > amd64.PageSize }

// Function is one function and how it will be probed.
type Function struct {
	Name   string // the best name, image+0x… without a symbol
	Addr   uint64 // link address
	Size   uint64 // bytes, all parts together
	At     uint64 // where the reason was met, 0 if it isn't a place
	Sites  []Site
	Tier   Tier
	Reason Reason
	Hook   Hook // what its arguments may ask for
	// Found is what the function was found by in the code, 0 for one that symbols or CFI tell of.
	Found discover.Evidence

	more *more // nil for most
}

// more is what few functions have.
type more struct {
	names    []string // all, the best first; none when there is just one
	hookSite []Site   // the entry's, of a function without a tier
}

// HookSites are what it takes to look at the function's arguments: its entry's site, none when it can't be had.
func (f *Function) HookSites() []Site {
	switch {
	case f.Hook == HookNone:
	case f.Tier == TierNone:
		if f.more != nil {
			return f.more.hookSite
		}
	default:
		for i := range f.Sites {
			if f.Sites[i].Role == RoleEntry {
				return f.Sites[i : i+1]
			}
		}
	}
	return nil
}

// Refuse takes all sites away from the function. at is where the reason was met, 0 if it isn't a place.
func (f *Function) Refuse(why Reason, at uint64) {
	f.Tier, f.Reason, f.At, f.Sites = TierNone, why, at, nil
	if f.more != nil && f.more.hookSite != nil {
		f.more = &more{names: f.more.names} // the old one may be a copy's as well
	}
}

// Names are the function's names, the best first.
func (f *Function) Names() []string {
	if f.more != nil && len(f.more.names) > 0 {
		return f.more.names
	}
	return []string{f.Name}
}

// SetNames gives the function other names, the best first; there must be one.
func (f *Function) SetNames(names []string) {
	f.Name = names[0]
	if f.more == nil && len(names) > 1 {
		f.more = new(more)
	}
	if f.more != nil {
		f.more.names = names
	}
}
