package amd64

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// patch notes what changes in the text so that the site leads to the stub at to.
func (code *Code) patch(fn int, site *plan.Site, to uint64) error {
	addr, n := site.Patch()
	slide := code.fns[fn].Slide
	own := make([]byte, n, stub.MaxPatch)
	var err error
	switch {
	case site.Island != 0:
		jump := make([]byte, plan.NearJump)
		if err := putJump(jump, site.Island+slide, to); err != nil {
			return err
		}
		island, err := code.newPatch(fn, site.Island, jump)
		if err != nil {
			return err
		}
		island.Island, island.Hosted, island.Alone = !site.Hosted, site.Hosted, site.Alone()
		if site.Hosted {
			island.Level = site.Level - 1
		}
		code.Patches = append(code.Patches, island)
		own = append(own[:0], 0xEB, byte(int64(site.Island)-int64(addr+plan.ShortJump)))
	case site.Kind == plan.SiteDisplaced:
		err = putJump(own, addr+slide, to)
	default:
		err = putRel32(own, int64(to)-int64(addr+slide+4)) // from the end of the branch
	}
	if err != nil {
		return err
	}
	p, err := code.newPatch(fn, addr, own)
	p.Level, p.Alone = max(1, site.Level), site.Alone()
	code.Patches = append(code.Patches, p)
	return err
}

// newPatch makes a patch of a function's code.
func (code *Code) newPatch(fn int, addr uint64, new []byte) (stub.Patch, error) {
	f := &code.fns[fn]
	old := f.Image.Code(addr, len(new))
	if old == nil {
		return stub.Patch{}, fmt.Errorf("site at %#x is outside the text", addr)
	}
	p := stub.NewPatch(addr+f.Slide, old, new)
	p.ID, p.Index = f.ID, uint32(fn)
	return p, nil
}

// putJump makes a jump of the bytes at addr.
func putJump(b []byte, addr, to uint64) error {
	b[0] = 0xE9
	return putRel32(b[1:], int64(to)-int64(addr+plan.NearJump))
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
	order := func(a, b stub.Patch) int {
		switch {
		case a.Island == b.Island:
			return cmp.Compare(a.Addr, b.Addr)
		case a.Island:
			return -1
		}
		return 1
	}
	slices.SortFunc(code.Patches, order)
	if i := slices.IndexFunc(code.Patches, func(p stub.Patch) bool { return !p.Island }); i >= 0 {
		code.sites = code.Patches[i:]
	}
}

// displacedAt returns the site whose displaced instructions were at an address of the target's, and whose it is.
func (code *Code) displacedAt(pc uint64) (fn int, site *plan.Site) {
	i, found := slices.BinarySearchFunc(code.sites, pc, func(p stub.Patch, a uint64) int { return cmp.Compare(p.Addr, a) })
	if !found {
		i--
	}
	if i < 0 {
		return 0, nil
	}
	fn = int(code.sites[i].Index)
	f := &code.fns[fn]
	sites := f.Patched()
	for k := range sites {
		if s := &sites[k]; s.Kind == plan.SiteDisplaced && pc-f.Slide >= s.Addr && pc-f.Slide < s.End() {
			return fn, s
		}
	}
	return 0, nil
}

// Inside says whether pc lies inside the bytes of a site behind the first: no thread may be there when the text changes.
func (code *Code) Inside(pc uint64) bool {
	_, inside := code.InsideOf(pc)
	return inside
}

// InsideOf is Inside, and says in which function's site.
func (code *Code) InsideOf(pc uint64) (id uint32, inside bool) {
	fn, site := code.displacedAt(pc)
	if site == nil || pc == site.Addr+code.fns[fn].Slide {
		return 0, false
	}
	return code.fns[fn].ID, true
}

// StubFor returns the copy of a moved instruction. Few are ever asked for, so the function's stubs are made once more to
// see where it is.
func (code *Code) StubFor(pc uint64) (uint64, bool) {
	fn, site := code.displacedAt(pc)
	if site == nil {
		return 0, false
	}
	again := &Code{fns: code.fns, asked: pc}
	c := code.coder(code.Base+uint64(code.stubs[fn]), nil)
	if err := (&emitter{coder: c, code: again}).function(fn); err != nil {
		return 0, false
	}
	return again.answer, again.answer != 0
}
