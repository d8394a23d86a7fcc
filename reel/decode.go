package reel

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// decoder turns the payload of a chunk back into events.
type decoder struct {
	predictor
	payload   []byte
	mode      ClockMode
	pos       int // in payload, of the next event
	remaining int // events
	total     int
}

// decode appends the count events of a payload to dst. The caller has checked
// the checksum; whatever the bytes are, decode neither panics nor reads outside
// them, and an error names the payload offset where they stop making sense. The
// events before that are returned too.
func (d *decoder) decode(dst []Event, payload []byte, count int, mode ClockMode) ([]Event, error) {
	if err := d.begin(payload, count, mode); err != nil {
		return dst, err
	}
	base := len(dst)
	dst = grow(dst, count)
	n, err := d.next(dst[base : base+count])
	d.payload = nil
	return dst[:base+n], err
}

// begin makes the decoder ready for the events of a payload.
func (d *decoder) begin(payload []byte, count int, mode ClockMode) error {
	if count < 0 || count > len(payload)-codePad {
		return fmt.Errorf("%d events cannot be in a payload of %d bytes", count, len(payload))
	}
	d.predictor = predictor{}
	d.payload, d.mode, d.pos, d.remaining, d.total = payload, mode, 0, count, count
	return nil
}

// next decodes the next events, as many as out has room for or are left, and
// returns how many those are.
func (d *decoder) next(out []Event) (n int, err error) {
	payload, mode, pos := d.payload, d.mode, d.pos
	end := len(payload) - codePad
	out = out[:min(len(out), d.remaining)]
	untimed := mode != ClockFull
	depth, last := d.depth, d.last
	for i := range out {
		if pos >= end {
			return i, fmt.Errorf("payload ends after %d of %d events", d.total-d.remaining+i, d.total)
		}
		// A code of one or two bytes that says that the slot is right is dealt
		// with here; see encode.
		raw := uint64(binary.LittleEndian.Uint32(payload[pos:]))
		size := 2 - raw&1
		v := raw >> size & (1<<14 - 1) & (1<<(7*size&63) - 1)
		if raw&3 != 0 && v&1 == 0 {
			pos += int(size)
			top := &d.stack[depth%stackSlots]
			s := &d.table[top.slotIndex()]
			delta := unzigzag(v>>1) + uint64(s.delta)
			s.delta = uint32(delta)
			last += delta
			now := last
			if untimed && mode.noTime(s.word) {
				now = 0
			}
			word, sp := s.word, top.sp-s.drop
			ev := &out[i]
			ev.Time, ev.SP, ev.Word = now, sp, word

			seed := seedOf(word)
			top.path = pathAfter(top.path, seed)
			next := &d.stack[(depth+1)%stackSlots]
			next.sp, next.seed, next.path = sp, seed, 0
			depth += 1 - 2*(word&1)
			continue
		}
		if raw&3 != 0 && v&3 == 1 { // so is the exit of the innermost call that the slot doesn't propose
			pos += int(size)
			top := &d.stack[depth%stackSlots]
			s := &d.table[top.slotIndex()]
			word, sp := top.seed*hashInverse|1, top.sp
			delta := unzigzag(v>>2) + uint64(s.delta)
			last += delta
			now := last
			if untimed && mode.noTime(word) {
				now = 0
			}
			s.learnDelta(delta)
			s.learn(word, 0)
			ev := &out[i]
			ev.Time, ev.SP, ev.Word = now, sp, word
			seed := seedOf(word)
			top.path = pathAfter(top.path, seed)
			next := &d.stack[(depth+1)%stackSlots]
			next.sp, next.seed, next.path = sp, seed, 0
			depth--
			continue
		}
		d.depth, d.last = depth, last
		if pos, err = d.decodeOne(&out[i], payload, pos, mode); err != nil {
			return i, err
		}
		depth, last = d.depth, d.last
	}
	d.depth, d.last, d.pos = depth, last, pos
	if d.remaining -= len(out); d.remaining == 0 && pos != end {
		return len(out), fmt.Errorf("%d bytes left after %d events", end-pos, d.total)
	}
	return len(out), nil
}

// decodeOne decodes any event at pos and returns the position after it.
func (d *decoder) decodeOne(ev *Event, payload []byte, pos int, mode ClockMode) (next int, err error) {
	v, next, err := getCode(payload, pos)
	if err != nil {
		return pos, err
	}
	top := &d.stack[d.depth%stackSlots]
	s := &d.table[top.slotIndex()]
	word, drop, time := s.word, s.drop, v>>1
	spelled := false
	if v&1 != 0 {
		time = v >> 2
		if spelled = v&2 != 0; spelled {
			word, drop, next, err = d.spelled(payload, next)
			if err != nil {
				return pos, err
			}
		} else {
			word, drop = top.seed*hashInverse|1, 0
		}
	}
	delta := unzigzag(time) + uint64(s.delta)
	now := d.last + delta
	if mode.noTime(word) {
		now = 0
	}
	if spelled && time == farTime {
		if next+8 > len(payload)-codePad {
			return pos, fmt.Errorf("payload ends at offset %d inside an event", next)
		}
		now = binary.LittleEndian.Uint64(payload[next:])
		next += 8
		delta = now - d.last
		if mode.noTime(word) {
			delta = 0
		}
	}
	s.learnDelta(delta)
	d.last += delta
	s.learn(word, drop)
	*ev = Event{Time: now, SP: top.sp - drop, Word: word}
	if spelled {
		d.unwind(word, ev.SP)
	} else {
		d.step(word, ev.SP)
	}
	return next, nil
}

// spelled reads word and drop of a spelled-out event at pos and returns the
// position after them.
func (d *decoder) spelled(payload []byte, pos int) (word, drop uint32, next int, err error) {
	v, next, err := getCode(payload, pos)
	if err != nil {
		return 0, 0, pos, err
	}
	if v>>33 != 0 {
		return 0, 0, pos, fmt.Errorf("word beyond 32 bits at payload offset %d", pos)
	}
	word = uint32(v >> 1)
	pair := &d.pairs[pairIndex(d.stack[d.depth%stackSlots].seed, word)]
	if v&1 == 0 {
		if v, next, err = getCode(payload, next); err != nil {
			return 0, 0, pos, err
		}
		if v>>32 != 0 {
			return 0, 0, pos, fmt.Errorf("stack pointer beyond 32 bits at payload offset %d", pos)
		}
		*pair = uint32(v>>1) ^ -uint32(v&1)
	}
	return word, *pair, next, nil
}

// getCode reads one prefix varint; payload ends in codePad bytes that no code
// may reach into.
func getCode(payload []byte, pos int) (v uint64, next int, err error) {
	if pos+codePad >= len(payload)+1 {
		return 0, pos, fmt.Errorf("payload ends at offset %d inside an event", pos)
	}
	raw := binary.LittleEndian.Uint64(payload[pos:])
	size := bits.TrailingZeros64(raw|1<<8) + 1
	if size > 8 || pos+size > len(payload)-codePad {
		return 0, pos, fmt.Errorf("invalid code at payload offset %d", pos)
	}
	return raw >> uint(size) & (1<<(7*uint(size)) - 1), pos + size, nil
}

// grow returns s with room for n more elements and length len(s)+n.
func grow(s []Event, n int) []Event {
	if cap(s)-len(s) >= n {
		return s[:len(s)+n]
	}
	t := make([]Event, len(s)+n)
	copy(t, s)
	return t
}
