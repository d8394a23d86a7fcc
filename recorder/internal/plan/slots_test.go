package plan

import (
	"slices"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/object"
)

// slottedImage is a real image with all of its slots for functions to be planned.
func slottedImage(t *testing.T, name string) *Image {
	t.Helper()
	im := realImage(t, name)
	err := im.Object.VisitSlots(func(s *object.Slot) bool {
		if s.Kind != object.SlotWord && s.Symbol.Kind != object.Object && s.Offset%8 == 0 {
			im.Slots = append(im.Slots, s.Offset)
		}
		return true
	})
	slices.Sort(im.Slots)
	im.Slots = slices.Compact(im.Slots)
	if err != nil || len(im.Slots) == 0 {
		t.Fatalf("%d slots, %v", len(im.Slots), err)
	}
	return im
}

// Each reference to a slot that decoding a function shows is found, and each place that a call returns to is behind a call.
func TestReferencesToSlotsAreFound(t *testing.T) {
	realtest.Need(t, realtest.AMD64)
	for _, name := range []string{"libstdc++", "python"} {
		t.Run(name, func(t *testing.T) {
			im := slottedImage(t, name)
			fns, err := im.Plan(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			slots := map[uint64]*Slot{}
			for i := range im.Slotted {
				slots[im.Slotted[i].Addr] = &im.Slotted[i]
			}
			calls, others := map[uint64]int{}, 0
			for i := range fns {
				f := &fns[i]
				for pc := f.Addr; pc < f.Addr+f.Size; {
					code := im.Code(pc, 1)
					if code == nil {
						break
					}
					text := im.textAt(pc)
					in, err := amd64.Decode(text.data[pc-text.start:])
					if err != nil {
						break
					}
					if to, is := in.MemTarget(pc); is && slots[to] != nil {
						switch in.Kind {
						case amd64.IndirectCall:
							calls[to]++
						case amd64.IndirectJump:
							if !slots[to].Used {
								t.Errorf("%#x jumps by %#x, of which no use was found", pc, to)
							}
						default:
							others++
							if slots[to].Taken == 0 {
								t.Errorf("%#x reads %#x, and that wasn't found", pc, to)
							}
						}
					}
					pc += uint64(in.Len)
				}
			}
			found, returns := 0, 0
			for addr, s := range slots {
				if s.Calls < calls[addr] {
					t.Errorf("%d calls by %#x, of which %d were found", calls[addr], addr, s.Calls)
				}
				found += s.Calls
				for _, k := range s.Returns {
					returns++
					m := &im.Marked[k]
					if !m.Return || len(m.Alone.Sites) == 0 {
						t.Fatalf("%+v", m)
					}
					before := im.Code(m.Addr-6, 6)
					if !(before[1] == 0xE8 || before[0] == 0xFF && before[1] == 0x15) {
						t.Errorf("in front of %#x there is % x", m.Addr, before)
					}
					for _, site := range m.Alone.Sites {
						if site.Addr != m.Addr || site.Kind != SiteDisplaced {
							t.Errorf("%#x has a site %+v", m.Addr, site)
						}
					}
				}
			}
			why := map[Reason]int{}
			for i := range im.Marked {
				why[im.Marked[i].Alone.Reason]++
			}
			t.Logf("%v", why)
			t.Logf("%d slots, %d calls, %d of which end where it is seen, %d other references", len(slots), found, returns, others)
			if found == 0 || returns*2 < found {
				t.Errorf("%d calls, %d returns", found, returns)
			}
		})
	}
}

// Hardly a function is lost for the places where calls return to, which may have what it needs of its neighbours, and what is written for both has
// nothing in common.
func TestReturnsAndFunctionsShareNoBytes(t *testing.T) {
	im := slottedImage(t, "python")
	plain, err := realImage(t, "python").Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fns, err := im.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	count := func(list []Function) (n int) {
		for i := range list {
			n += btoi(list[i].Tier != TierNone)
		}
		return n
	}
	if with, without := count(fns), count(plain); with < without-without/1000 {
		t.Errorf("%d functions are recorded, %d without imports", with, without)
	}
	taken := map[uint64]uint64{}
	take := func(who uint64, sites []Site) {
		for i := range sites {
			if s := &sites[i]; s.Kind != SiteCopy {
				for a := s.Addr; a < s.End(); a++ {
					if other, is := taken[a]; is && other != who {
						t.Errorf("%#x and %#x both have %#x", who, other, a)
					}
					taken[a] = who
				}
			}
		}
	}
	recorded := map[uint64]bool{}
	for i := range fns {
		take(fns[i].Addr, fns[i].Sites)
		recorded[fns[i].Addr] = fns[i].Tier != TierNone
	}
	for i := range im.Marked {
		if m := &im.Marked[i]; m.Alone.Tier != TierNone && (!recorded[m.Host] || m.With == MarkApart) {
			take(m.Addr, m.Alone.Sites)
		}
	}
}
