package past

import (
	"container/heap"
	"container/list"
	"errors"
	"slices"

	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/reel"
)

// pack is a chunk that is being filled.
type pack struct {
	t      *thread
	c      *Chunk
	packer *reel.Packer  // nil while there are few events
	bytes  int           // that it counts for in Store.used
	last   int           // place of the last event that carries something
	at     *list.Element // in Store.packs
	coding *list.Element // in Store.coding, if it has a packer
}

var errRoom = errors.New("callreel: a chunk of the rings holds more events than it can")

// fill adds a run's events to the thread's chunk, and ends it, and begins others, where it is full.
func (s *Store) fill(t *thread, run *ring.Run) error {
	p := t.pack
	had := len(p.c.payloads)
	p.c.payloads, p.last = appendPayloads(p.c.payloads, run, p.events(), p.last)
	p.count(s, len(p.c.payloads)-had)
	if run.Targets == nil { // else they have their names
		if err := s.c.Translate(run.Events); err != nil {
			return err
		}
	}
	if p.packer == nil && len(p.c.few)+len(run.Events) <= fewEvents {
		p.c.few = append(p.c.few, run.Events...)
		p.count(s, len(run.Events)*reel.EventSize)
	} else {
		if p.packer == nil {
			if err := s.takePacker(p); err != nil {
				return err
			}
		}
		if p.packer.Append(run.Events) < len(run.Events) {
			return errRoom // there always is room, see below
		}
	}
	if p.packer != nil && p.packer.Room() < ring.ChunkEvents || len(p.c.payloads) > maxPayloads || len(p.c.Marks) > maxMarks {
		return s.close(p)
	}
	return nil
}

// count counts more bytes.
func (p *pack) count(s *Store, bytes int) {
	p.bytes += bytes
	s.used += bytes
}

// events is how many it has.
func (p *pack) events() int {
	if p.packer != nil {
		return p.packer.Events()
	}
	return len(p.c.few)
}

// takePacker lets a chunk's events be encoded. Where too many are, the one is ended that was longest not added to.
func (s *Store) takePacker(p *pack) error {
	if len(s.idle) == 0 && s.packers >= packersFor(s.c.Memory) {
		if err := s.close(s.coding.Front().Value.(*pack)); err != nil {
			return err
		}
	}
	p.coding = s.coding.PushBack(p)
	if n := len(s.idle); n > 0 {
		p.packer = s.idle[n-1]
		s.idle = s.idle[:n-1]
	} else {
		p.packer = reel.NewPacker(s.c.Mode)
		s.packers++
	}
	p.packer.Append(p.c.few)
	p.c.few = nil
	return nil
}

// close ends a chunk.
func (s *Store) close(p *pack) error {
	c, t := p.c, p.t
	t.pack = nil
	s.used -= p.bytes
	s.packs.Remove(p.at)
	if p.packer != nil {
		s.coding.Remove(p.coding)
		err := c.keep(p.packer.Finish())
		s.idle = append(s.idle, p.packer)
		if err != nil {
			return err
		}
	}
	c.few, c.payloads = slices.Clip(c.few), slices.Clip(c.payloads)
	c.bytes += overhead + len(c.few)*reel.EventSize + len(c.payloads) + bytesOf(c.Opens) + cap(c.Marks)*reel.EventSize
	for _, m := range c.MarkPayloads {
		c.bytes += len(m.Data) + 32
	}
	c.refs = 1
	t.chunks = append(t.chunks, c)
	s.used += c.bytes
	s.added += uint64(c.bytes)
	s.events += uint64(c.Events())
	heap.Push(&s.byAge, c)
	return nil
}

// Rest ends the chunks that nothing was added to since a moment, in TSC ticks, and gives the memory back that encodes nothing.
func (s *Store) Rest(since uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := s.packs.Front(); e != nil && e.Value.(*pack).c.To < since; e = s.packs.Front() {
		if err := s.close(e.Value.(*pack)); err != nil {
			return err
		}
	}
	s.packers -= len(s.idle)
	s.idle = nil
	return nil
}

// bytesOf is how much memory open calls take.
func bytesOf(opens []Open) (n int) {
	for i := range opens {
		n += 40 + len(opens[i].Payload)
	}
	return n
}
