package reel

import (
	"encoding/binary"
	"unsafe"
)

// encodeTimed is encode for events that all carry the time, as nearly all reels' do. Most of them are what the slot proposes, in runs of some
// tens; a run goes through a loop that calls nothing, so that all it needs stays in registers.
func (e *encoder) encodeTimed(events []Event) {
	for len(events) > 0 {
		n := e.encodeProposed(events)
		if n == len(events) {
			break
		}
		if !e.encodeOutermost(&events[n]) {
			e.encodeOne(&events[n], ClockFull)
		}
		events = events[n+1:]
	}
	e.high = max(e.high, e.last)
}

// encodeOutermost encodes, as encodeOne would, the entry of a call that no call is known around, as it was spelled out before: where only one
// function is recorded these are half of all events, and slots don't propose those whose drop is negative. It returns false for all others.
func (e *encoder) encodeOutermost(ev *Event) bool {
	top := &e.stack[e.depth%stackSlots]
	drop, delta := top.sp-ev.SP, ev.Time-e.last
	if top.seed != 0 || ev.IsExit() || int32(drop) > 0 || delta >= maxLearned || e.pairs[pairIndex(0, ev.Word)] != drop {
		return false
	}
	s := &e.table[top.slotIndex()]
	if s.word == ev.Word && s.drop == drop {
		return false
	}
	time := zigzag(delta - uint64(s.delta))
	s.delta, e.last = uint32(delta), ev.Time
	e.putTwo(time<<2|codeSpelled, uint64(ev.Word)<<1|1)
	seed := seedOf(ev.Word)
	top.path = pathAfter(top.path, seed)
	e.depth++
	e.stack[e.depth%stackSlots] = openFrame{sp: ev.SP, seed: seed}
	return true
}

// putTwo writes two numbers as put does. Most have at most two bytes: those take one store, and no branch that depends on how many they have.
func (e *encoder) putTwo(a, b uint64) {
	const twoBytes = 1 << 14
	if a >= twoBytes || b >= twoBytes {
		e.put(a)
		e.put(b)
		return
	}
	moreA, moreB := (1<<7-1-a)>>63, (1<<7-1-b)>>63 // 1 from 128 on
	codeA, codeB := (a<<1|1)<<moreA, (b<<1|1)<<moreB
	binary.LittleEndian.PutUint32(e.buf[e.pos:], uint32(codeA|codeB<<(8+8*moreA)))
	e.pos += int(2 + moreA + moreB)
}

// The loop goes by offsets: from the encoder to its frames and slots, which multiplications and masks keep within, and from the first event.
const (
	frameBytes = unsafe.Sizeof(openFrame{})
	slotBytes  = unsafe.Sizeof(slot{})
	eventBytes = unsafe.Sizeof(Event{})
	stackBytes = stackSlots * frameBytes // a power of two
	tableOff   = unsafe.Offsetof(encoder{}.predictor) + unsafe.Offsetof(predictor{}.table)
	stackOff   = unsafe.Offsetof(encoder{}.predictor) + unsafe.Offsetof(predictor{}.stack)
)

// encodeProposed encodes events up to the first that its slot doesn't propose, or whose time takes more than two bytes, and returns how many
// these were. The buffer has room for all. Checks of bounds would be a fifth of its time.
//
//go:noinline
func (e *encoder) encodeProposed(events []Event) int {
	self, first, buf := unsafe.Pointer(e), unsafe.Pointer(unsafe.SliceData(events)), unsafe.Pointer(e.buf)
	at, last, pos := uintptr(e.depth)*frameBytes%stackBytes, e.last, uintptr(e.pos)
	i, end := uintptr(0), uintptr(len(events))*eventBytes
	for ; i < end; i += eventBytes {
		ev := (*Event)(unsafe.Add(first, i))
		word, sp := ev.Word, ev.SP
		top := (*openFrame)(unsafe.Add(self, at+stackOff))
		path := top.path
		s := (*slot)(unsafe.Add(self, uintptr((top.seed^path)*hashMul>>(32-tableBits))*slotBytes+tableOff))
		if s.word != word || s.drop+sp != top.sp {
			break
		}
		delta := ev.Time - last
		z := zigzag(delta - uint64(s.delta))
		if z >= 1<<13 {
			break
		}
		s.delta, last = uint32(delta), ev.Time

		size := 1 + (z+1<<13-1<<6)>>13 // 2 from 64 on
		binary.LittleEndian.PutUint16((*[2]byte)(unsafe.Add(buf, pos))[:], uint16((z<<2|1)*size))
		pos += uintptr(size)

		// An entry pushes, an exit pops; what the other one would do is written too, where it does no harm, because a branch that is
		// mispredicted costs more.
		seed := seedOf(word)
		top.path = pathAfter(path, seed)
		above := (at + frameBytes) % stackBytes
		next := (*openFrame)(unsafe.Add(self, above+stackOff))
		next.sp, next.seed, next.path = sp, seed, 0
		at = (above - uintptr(word&1)*2*frameBytes) % stackBytes
	}
	e.pos, e.depth, e.last = int(pos), uint32(at/frameBytes), last
	return int(i / eventBytes)
}
