package plan

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/object"
)

// resolve finds out whether the indirect jump words[k] leaves, and where it goes if not. It asks what leaves asks of x86's.
func (w *walker) resolve(k int) {
	if w.im.Go != nil {
		w.resolveGo(k)
		return
	}
	in := &w.words[k]
	how, targets := w.targetOf(k)
	known, gone := w.frames.gone(in.addr)
	labels := w.labels
	w.arrays = w.arrays || how&(madeLoaded|madeSwitch|madeOther) != 0 || how&madeOffset != 0 && len(targets) == 0
	switch {
	case how&madeOther != 0:
		w.lost = cmp.Or(w.lost, in.addr)
	case how&madeOffset != 0:
		if len(targets) == 0 {
			w.lost = cmp.Or(w.lost, in.addr)
		}
	case how == madeLabel:
	case known && !gone, how == madeSwitch:
		w.guessed = true
		if !labels {
			w.lost = cmp.Or(w.lost, in.addr)
		}
	case labels && (!known || how&madeLoaded != 0):
		w.lost = cmp.Or(w.lost, in.addr)
	default:
		w.leaving[k] = true
	}
	for _, to := range targets {
		if !w.reach(to) {
			w.beyond = append(w.beyond, to)
		}
	}
}

// targetOf says how the target of the indirect jump words[k] is made, and which targets it has if that can be told.
func (w *walker) targetOf(k int) (made, []uint64) {
	d, ok := w.source(k, w.words[k].Rn())
	if !ok {
		return madePointer, nil
	}
	in := &w.words[d]
	if to, ok := w.constant(k, w.words[k].Rn(), 0); ok {
		if w.own(to) {
			return madeLabel, []uint64{to}
		}
		return madePointer, nil
	}
	switch {
	case isAdd(in.Word):
		return madeOffset, w.offsets(d)
	case in.Class == arm64.Load && in.Size == 8 && in.Index:
		base, ok := w.constant(d, in.Rn(), 0)
		if ok && w.holdsLabels(base) || !ok && w.labels && w.loadsLabels(in.Rn()) {
			return madeSwitch, nil
		}
		return madeLoaded, nil
	case in.Class == arm64.Load, in.Class == arm64.LoadPair, in.Class == arm64.LoadLiteral, in.calls(),
		in.Class == arm64.Authenticate, in.Class == arm64.Strip, in.Class == arm64.MoveFromSystem, in.Class == arm64.Ordered:
		return madePointer, nil
	case isSelect(in.Word): // csel: either of two
		return madePointer, nil
	case isXor(in.Word): // with the thread's secret, which undoes how C libraries hide pointers
		return madePointer, nil
	}
	return madeOther, nil
}

// isAdd says whether the instruction is an add of two 64-bit registers, shifted or extended.
func isAdd(word uint32) bool { return word&0xFF200000 == 0x8B000000 || word&0xFFE00000 == 0x8B200000 }

// isSelect says whether the instruction is csel of 64 bits, isXor whether it is eor of two 64-bit registers.
func isSelect(word uint32) bool { return word&0xFFE00C00 == 0x9A800000 }
func isXor(word uint32) bool    { return word&0xFF200000 == 0xCA000000 }

// How many words are looked at for the instruction that made a value, and how many jumps are gone back over.
const (
	maxTrace = 4096
	maxJumps = 32
)

// definition returns the instruction by which register r got its value before words[k]: back along the line, and where control doesn't come from
// there, along a jump. It reports false where the value came from outside.
func (w *walker) definition(k int, r arm64.Reg) (int, bool) {
	jumps := 0
	for range maxTrace {
		if w.budget--; w.budget < 0 {
			return 0, false
		}
		if k > 0 && w.words[k-1].end() == w.words[k].addr && w.words[k-1].reached && !w.words[k-1].Ends() {
			k--
		} else if from := int(w.words[k].from) - 1; from >= 0 && from != k && jumps < maxJumps {
			jumps++
			k = from
		} else {
			return 0, false
		}
		in := &w.words[k]
		if in.WritesReg(r) || in.calls() && (r <= arm64.X18 || r == arm64.LR) {
			return k, true
		}
	}
	return 0, false
}

// source is definition, but a copy's is where it was copied from.
func (w *walker) source(k int, r arm64.Reg) (int, bool) {
	for range maxCopies {
		d, ok := w.definition(k, r)
		if !ok || !isMove(w.words[d].Word) {
			return d, ok
		}
		k, r = d, w.words[d].Rm()
	}
	return 0, false
}

// maxCopies bounds how often a value may have been copied or computed anew.
const maxCopies = 8

// isMove says whether the instruction is mov of a 64-bit register to another.
func isMove(word uint32) bool { return word&0xFFE0FFE0 == 0xAA0003E0 }

// constant returns the value of a register before words[k], if the instructions say it: an address that they compute.
func (w *walker) constant(k int, r arm64.Reg, depth int) (uint64, bool) {
	d, ok := w.definition(k, r)
	if !ok || depth == maxCopies {
		return 0, false
	}
	return w.result(d, depth)
}

// result returns what words[d] computes, if that is an address that the instructions say.
func (w *walker) result(d, depth int) (uint64, bool) {
	in := &w.words[d]
	switch {
	case in.Class == arm64.Address:
		return in.MemTarget(in.addr)
	case in.Class == arm64.AddSubImm && in.Word&0xFF000000 == 0x91000000: // add
		base, ok := w.constant(d, in.Rn(), depth+1)
		return base + uint64(in.Immediate()), ok
	case in.Class == arm64.AddSubImm && in.Word&0xFF000000 == 0xD1000000: // sub
		base, ok := w.constant(d, in.Rn(), depth+1)
		return base - uint64(in.Immediate()), ok
	case isMove(in.Word):
		return w.constant(d, in.Rm(), depth+1)
	case in.Class == arm64.Load && in.Size == 8 && !in.Index && !in.Writeback:
		if at, ok := w.slot(d, in.Base, int64(in.Disp)); ok {
			return w.kept(at, depth+1)
		}
	}
	return 0, false
}

// slot is a place in the stack frame: a distance from the CFA, or, where that isn't known by the stack pointer, from a register.
type slot struct {
	base arm64.Reg // NoReg: the CFA
	disp int64
}

// slot returns where in the stack frame a memory operand of words[k] is.
func (w *walker) slot(k int, base arm64.Reg, disp int64) (slot, bool) {
	for range maxCopies {
		if base == arm64.SP {
			if depth := w.frames.depth(w.words[k].addr); depth >= 0 {
				return slot{arm64.NoReg, disp - depth}, true
			}
		}
		if base == arm64.SP || base == arm64.FP {
			return slot{base, disp}, true
		}
		d, ok := w.definition(k, base)
		if !ok {
			return slot{}, false
		}
		in := &w.words[d]
		imm := in.Immediate()
		switch {
		case in.Word&0xFF000000 == 0x91000000:
			disp += imm
		case in.Word&0xFF000000 == 0xD1000000:
			disp -= imm
		default:
			return slot{}, false
		}
		k, base = d, in.Rn()
	}
	return slot{}, false
}

// kept returns what is in a slot, if all that is ever stored there is one address that the instructions compute.
func (w *walker) kept(at slot, depth int) (value uint64, ok bool) {
	w.budget -= len(w.words)
	for n := range w.words {
		in := &w.words[n]
		if !in.reached || in.Class != arm64.Store && in.Class != arm64.StorePair || in.Writeback || in.Index || in.Base == arm64.NoReg {
			continue
		}
		if w.budget < 0 {
			return 0, false
		}
		if in.Base != arm64.SP && in.Base != arm64.FP && !w.ofFrame(n, in.Base) {
			continue
		}
		to, found := w.slot(n, in.Base, int64(in.Disp))
		if !found || to.base != at.base {
			continue
		}
		size := int64(in.Size)
		if in.Class == arm64.StorePair {
			size *= 2
		}
		off := at.disp - to.disp
		if off <= -8 || off >= size {
			continue
		}
		from := in.Rd()
		if off != 0 {
			from = in.Rt2()
		}
		if in.Size != 8 || off%8 != 0 || off < 0 || in.Word>>26&1 != 0 || from == 31 {
			return 0, false
		}
		v, known := w.constant(n, from, depth)
		if !known || ok && v != value {
			return 0, false
		}
		value, ok = v, true
	}
	return value, ok
}

// ofFrame says whether a register holds an address in the stack frame, computed not long before.
func (w *walker) ofFrame(k int, r arm64.Reg) bool {
	for n := k - 1; n >= max(0, k-16); n-- {
		if in := &w.words[n]; in.WritesReg(r) {
			return in.Class == arm64.AddSubImm
		}
	}
	return false
}

// offsets returns the targets of the jump whose address words[d] adds up: of a base, which the instructions name, and of what is loaded from a table,
// bytes, halves or words.
func (w *walker) offsets(d int) []uint64 {
	in := &w.words[d]
	extended := in.Word&0x00200000 != 0
	shift := uint(in.Word >> 10 & 63)
	if extended {
		shift &= 7
	} else if in.Word>>22&3 != 0 { // not lsl
		return nil
	}
	offset, table := in.Rm(), in.Rn()
	base, ok := w.constant(d, table, 0)
	if !ok && !extended && shift == 0 {
		offset, table = table, offset
		base, ok = w.constant(d, table, 0)
	}
	if !ok && shift == 0 {
		return w.ownOffsets(d, table, offset)
	}
	if !ok {
		return nil
	}
	l, ok := w.source(d, offset)
	if !ok {
		return nil
	}
	load := &w.words[l]
	if load.Class != arm64.Load || load.Writeback || load.Size > 4 {
		return nil
	}
	from, ok := w.constant(l, load.Rn(), 0)
	if !ok {
		return nil
	}
	signed := load.Word>>23&1 != 0 // ldrs
	if extended {
		signed = signed || in.Word>>15&1 != 0 // sxtb, sxth, sxtw
	}
	return w.table(from+uint64(int64(load.Disp)), base, uint64(load.Size), shift, signed)
}

// ownOffsets returns the targets where each entry of the table, a word, is an offset from itself.
func (w *walker) ownOffsets(d int, entry, offset arm64.Reg) (targets []uint64) {
	l, ok := w.source(d, offset)
	e, found := w.definition(d, entry)
	if !ok || !found {
		return nil
	}
	load, sum := &w.words[l], &w.words[e]
	if load.Class != arm64.Load || load.Size != 4 || load.Index || load.Writeback || load.Disp != 0 || load.Rn() != entry || !isAdd(sum.Word) ||
		sum.Word>>10&63 != 2 {
		return nil
	}
	if again, ok := w.definition(l, entry); !ok || again != e {
		return nil
	}
	base, ok := w.constant(e, sum.Rn(), 0)
	if !ok {
		return nil
	}
	for n := uint64(0); n < maxOwn; n++ {
		one := w.entries(base+4*n, base+4*n, 4, 0, true, 1)
		if len(one) == 0 && n > 0 { // the first may be for what is never asked for
			break
		}
		targets = append(targets, one...)
	}
	return targets
}

// maxOwn is how many entries such a table has at most.
const maxOwn = 1024

// table reads a table of offsets at addr for as long as they lead inside, or to what may be a part.
func (w *walker) table(addr, base, size uint64, shift uint, signed bool) []uint64 {
	most := maxEntries[size]
	targets := w.entries(addr, base, size, shift, signed, most)
	whole := uint64(len(targets)) < most
	slices.Sort(targets)
	targets = slices.Compact(targets)
	w.guessed = w.guessed || !whole && (size > 1 || len(targets) < 1<<8)
	return targets
}

// maxEntries is how many entries of a table are read at most, by their size: in a small function any byte leads inside.
var maxEntries = [...]uint64{1: 1 << 10, 2: 1 << 13, 4: 1 << 16}

// entries reads as many of a table's entries at most.
func (w *walker) entries(addr, base, size uint64, shift uint, signed bool, most uint64) (targets []uint64) {
	b := w.im.readSome(addr, most*size)
	for ; uint64(len(b)) >= size && w.budget > 0; b = b[size:] {
		w.budget--
		var entry [8]byte
		copy(entry[:], b[:size])
		offset := binary.LittleEndian.Uint64(entry[:])
		if signed {
			offset = uint64(int64(offset<<(64-8*size)) >> (64 - 8*size))
		}
		to := base + offset<<shift
		if to&3 != 0 || !w.leadsInside(to) {
			break
		}
		targets = append(targets, to)
	}
	return targets
}

// leadsInside says whether to is inside, or at the beginning of what may be a part of the function.
func (w *walker) leadsInside(to uint64) bool {
	if w.own(to) {
		return true
	}
	k := w.im.chunkAt(to)
	return k >= 0 && (w.im.chunks[k].isPart() || w.im.chunks[k].names.n == 0 && w.im.chunks[k].start == to)
}

// loadsLabels says whether the code puts the address of an array of its labels into the register somewhere, as for a computed goto's table: it is
// loaded once, and used at each of its jumps.
func (w *walker) loadsLabels(r arm64.Reg) bool {
	w.budget -= len(w.words)
	for k := range w.words {
		in := &w.words[k]
		if w.budget < 0 {
			return false
		}
		if !in.reached || in.Class != arm64.Address && in.Class != arm64.AddSubImm || in.Rd() != r {
			continue
		}
		if at, ok := w.result(k, 0); ok && w.holdsLabels(at) {
			return true
		}
	}
	return false
}

// holdsLabels says whether one of the first words of an array is a label of the code at hand: relocations put them there, or, in an image that isn't
// relocated, they are there.
func (w *walker) holdsLabels(base uint64) bool {
	if w.im.Object.Type == object.Executable {
		b, err := w.im.Object.ReadAddr(base, 8*looked)
		for ; err == nil && len(b) > 0; b = b[8:] {
			if w.own(binary.LittleEndian.Uint64(b)) {
				return true
			}
		}
	}
	list := w.im.labels
	i, _ := slices.BinarySearchFunc(list, base, func(l label, at uint64) int { return cmp.Compare(l.at, at) })
	for ; i < len(list) && list[i].at-base < 8*looked; i++ {
		if (list[i].at-base)%8 == 0 && w.own(list[i].to) {
			return true
		}
	}
	return false
}
