package amd64

import (
	"testing"

	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// A thread that is inside a site is led to the copy of the instruction it is at, and to nothing else.
func TestACopyIsFoundForEachMovedInstruction(t *testing.T) {
	const slide, base = 0x7000_0000, 0x6000_0000
	im := realImage(t, "libc")
	fns := planImage(t, im)
	var selected []stub.Probe
	for i := range fns {
		if fns[i].Tier != plan.TierNone {
			selected = append(selected, stub.Probe{Function: &fns[i], Image: im, ID: uint32(i + 1), Slide: slide})
		}
	}
	code, err := compile(base, stub.Config{Gate: base - amd64.PageSize, Ring: 1 << 40}, selected, nil)
	if err != nil {
		t.Fatal(err)
	}
	copies := 0
	for i := range selected {
		for k := range selected[i].Sites {
			s := &selected[i].Sites[k]
			moved := map[uint64]plan.Moved{}
			if s.Kind == plan.SiteDisplaced {
				for _, m := range im.Moved(s, nil) {
					moved[m.Addr] = m
				}
			}
			for a := s.Addr; a < s.End(); a++ {
				if inside := code.Inside(a + slide); inside != (s.Kind == plan.SiteDisplaced && a != s.Addr) {
					t.Errorf("%s: %#x is inside the site at %#x: %v", selected[i].Name, a, s.Addr, inside)
				}
				m, want := moved[a]
				to, ok := code.StubFor(a + slide)
				if ok != want {
					t.Errorf("%s: %#x has a copy at %#x: %v", selected[i].Name, a, to, ok)
				}
				if !ok || !want {
					continue
				}
				copies++
				if to < base || to >= base+uint64(len(code.Bytes)) {
					t.Fatalf("%s: the copy of %#x at %#x is outside of the arena", selected[i].Name, a, to)
				}
				in, err := amd64.Decode(code.Bytes[to-base:])
				if err != nil {
					t.Fatalf("%s: the copy of %#x: %v", selected[i].Name, a, err)
				}
				if m.Inst.Kind == amd64.Other && (in.Len != m.Inst.Len || in.Opcode != m.Inst.Opcode || in.Kind != amd64.Other) {
					t.Errorf("%s: the copy of %#x is another instruction", selected[i].Name, a)
				}
			}
		}
	}
	if copies < 1000 {
		t.Errorf("only %d copies", copies)
	}
}

// What is said to have nothing to do with other pages leads to none of the text.
func TestAPatchAloneLeadsToItsOwnPage(t *testing.T) {
	im := realImage(t, "python")
	fns := planImage(t, im)
	var selected []stub.Probe
	apart := map[uint32]bool{}   // functions with sites for which other pages matter
	apartAt := map[uint64]bool{} // those sites
	for i := range fns {
		if fns[i].Tier == plan.TierNone {
			continue
		}
		selected = append(selected, stub.Probe{Function: &fns[i], Image: im, ID: uint32(i + 1)})
		for k := range fns[i].Sites {
			s := &fns[i].Sites[k]
			apart[uint32(i+1)] = apart[uint32(i+1)] || !s.Alone()
			at, _ := s.Patch()
			apartAt[at] = !s.Alone() && s.Kind != plan.SiteCopy
		}
	}
	const base = 0x6000_0000
	code, err := compile(base, stub.Config{Gate: base - amd64.PageSize, Ring: 1 << 40}, selected, nil)
	if err != nil {
		t.Fatal(err)
	}
	alone, hops := 0, 0
	for _, p := range code.Patches {
		if p.Alone {
			alone++
			if apartAt[p.Addr] {
				t.Errorf("the patch at %#x is said to be alone", p.Addr)
			}
		} else if !apart[p.ID] {
			t.Errorf("the patch at %#x isn't alone, and no site of its function has to do with other pages", p.Addr)
		}
		to, jumps := leadsTo(p)
		if len(p.New()) != plan.ShortJump || !jumps {
			continue
		}
		hops++
		if p.Alone && to/amd64.PageSize != p.Addr/amd64.PageSize {
			t.Errorf("the patch at %#x is said to be alone, and leads to %#x", p.Addr, to)
		}
	}
	if len(code.Patches)-alone == 0 || hops == 0 || alone < 1000 {
		t.Errorf("%d patches of %d are alone, %d lead to islands", alone, len(code.Patches), hops)
	}
}
