package reel

import (
	"encoding/binary"
	"math/bits"
)

// The payload of a chunk of events is a sequence of codes, one an event, and
// codePad zero bytes, so that a reader may load 8 bytes anywhere. A code is a
// prefix varint: the number of trailing zero bits of the first byte, plus one,
// is its length n in bytes (1 to 8); the 7n bits above that marker are its value
// v, little-endian. The low bits of v say what the event is:
//
//	v&1 == 0  as the slot proposes                       time = v>>1
//	v&3 == 1  the exit of the innermost open call        time = v>>2
//	v&3 == 3  spelled out                                time = v>>2
//
// The time is the zigzagged difference between the delta to the event before
// and the delta that the slot remembers. Events of a kind that carries no time
// under the chunk's clock mode count as being at the time of the one before, and
// decode to Time 0.
//
// Spelled out are, after the code: the word<<1 as a prefix varint, with bit 0
// set if the drop is the one that the pair table holds; if it is not set, the
// zigzagged drop as a prefix varint; if the time was farTime, the event's Time
// in 8 bytes.
const (
	codeExit    = 1
	codeSpelled = 3
	codePad     = 8

	// maxTime is the first time that does not fit a code; farTime marks a
	// spelled-out event whose Time follows whole.
	maxTime = 1 << 53
	farTime = 1<<54 - 1

	// maxCode is the most bytes that one event can take: 8 + 5 + 5 + 8.
	maxCode = 26
)

// encoder turns the events of one thread into the payload of one chunk.
type encoder struct {
	predictor
	buf   *[bufSize]byte // frame, payload so far; used are the first pos bytes
	pos   int
	count uint32
	first uint64 // lowest and highest Time seen, of events that carry one
	high  uint64
}

const (
	// chunkEvents and bufSize end a chunk. Measured on redis: with half as many
	// events a chunk takes 1.5 % more, with twice as many 0.5 % less.
	chunkEvents = 1 << 17
	bufSize     = 1 << 18

	// minSpace is the room that is left when a chunk counts as full; much less
	// would be filled a few events at a time.
	minSpace = 64 * maxCode
)

// reset makes the encoder ready for a new chunk. Codes are appended after the
// chunk's frame so that one write carries both.
func (e *encoder) reset() {
	e.predictor = predictor{}
	if e.buf == nil {
		e.buf = new([bufSize]byte)
	}
	e.pos = frameSize
	e.count = 0
	e.first, e.high = 0, 0
}

// append encodes events until the chunk is full and returns how many it took.
func (e *encoder) append(events []Event, mode ClockMode) (taken int) {
	for taken < len(events) && !e.full() {
		// So many fit whatever they are.
		n := min(len(events)-taken, (len(e.buf)-codePad-e.pos)/maxCode, chunkEvents-int(e.count))
		if mode == ClockFull {
			e.encodeTimed(events[taken : taken+n])
		} else {
			e.encode(events[taken:taken+n], mode)
		}
		taken += n
		e.count += uint32(n)
	}
	if e.first == 0 {
		e.first = firstTime(events[:taken])
	}
	return taken
}

// full reports whether the chunk should be ended.
func (e *encoder) full() bool {
	return e.count >= chunkEvents || len(e.buf)-codePad-e.pos < minSpace
}

// encode is the loop that everything goes through; the buffer has room for all
// of the events. What the slot proposes, with a time of at most two bytes, is
// done here, the rest in encodeOne. The only branch that is hard to predict is
// whether it is the one or the other.
func (e *encoder) encode(events []Event, mode ClockMode) {
	buf, pos := e.buf, uint(e.pos)
	depth, last := e.depth, e.last
	untimed := mode != ClockFull
	for i := range events {
		ev := &events[i]
		top := &e.stack[depth%stackSlots]
		s := &e.table[top.slotIndex()]
		if s.word == ev.Word && s.drop == top.sp-ev.SP &&
			(!untimed || ev.Time == 0 || !mode.noTime(ev.Word)) {
			now := ev.Time
			if untimed && mode.noTime(ev.Word) {
				now = last
			}
			delta := now - last
			if z := zigzag(delta - uint64(s.delta)); z < 1<<13 {
				v := z << 1
				s.delta, last = uint32(delta), now
				size := 1 + (1<<7-1-v)>>63
				code := (v<<1 | 1) << ((size - 1) & 1)
				buf[pos%bufSize] = byte(code)
				buf[(pos+1)%bufSize] = byte(code >> 8)
				pos += uint(size)

				// An entry pushes, an exit pops; what the other one would
				// do is written too, where it does no harm, because a
				// branch that is mispredicted costs more.
				seed := seedOf(ev.Word)
				top.path = pathAfter(top.path, seed)
				next := &e.stack[(depth+1)%stackSlots]
				next.sp, next.seed, next.path = ev.SP, seed, 0
				depth += 1 - 2*(ev.Word&1)
				continue
			}
		}
		e.pos, e.depth, e.last = int(pos), depth, last
		e.encodeOne(ev, mode)
		pos, depth, last = uint(e.pos), e.depth, e.last
	}
	e.pos, e.depth, e.last = int(pos), depth, last
	e.high = max(e.high, last)
}

// encodeOne encodes any event.
func (e *encoder) encodeOne(ev *Event, mode ClockMode) {
	top := &e.stack[e.depth%stackSlots]
	s := &e.table[top.slotIndex()]
	drop := top.sp - ev.SP
	proposed := s.word == ev.Word && s.drop == drop
	now, far := ev.Time, false
	if mode.noTime(ev.Word) {
		now, far = e.last, now != 0
	}
	delta := now - e.last
	time := zigzag(delta - uint64(s.delta))
	s.learnDelta(delta)
	e.high = max(e.high, now)
	e.last = now
	s.learn(ev.Word, drop)
	switch {
	case far || time >= maxTime:
		e.spell(ev, drop, farTime)
	case proposed:
		e.put(time << 1)
		e.step(ev.Word, ev.SP)
	case drop == 0 && ev.IsExit() && top.isExit(seedOf(ev.Word)):
		e.put(time<<2 | codeExit)
		e.step(ev.Word, ev.SP)
	default:
		e.spell(ev, drop, time)
	}
}

// spell writes an event that nothing proposed, and brings the stack in line
// with it.
func (e *encoder) spell(ev *Event, drop uint32, time uint64) {
	e.put(time<<2 | codeSpelled)
	pair := &e.pairs[pairIndex(e.stack[e.depth%stackSlots].seed, ev.Word)]
	if *pair == drop {
		e.put(uint64(ev.Word)<<1 | 1)
	} else {
		*pair = drop
		e.put(uint64(ev.Word) << 1)
		e.put(uint64(drop<<1 ^ uint32(int32(drop)>>31)))
	}
	if time == farTime {
		binary.LittleEndian.PutUint64(e.buf[e.pos:], ev.Time)
		e.pos += 8
	}
	e.unwind(ev.Word, ev.SP)
}

// put writes v, below 2^56, as a prefix varint.
func (e *encoder) put(v uint64) {
	size := max(1, (bits.Len64(v)+6)/7)
	binary.LittleEndian.PutUint64(e.buf[e.pos:], (v<<1|1)<<(size-1))
	e.pos += size
}

// zigzag maps small differences of either sign to small numbers.
func zigzag(d uint64) uint64 { return d<<1 ^ uint64(int64(d)>>63) }

func unzigzag(z uint64) uint64 { return z>>1 ^ -(z & 1) }

// firstTime is the first Time that is not 0, or 0.
func firstTime(events []Event) uint64 {
	for i := range events {
		if t := events[i].Time; t != 0 {
			return t
		}
	}
	return 0
}

// finish pads the payload and returns it. The bytes are the encoder's own.
func (e *encoder) finish() []byte {
	clear(e.buf[e.pos : e.pos+codePad])
	e.pos += codePad
	return e.buf[frameSize:e.pos]
}
