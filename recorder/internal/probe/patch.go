package probe

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/callreel/callreel/isa/amd64"
)

// MaxPatch is how many bytes a patch changes at most.
const MaxPatch = nearJump

// Patch is bytes of the target that change.
type Patch struct {
	Addr     uint64 // the target's
	fn       uint32 // index of the function that it is for
	old, new [MaxPatch]byte
	size     uint8
	Island   bool // in padding: to be written before, and restored after, the sites that jump to it
	Hosted   bool // behind the jump of a window: only another site's jump leads here
	// Level orders the writing: what has a higher one leads to, or relies on, what has a lower one. Islands in padding have 0,
	// most sites 1. Text is restored the other way round.
	Level uint8
	// Alone says that all that it leads to or relies on, and all that leads to or relies on it, is on its own page. So its level doesn't
	// matter where pages are written whole.
	Alone bool
	ID    uint32 // the function's, 0 for one that is only guarded
}

// NewPatch makes a patch of as many old bytes as new ones, at most MaxPatch.
func NewPatch(addr uint64, old, new []byte) Patch {
	p := Patch{Addr: addr}
	p.size = uint8(copy(p.old[:], old))
	copy(p.new[:], new)
	return p
}

// Old is what the file has there. The slice belongs to the patch.
func (p *Patch) Old() []byte { return p.old[:p.size] }

// New is what is to be there instead. The slice belongs to the patch.
func (p *Patch) New() []byte { return p.new[:p.size] }

// patch notes what changes in the text so that the site leads to the stub at stub.
func (code *Code) patch(fn int, site *Site, stub uint64) error {
	addr, n := site.Patch()
	p, err := code.oldBytes(fn, addr, n)
	if err != nil {
		return err
	}
	p.Level = max(1, site.Level)
	p.Alone = !site.apart && !site.islandApart()
	switch {
	case site.Island != 0:
		island, err := code.oldBytes(fn, site.Island, nearJump)
		if err != nil {
			return err
		}
		if err := island.jump(stub); err != nil {
			return err
		}
		island.Island, island.Hosted, island.Alone = !site.Hosted, site.Hosted, p.Alone
		if site.Hosted {
			island.Level = site.Level - 1
		}
		code.Patches = append(code.Patches, island)
		p.new = [MaxPatch]byte{0xEB, byte(int64(island.Addr) - int64(p.Addr+shortJump))}
	case site.Kind == SiteWindow:
		err = p.jump(stub)
	default:
		err = putRel32(p.new[:], int64(stub)-int64(p.Addr+4)) // from the end of the branch
	}
	code.Patches = append(code.Patches, p)
	return err
}

// oldBytes starts a patch with what the file has there.
func (code *Code) oldBytes(fn int, addr uint64, n int) (Patch, error) {
	f := &code.fns[fn]
	t := f.Image.textAt(addr)
	if t == nil || addr+uint64(n) > t.end {
		return Patch{}, fmt.Errorf("site at %#x is outside the text", addr)
	}
	p := Patch{Addr: addr + f.Slide, ID: f.ID, fn: uint32(fn), size: uint8(n)}
	copy(p.old[:n], t.data[addr-t.start:])
	return p, nil
}

// jump makes a jump of the new bytes.
func (p *Patch) jump(to uint64) error {
	p.new[0] = 0xE9
	return putRel32(p.new[1:], int64(to)-int64(p.Addr+nearJump))
}

func putRel32(b []byte, d int64) error {
	if d < math.MinInt32 || d > math.MaxInt32 {
		return fmt.Errorf("stub: %w", amd64.ErrAsmRange)
	}
	binary.LittleEndian.PutUint32(b, uint32(int32(d)))
	return nil
}

// sort puts the patches in their order.
func (code *Code) sort() {
	order := func(a, b Patch) int {
		switch {
		case a.Island == b.Island:
			return cmp.Compare(a.Addr, b.Addr)
		case a.Island:
			return -1
		}
		return 1
	}
	slices.SortFunc(code.Patches, order)
	if i := slices.IndexFunc(code.Patches, func(p Patch) bool { return !p.Island }); i >= 0 {
		code.sites = code.Patches[i:]
	}
}

// windowAt returns the window that holds an address of the target's, and whose it is.
func (code *Code) windowAt(pc uint64) (fn int, site *Site) {
	i, found := slices.BinarySearchFunc(code.sites, pc, func(p Patch, a uint64) int { return cmp.Compare(p.Addr, a) })
	if !found {
		i--
	}
	if i < 0 {
		return 0, nil
	}
	fn = int(code.sites[i].fn)
	f := &code.fns[fn]
	sites := f.Patched()
	for k := range sites {
		if s := &sites[k]; s.Kind == SiteWindow && pc-f.Slide >= s.Addr && pc-f.Slide < s.End() {
			return fn, s
		}
	}
	return 0, nil
}

// Inside says whether pc lies inside a window behind its first byte: no thread may be there when the text changes.
func (code *Code) Inside(pc uint64) bool {
	_, inside := code.InsideOf(pc)
	return inside
}

// InsideOf is Inside, and says in which function's window.
func (code *Code) InsideOf(pc uint64) (id uint32, inside bool) {
	fn, site := code.windowAt(pc)
	if site == nil || pc == site.Addr+code.fns[fn].Slide {
		return 0, false
	}
	return code.fns[fn].ID, true
}

// StubFor returns the copy of a moved instruction. Few are ever asked for, so the function's stubs are made once more to
// see where it is.
func (code *Code) StubFor(pc uint64) (uint64, bool) {
	fn, site := code.windowAt(pc)
	if site == nil {
		return 0, false
	}
	again := &Code{fns: code.fns, asked: pc}
	c := code.coder(code.Base+uint64(code.stubs[fn]), nil)
	if err := (&stub{coder: c, code: again}).function(fn); err != nil {
		return 0, false
	}
	return again.answer, again.answer != 0
}
