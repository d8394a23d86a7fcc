package plan

import "github.com/callreel/callreel/isa/arm64"

// On arm64 code makes a slot's address of a page, by adrp, and of a displacement in what uses it. So each adrp of a page with slots is followed
// along all ways that control takes, until nothing has the page's address any more. What is found is the exact place that is used. Where the
// address gets out of sight all slots of the page may be used. All that may use a slot and leave it to be recorded is an entry of the PLT:
//
//	adrp x16, page; ldr x17, [x16, #slot]; add x16, x16, #slot; br x17
//
// A slot whose entry authenticates what is there (autia1716) holds a signed address, and is none that can be written.

// pageFlow follows the addresses of pages.
type pageFlow struct {
	im     *Image
	at     map[uint64]int
	budget int
	seen   map[uint64]uint32 // of the page at work: where control has come with the address in these registers
	todo   []pageAt
	lost   map[uint64]bool // pages whose address got out of sight
}

// pageAt is a place to which control comes with a page's address in some registers.
type pageAt struct {
	pc   uint64
	regs uint32
}

// referencesARM64 finds the references to slots in a text.
func (im *Image) referencesARM64(t *text, lo, hi uint64, at, entries map[uint64]int) {
	const perWord = 4 // steps
	f := pageFlow{im: im, at: at, budget: perWord * len(t.data) / arm64.Len, seen: map[uint64]uint32{}, lost: map[uint64]bool{}}
	pages := map[uint64]bool{}
	for addr := range at {
		pages[addr&^(adrpPage-1)] = true
	}
	for pc := (t.start + arm64.Len - 1) &^ (arm64.Len - 1); pc+arm64.Len <= t.end; pc += arm64.Len {
		word := t.word(pc)
		if word&0x1F000000 != 0x10000000 && word&0x3B000000 != 0x18000000 {
			continue
		}
		var in arm64.Inst
		if arm64.DecodeWord(&in, word) != nil {
			continue
		}
		to, ok := in.MemTarget(pc)
		switch {
		case !ok:
		case !in.IsADRP():
			f.touch(to, max(uint64(in.Size), 1), pc)
		case !pages[to]:
		default:
			if entry, slot, is := t.entryOfPLT(pc, to); is {
				if n, wanted := at[slot]; wanted {
					s := &im.Slotted[n]
					s.Used, s.Entry = true, entry
					entries[entry], entries[pc] = n, n
				}
				continue
			}
			f.follow(pc, in.Rd(), to)
		}
	}
}

// entryOfPLT returns where an entry of the PLT begins whose adrp is at pc, and its slot.
func (t *text) entryOfPLT(pc, page uint64) (entry, slot uint64, is bool) {
	const (
		load = 0xF9400211 // ldr x17, [x16, #0]
		add  = 0x91000210 // add x16, x16, #0
		br17 = 0xD61F0220
		btiC = 0xD503245F
		imm  = 0xFFF << 10
	)
	w := [...]uint32{t.word(pc), t.word(pc + 4), t.word(pc + 8), t.word(pc + 12)}
	if w[0]&31 != 16 || w[1]&^imm != load || w[2]&^imm != add || w[3] != br17 || w[1]&imm>>10*8 != w[2]&imm>>10 {
		return 0, 0, false
	}
	entry = pc
	if pc-t.start >= arm64.Len && t.word(pc-arm64.Len) == btiC {
		entry -= arm64.Len
	}
	return entry, page + uint64(w[2]&imm>>10), true
}

// touch notes that size bytes at addr are used at pc.
func (f *pageFlow) touch(addr, size, pc uint64) {
	for a := addr &^ 7; a < addr+size; a += 8 {
		if n, is := f.at[a]; is {
			f.im.Slotted[n].Taken = pc
		}
	}
}

// lose notes that a page's address got out of sight.
func (f *pageFlow) lose(page, pc uint64) {
	if !f.lost[page] {
		f.lost[page] = true
		f.touch(page, adrpPage, pc)
	}
}

// follow goes along all ways from an adrp of a page.
func (f *pageFlow) follow(pc uint64, r arm64.Reg, page uint64) {
	f.touch(page, 1, pc)
	clear(f.seen)
	f.todo = append(f.todo[:0], pageAt{pc + arm64.Len, 1 << r})
	for len(f.todo) > 0 && !f.lost[page] {
		w := f.todo[len(f.todo)-1]
		f.todo = f.todo[:len(f.todo)-1]
		for w.regs != 0 && w.regs&^f.seen[w.pc] != 0 {
			w.regs |= f.seen[w.pc]
			f.seen[w.pc] = w.regs
			if f.budget--; f.budget < 0 {
				f.lose(page, pc)
				return
			}
			t := f.im.textAt(w.pc)
			var in arm64.Inst
			if t == nil || arm64.DecodeWord(&in, t.word(w.pc)) != nil {
				break
			}
			if f.use(&in, t, w, page) {
				f.lose(page, w.pc)
				return
			}
			w = f.next(&in, w)
		}
	}
}

// calleeKeeps are the registers that have their value behind a call: x19 to x29 (AAPCS64 §6.1.1).
const calleeKeeps = 1<<30 - 1<<19

// next is where control goes on; where else it goes is still to be done. No registers means that it doesn't.
func (f *pageFlow) next(in *arm64.Inst, w pageAt) pageAt {
	regs := w.regs &^ in.GPRWritten()
	switch {
	case isMove(in.Word) && w.regs&in.Rm().Mask() != 0:
		regs |= in.Rd().Mask()
	case in.Kind == arm64.Call || in.Kind == arm64.IndirectCall:
		regs &= calleeKeeps
	}
	if to, direct := in.Target(w.pc); direct && in.Kind != arm64.Call {
		f.todo = append(f.todo, pageAt{to, regs})
	}
	if in.Ends() {
		regs = 0
	}
	return pageAt{w.pc + arm64.Len, regs}
}

// use notes what an instruction does with the address, and says whether it gets out of sight there.
func (f *pageFlow) use(in *arm64.Inst, t *text, w pageAt, page uint64) (lost bool) {
	const (
		addMask = 0xFFC00000
		addImm  = 0x91000000 // add of an immediate that isn't shifted
		unknown = 256        // bytes, of an access whose size isn't known
	)
	read := in.GPRRead() & w.regs
	switch {
	case in.Kind == arm64.IndirectJump:
		return read != 0 || !t.leavesBy(in, w.pc)
	case in.Kind == arm64.Call || in.Kind == arm64.Return:
		return false
	case read == 0:
		return false
	case isMove(in.Word):
		return false
	case in.Word&addMask == addImm:
		f.touch(page+uint64(in.Word>>10&0xFFF), 1, w.pc)
		return false
	case in.Base <= arm64.LR && read == in.Base.Mask() && !in.Index && !storesBase(in):
		size := uint64(in.Size)
		switch in.Class {
		case arm64.Load, arm64.Store, arm64.Prefetch, arm64.Ordered, arm64.Exclusive, arm64.Atomic:
		case arm64.LoadPair, arm64.StorePair:
			size *= 2
		default:
			size = 0
		}
		if size == 0 {
			size = unknown
		}
		addr := page
		if !in.PostIndex {
			addr += uint64(int64(in.Disp))
		}
		f.touch(addr, size, w.pc)
		return false
	}
	return true
}

// storesBase says whether an instruction with a memory operand may write its base to memory.
func storesBase(in *arm64.Inst) bool {
	vector := in.Word>>26&1 != 0
	switch in.Class {
	case arm64.Load, arm64.LoadPair, arm64.Prefetch:
		return false
	case arm64.Store:
		return !vector && in.Rd() == in.Base
	case arm64.StorePair:
		return !vector && (in.Rd() == in.Base || in.Rt2() == in.Base)
	}
	return in.Rd() == in.Base || in.Rt2() == in.Base || in.Rm() == in.Base
}

// leavesBy says whether the indirect jump at pc surely leaves its function: it goes to what was loaded just before, from no table.
func (t *text) leavesBy(jump *arm64.Inst, pc uint64) bool {
	const near = 8 // instructions
	for range near {
		if pc -= arm64.Len; pc < t.start {
			return false
		}
		var in arm64.Inst
		if arm64.DecodeWord(&in, t.word(pc)) != nil || in.Kind != arm64.Other {
			return false
		}
		if in.WritesReg(jump.Rn()) {
			return in.Class == arm64.Load && !in.Index
		}
	}
	return false
}

// callsOfARM64 finds the direct calls of entries.
func (im *Image) callsOfARM64(t *text, entries map[uint64]int) {
	const bl = 0x94000000
	for pc := (t.start + arm64.Len - 1) &^ (arm64.Len - 1); pc+arm64.Len <= t.end; pc += arm64.Len {
		if t.word(pc)&0xFC000000 != bl {
			continue
		}
		var in arm64.Inst
		if arm64.DecodeWord(&in, t.word(pc)) != nil {
			continue
		}
		if to, ok := in.Target(pc); ok {
			if slot, is := entries[to]; is {
				im.addCall(slot, pc+arm64.Len)
			}
		}
	}
}
