package plan

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/callreel/callreel/isa/amd64"
)

// A slot is a word of data by which code calls a function of another image: an entry of the global offset table. Its calls are recorded by what is
// written into the slot, and their ends by sites where they return to, as marks are. Whoever else reads the slot might keep what is written
// there for longer than the stub exists. So all of the code is searched for references, at each byte: one too many is found rather than one too
// few.

// Slot is a slot, planned.
type Slot struct {
	Addr uint64 // link address
	// Taken is where code reads the slot, or writes it, other than to jump or call by it; 0 if none does.
	Taken uint64
	// Used says that code jumps or calls by it.
	Used bool
	// Entry is where a thread could be whose stack is as at a function's beginning, for unwinders: the slot's PLT entry, or a function.
	Entry uint64
	// Calls is how many calls by the slot were found, Returns are the places, of Image.Marked behind those of Image.Marks, where the event of
	// the end of one can be written.
	Calls   int
	Returns []int
}

// slotCall is a call by a slot.
type slotCall struct {
	slot int    // of Image.Slotted
	to   uint64 // where it returns to
}

// maxSlotCalls bounds how many calls there may be. Each takes some hundred bytes.
const maxSlotCalls = 1 << 18

// findSlots finds what refers to the slots, and the calls by them. references is to find the references in a text, and the entries of the PLT among
// them, callsOf the direct calls of these.
func (im *Image) findSlots(references func(t *text, lo, hi uint64, at, entries map[uint64]int), callsOf func(t *text, entries map[uint64]int)) {
	im.calls = nil
	im.Slotted = make([]Slot, len(im.Slots))
	if len(im.Slots) == 0 {
		return
	}
	at := make(map[uint64]int, len(im.Slots))
	lo, hi := ^uint64(0), uint64(0)
	for i, addr := range im.Slots {
		im.Slotted[i].Addr = addr
		at[addr] = i
		lo, hi = min(lo, addr), max(hi, addr)
	}
	entries := map[uint64]int{} // of the PLT
	for i := range im.texts {
		references(&im.texts[i], lo, hi, at, entries)
	}
	if len(entries) > 0 {
		for i := range im.texts {
			callsOf(&im.texts[i], entries)
		}
	}
	slices.SortFunc(im.calls, func(a, b slotCall) int { return cmp.Compare(a.to, b.to) })
	im.calls = slices.CompactFunc(im.calls, func(a, b slotCall) bool { return a.to == b.to })
	for _, c := range im.calls {
		im.Slotted[c.slot].Calls++
	}
}

// references finds the references to slots in a text, at each byte. What jumps by a slot may be an entry of the PLT.
func (im *Image) references(t *text, lo, hi uint64, at, entries map[uint64]int) {
	const longest = 4 // bytes of an immediate behind the displacement
	data := t.data
	for p := 2; p+4 <= len(data); p++ {
		to := t.start + uint64(p) + 4 + uint64(int64(int32(binary.LittleEndian.Uint32(data[p:]))))
		if to+longest < lo || to > hi {
			continue
		}
		for _, behind := range [...]uint64{0, 1, 2, longest} {
			slot, is := at[to+behind]
			if !is {
				continue
			}
			s, op := &im.Slotted[slot], data[p-1]
			end := t.start + uint64(p) + 4
			switch {
			case behind == 0 && data[p-2] == 0xFF && op == 0x15: // call *slot(%rip)
				s.Used = true
				im.addCall(slot, end)
			case behind == 0 && data[p-2] == 0xFF && op == 0x25: // jmp *slot(%rip)
				s.Used = true
				for _, entry := range entriesAt(data, p-2) {
					entries[t.start+uint64(entry)] = slot
					s.Entry = t.start + uint64(entry)
				}
			default:
				s.Taken = end
			}
		}
	}
}

// entriesAt are where an entry of the PLT may begin whose jump is at p: there, at its BND prefix, or at the endbr64 in front.
func entriesAt(data []byte, p int) (list []int) {
	list = append(list, p)
	if p >= 1 && data[p-1] == 0xF2 {
		p--
		list = append(list, p)
	}
	if p >= 4 && data[p-4] == 0xF3 && data[p-3] == 0x0F && data[p-2] == 0x1E && data[p-1] == 0xFA {
		list = append(list, p-4)
	}
	return list
}

// callsOf finds the direct calls of entries.
func (im *Image) callsOf(t *text, entries map[uint64]int) {
	data := t.data
	for p := 1; p+4 <= len(data); p++ {
		if data[p-1] != 0xE8 {
			continue
		}
		end := t.start + uint64(p) + 4
		if slot, is := entries[end+uint64(int64(int32(binary.LittleEndian.Uint32(data[p:]))))]; is {
			im.addCall(slot, end)
		}
	}
}

func (im *Image) addCall(slot int, to uint64) {
	if len(im.calls) < maxSlotCalls {
		im.calls = append(im.calls, slotCall{slot, to})
	}
}

// returnsTo says whether the instruction at addr, which has index k, is where a call returns to, and nothing else comes.
func (p *planner) returnsTo(k int, addr uint64) bool {
	return k > 0 && k < len(p.insts) && p.insts[k].addr == addr && p.insts[k-1].end() == addr &&
		(p.insts[k-1].Kind == amd64.Call || p.insts[k-1].Kind == amd64.IndirectCall) && !p.isTarget(addr)
}

// settleSlots says which returns of each slot have a place, once the marks are placed, and gives each slot an entry.
func (im *Image) settleSlots(fns []Function) {
	if len(im.Slotted) == 0 {
		return
	}
	some := uint64(0) // any function's beginning is as good
	for i := range fns {
		if fns[i].Tier != TierNone || fns[i].Reason == ReasonUnasked {
			some = fns[i].Addr
			break
		}
	}
	for i := range im.Slotted {
		if s := &im.Slotted[i]; s.Entry == 0 {
			s.Entry = some
		}
	}
	for i, c := range im.calls {
		if m := len(im.Marks) + i; im.Marked[m].Alone.Tier != TierNone {
			s := &im.Slotted[c.slot]
			s.Returns = append(s.Returns, m)
		}
	}
}
