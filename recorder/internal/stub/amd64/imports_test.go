package amd64

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/stub"
)

const importTarget = 0x7f12_3456_7890

// importedOf are the imports of an image that is installed, each by a slot.
func importedOf(t *testing.T, name string) (im *plan.Image, selected []stub.Probe) {
	t.Helper()
	im = realImage(t, name)
	err := im.Object.VisitSlots(func(s *object.Slot) bool {
		if s.Kind == object.SlotJump || s.Symbol.Kind == object.Func {
			im.Slots = append(im.Slots, s.Offset)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(im.Slots)
	im.Slots = slices.Compact(im.Slots)
	planImage(t, im)
	for i := range im.Slotted {
		s := &im.Slotted[i]
		var sites []plan.Site
		for _, k := range s.Returns {
			sites = append(sites, im.Marked[k].Alone.Sites...)
		}
		selected = append(selected, stub.Probe{Function: stub.ImportFunction("lib:f", s.Addr, sites), Image: im, ID: uint32(i + 1), Slide: 0x7000_0000,
			Import: &stub.Import{Slot: s.Addr + 0x7000_0000, Was: importTarget, Target: importTarget, Entry: s.Entry}})
	}
	if len(selected) < 50 {
		t.Fatalf("%d imports", len(selected))
	}
	return im, selected
}

// At each instruction of the stub that a slot leads to an unwinder finds a function's beginning, with the stack as it is there, until the stub goes
// on to where the slot led.
func TestUnwindersFindTheCallerOfAnImport(t *testing.T) {
	for _, cfg := range []stub.Config{{}, {Min: true}, {Lazy: true}} {
		_, selected := importedOf(t, "python")
		for _, n := range []int{len(selected), 40} { // with shared routines, and without
			c := compileFrames(t, cfg, selected[:n])
			if len(c.Rebindings) != n {
				t.Fatalf("%d slots of %d", len(c.Rebindings), n)
			}
			for i := range c.Rebindings {
				b := &c.Rebindings[i]
				if raw := c.Bytes[b.Stub-c.Base:][:4]; string(raw) != "\xF3\x0F\x1E\xFA" {
					t.Errorf("the stub at %#x begins with % x, not with endbr64", b.Stub, raw)
				}
				left := false
				for pc := b.Stub; !left; {
					in, err := amd64.Decode(c.Bytes[pc-c.Base:])
					if err != nil {
						t.Fatal(err)
					}
					if pc > b.Stub+16 { // what is in front of the event may belong to the one before
						if at, want := c.stands(t, pc), selected[i].Import.Entry+selected[i].Slide; at != want {
							t.Fatalf("%#x stands for %#x, not %#x", pc, at, want)
						}
					}
					if in.Kind == amd64.IndirectJump {
						at := pc + uint64(in.Len)
						if to := binary.LittleEndian.Uint64(c.Bytes[at-c.Base:]); to != importTarget {
							t.Fatalf("the stub goes on to %#x", to)
						}
						left = true
					} else if in.Ends() && in.Kind != amd64.Jump {
						t.Fatalf("the stub ends at %#x", pc)
					} else if in.Kind == amd64.Jump { // over what is done on the first call
						to, _ := in.Target(pc)
						if to <= pc || to-pc > 1<<12 {
							t.Fatalf("a jump from %#x to %#x", pc, to)
						}
						break
					}
					pc += uint64(in.Len)
				}
			}
		}
	}
}

// Where a call returns to the stack pointer goes down to the return address, the event is written as in front of the return, and up again.
func TestTheStackIsAsInFrontOfTheReturnWhereAnImportEnds(t *testing.T) {
	im, selected := importedOf(t, "python")
	c := compileFrames(t, stub.Config{}, selected)
	end, ends := c.Base+uint64(len(c.Bytes)), 0
	for i := range c.Patches {
		p := &c.Patches[i]
		to, jumps := leadsTo(*p)
		if !jumps || p.Island || to < c.Base || to >= end {
			continue
		}
		fn := &selected[p.Index]
		lowered, seen := false, false
		for pc := to; pc < end; {
			in, err := amd64.Decode(c.Bytes[pc-c.Base:])
			if err != nil {
				t.Fatal(err)
			}
			raw := string(c.Bytes[pc-c.Base:][:in.Len])
			at := c.stands(t, pc)
			switch {
			case lowered && at != fn.Import.Entry+fn.Slide:
				t.Fatalf("%#x, with the stack lowered, stands for %#x", pc, at)
			case !lowered && !seen && at != p.Addr:
				t.Fatalf("%#x stands for %#x, not for %#x, where the call returns to", pc, at, p.Addr)
			}
			switch raw {
			case "\x48\x8D\x64\x24\xF8":
				lowered, seen = true, true
			case "\x48\x8D\x64\x24\x08":
				lowered = false
			}
			pc += uint64(in.Len)
			if in.Ends() || seen && !lowered {
				break
			}
		}
		if lowered || !seen {
			t.Errorf("the stub at %#x: lowered %v, seen %v", to, lowered, seen)
		}
		ends++
	}
	if ends < 100 {
		t.Errorf("%d places of %s", ends, im.Module)
	}
}

// What is bounded before code is made holds for imports.
func TestTheCodeOfImportsIsBounded(t *testing.T) {
	_, selected := importedOf(t, "python")
	for _, cfg := range []stub.Config{{}, {Min: true}, {Lazy: true}, {Min: true, Threads: true}, {Depth: true, Every: 2, Areas: 1 << 41, Counts: 1 << 42}} {
		for _, n := range []int{len(selected), 100} {
			most := Generator{}.Bound(&cfg, selected[:n])
			code := compileFrames(t, cfg, selected[:n])
			if n := uint64(len(code.Bytes)); n > most {
				t.Errorf("%+v: %d bytes, and at most %d were to be expected", cfg, n, most)
			}
		}
	}
}

// Each import can be switched off and on: its entry, and each end.
func TestEachImportHasSwitches(t *testing.T) {
	_, selected := importedOf(t, "python")
	c := compileFrames(t, stub.Config{}, selected)
	for i := range selected {
		list, err := c.Switches(i)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) < 1 || list[0].Exit {
			t.Fatalf("%d switches: %+v", len(list), list)
		}
		for k := range list {
			w := &list[k]
			if v := binary.LittleEndian.Uint64(c.Bytes[w.At:]); v&w.Mask != w.On {
				t.Errorf("a switch that is on is %#x, not %#x", v&w.Mask, w.On)
			}
			if k > 0 && !w.Exit {
				t.Errorf("%+v", w)
			}
		}
	}
}
