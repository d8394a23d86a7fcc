package reel

import "fmt"

// Packed is a run of one thread's events as a reel holds them, encoded, but of no reel yet: so that a recorder can keep them in little
// memory, and write them later as they are. Function IDs are those of the reel that it will be written to.
type Packed struct {
	// Payload are the codes. Whoever has got a Packed may copy them elsewhere.
	Payload []byte
	// Events is how many events there are.
	Events int
	// First and Last are the first and the highest Time of the events, in ticks; 0 when none carries a time.
	First, Last uint64

	mode ClockMode
}

// Decode appends the events to dst.
func (p *Packed) Decode(dst []Event) ([]Event, error) {
	var d decoder
	dst, err := d.decode(dst, p.Payload, p.Events, p.mode)
	if err != nil {
		return dst, fmt.Errorf("reel: %d events that were kept: %w", p.Events, err)
	}
	return dst, nil
}

// Packer encodes the events of one thread. It takes PackerSize bytes of memory. It is used by one goroutine.
type Packer struct {
	e     encoder
	mode  ClockMode
	begun bool
}

// PackerSize is about how much memory a Packer takes, in bytes.
const PackerSize = bufSize + 16*stackSlots + 16<<tableBits + 4<<pairBits

// NewPacker returns a Packer for events under a clock mode.
func NewPacker(mode ClockMode) *Packer { return &Packer{mode: mode} }

// Append encodes events, in order, and returns how many it took: fewer than there are only once it is full.
func (p *Packer) Append(events []Event) (taken int) {
	if !p.begun {
		p.e.reset()
		p.begun = true
	}
	return p.e.append(events, p.mode)
}

// Room is how many events it surely takes before Finish, whatever they are.
func (p *Packer) Room() int {
	if !p.begun {
		return (bufSize - frameSize - codePad) / maxCode
	}
	return min((len(p.e.buf)-codePad-p.e.pos)/maxCode, chunkEvents-int(p.e.count))
}

// Events is how many events it holds.
func (p *Packer) Events() int {
	if !p.begun {
		return 0
	}
	return int(p.e.count)
}

// Finish returns what was appended, and begins anew. The Payload is valid up to the next Append.
func (p *Packer) Finish() Packed {
	if !p.begun {
		p.e.reset()
	}
	p.begun = false
	payload := p.e.finish()
	return Packed{Payload: payload, Events: int(p.e.count), First: p.e.first, Last: p.e.high, mode: p.mode}
}

// AppendPacked appends events that were encoded before, as a chunk of their own. Of values all fields are to be given; Number is the index
// of the event among these.
func (t *ThreadWriter) AppendPacked(p *Packed, values []ValueSet) error {
	if p.mode != t.w.mode {
		return fmt.Errorf("reel: %s: events under clock %v, where the reel has %v", t.w.name, p.mode, t.w.mode)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list()
	if p.Events == 0 {
		return nil
	}
	if err := t.flushEvents(); err != nil {
		return err
	}
	for _, s := range values {
		if s.Number >= uint64(p.Events) {
			continue
		}
		s.Number += t.total
		if err := t.value(&s); err != nil {
			return err
		}
	}
	f := frame{kind: KindEvents, mode: p.mode, thread: t.thread.Key, count: uint32(p.Events), seq: t.seq, first: p.First, last: p.Last}
	if err := t.w.putPayload(f, p.Payload); err != nil {
		return err
	}
	t.total += uint64(p.Events)
	t.w.appended.Add(uint64(p.Events))
	t.seq++
	t.high = max(t.high, p.Last)
	return nil
}
