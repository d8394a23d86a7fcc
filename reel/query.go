package reel

import (
	"bytes"
	"fmt"
)

// Name is the file's name, as given to Open or Parse.
func (f *File) Name() string { return f.name }

// Header describes the recording.
func (f *File) Header() Header { return f.header }

// Closed reports whether the reel was closed and its index could be read. One
// that was not closed is still being written, or its recorder was killed.
func (f *File) Closed() bool { return f.closed }

// Images are the images in order of their IDs: the image i is at i-1. The
// caller must not change them.
func (f *File) Images() []Image { return f.images }

// Image returns the image with the ID.
func (f *File) Image(id ImageID) (Image, bool) {
	if id == 0 || uint64(id) > uint64(len(f.images)) {
		return Image{}, false
	}
	return f.images[id-1], true
}

// Threads are the threads in order of their appearance.
func (f *File) Threads() []Thread {
	list := make([]Thread, len(f.threads))
	for i := range f.threads {
		list[i] = f.threads[i].Thread
	}
	return list
}

// Chunks are the chunks of events of the thread with the key, in order. The
// caller must not change them.
func (f *File) Chunks(thread uint32) []Chunk {
	i, ok := f.byKey[thread]
	if !ok {
		return nil
	}
	return f.threads[i].chunks
}

// Events is how many events the reel holds, as its chunks say.
func (f *File) Events() uint64 { return f.events }

// Size is the size of the file in bytes.
func (f *File) Size() int64 { return int64(len(f.data)) }

// Drops are the drops of all threads, each thread's in order.
func (f *File) Drops() []Drop { return f.drops }

// Clock converts ticks to time.
func (f *File) Clock() *TickClock { return f.ticks }

// FirstTick is when the recording started, in ticks: the header's base tick, or
// the earliest event's where that is not given. Of a dump it is the beginning of its
// window, or the earliest event's if that is older.
func (f *File) FirstTick() uint64 { return f.firstTick }

func (f *File) findFirstTick() uint64 {
	first := f.header.Clock.BaseTick
	if f.dump != nil && f.dump.From != 0 {
		first = f.dump.From
	} else if first != 0 {
		return first
	}
	for i := range f.threads {
		for _, c := range f.threads[i].chunks {
			if c.First != 0 && (first == 0 || c.First < first) {
				first = c.First
			}
		}
	}
	return first
}

// LastTick is the end of the recording, in ticks: the latest event or clock
// pair; of a dump the latest event or the end of its window.
func (f *File) LastTick() uint64 { return f.lastTick }

// EndOf is when a thread's open calls are taken to end, in ticks: with the thread, or with the recording.
func (f *File) EndOf(t *Thread) uint64 {
	if t.EndTick == 0 {
		return f.lastTick
	}
	return min(t.EndTick, f.lastTick)
}

// Damage is what could not be read, by offset. Chunks of events are checked
// when they are decoded, so the list may grow until all have been, or until
// Verify has been called.
func (f *File) Damage() []Damage { return f.damage.sorted() }

// Timeline returns a copy of what was written by [Writer.Timeline], the last one, or nil if there is none. Damage is an
// error, and listed in Damage too.
func (f *File) Timeline() (payload []byte, err error) {
	e := &f.timeline
	if e.length == 0 || e.length > MaxTimeline {
		return nil, nil
	}
	err = CatchFaults(func() error {
		if e.offset+frameSize+int64(e.length) > int64(len(f.data)) {
			return errIndex
		}
		p, err := f.payload(e)
		payload = bytes.Clone(p)
		return err
	})
	if err != nil {
		f.damage.add(Damage{Offset: e.offset, Len: frameSize + int64(e.length), What: fmt.Sprintf("%v: %v; nothing is lost, as it can be made anew", e.kind, err)})
		return nil, fmt.Errorf("reel: %s: chunk at offset %d (%v): %w", f.name, e.offset, e.kind, err)
	}
	return payload, nil
}

// MappedTimeline returns what Timeline does as it stands in the file, neither copied nor checked: it is valid until Close,
// and may only be read within [CatchFaults].
func (f *File) MappedTimeline() []byte {
	e := &f.timeline
	if e.length == 0 || e.length > MaxTimeline || e.offset+frameSize+int64(e.length) > int64(len(f.data)) {
		return nil
	}
	at := e.offset + frameSize
	return f.data[at : at+int64(e.length) : at+int64(e.length)]
}

// Verify checks the checksums of all chunks of events; what is wrong is added
// to Damage.
func (f *File) Verify() {
	for i := range f.threads {
		for _, c := range f.threads[i].chunks {
			_ = CatchFaults(func() error { return f.checked(c, func([]byte) error { return nil }) })
		}
	}
}

// Decode reads a chunk of this file into buf, from its start, and returns the
// slice, grown if need be; to avoid that give buf a capacity of c.Events. An
// error says that the chunk is damaged; it is listed in Damage too. The events
// returned with an error precede the damage.
func (f *File) Decode(c Chunk, buf []Event) ([]Event, error) {
	buf = buf[:0]
	d := f.decoders.Get().(*decoder)
	defer f.decoders.Put(d)
	err := CatchFaults(func() error {
		return f.checked(c, func(payload []byte) (err error) {
			buf, err = d.decode(buf, payload, c.Events, c.mode)
			return err
		})
	})
	return buf, err
}

// DecodeBlocks decodes a chunk of this file block by block, each as many events as there are in buf, and calls yield with
// each, which returns what the next one is to be decoded into, nil to stop. Blocks that fit a processor's cache take less time than whole
// chunks. An error says that the chunk is damaged behind the blocks that were given; it is listed in Damage too.
func (f *File) DecodeBlocks(c Chunk, buf []Event, yield func(events []Event) (buf []Event)) error {
	d := f.decoders.Get().(*decoder)
	defer f.decoders.Put(d)
	// What yield does is none of the file's faults.
	next := func(read func() (int, error)) (n int, err error) {
		err = CatchFaults(func() (err error) {
			n, err = read()
			return err
		})
		return n, err
	}
	remaining := 0
	_, err := next(func() (int, error) {
		return 0, f.checked(c, func(payload []byte) error {
			err := d.begin(payload, c.Events, c.mode)
			remaining = d.remaining
			return err
		})
	})
	if len(buf) == 0 {
		buf = make([]Event, 1<<12)
	}
	for first := true; err == nil && len(buf) > 0 && (first || remaining > 0); first = false {
		var n int
		n, err = next(func() (int, error) { return d.next(buf) })
		remaining -= n
		if err != nil {
			err = f.chunkDamage(c, err)
		}
		if n > 0 {
			buf = yield(buf[:n])
		}
	}
	d.payload = nil
	return err
}

// checked calls read with the chunk's payload if its checksum is right, and
// logs damage.
func (f *File) checked(c Chunk, read func(payload []byte) error) error {
	if c.Offset < 0 || c.Bytes < 0 || c.Offset+frameSize+int64(c.Bytes) > int64(len(f.data)) {
		return fmt.Errorf("reel: %s: chunk at offset %d is not of this file", f.name, c.Offset)
	}
	e := indexEntry{offset: c.Offset, frame: frame{
		kind: KindEvents, mode: c.mode, length: uint32(c.Bytes), thread: c.Thread,
		count: uint32(c.Events), seq: c.Seq, first: c.First, last: c.Last, sum: c.sum,
	}}
	payload, err := f.payload(&e)
	if err == nil {
		err = read(payload)
	}
	if err == nil {
		return nil
	}
	return f.chunkDamage(c, err)
}

// chunkDamage notes that a chunk is damaged.
func (f *File) chunkDamage(c Chunk, err error) error {
	f.damage.add(Damage{
		Offset: c.Offset, Len: frameSize + int64(c.Bytes), Events: uint64(c.Events),
		What: fmt.Sprintf("%d events of thread %d: %v", c.Events, c.Thread, err),
	})
	return fmt.Errorf("reel: %s: chunk of events at offset %d: %w", f.name, c.Offset, err)
}

// ReadThread decodes the thread's events in order and calls yield with each
// batch, until it returns false. The batch is valid during the call only. lost
// says that events are missing between the batch before and this one, because
// their chunk is damaged.
func (f *File) ReadThread(thread uint32, yield func(events []Event, lost bool) bool) {
	var buf []Event
	f.decodeThread(thread, func() ([]Event, bool) { return buf, true }, func(events []Event, lost bool) bool {
		buf = events
		return len(events) == 0 || yield(events, lost)
	})
}

// decodeThread decodes each chunk of the thread into a slice that buffer gives,
// until that or yield returns false. Of a damaged chunk nothing may be left.
func (f *File) decodeThread(thread uint32, buffer func() ([]Event, bool), yield func(events []Event, lost bool) bool) {
	next, lost := uint32(0), false
	for _, c := range f.Chunks(thread) {
		buf, ok := buffer()
		if !ok {
			return
		}
		lost = lost || c.Seq != next
		next = c.Seq + 1
		events, err := f.Decode(c, buf)
		if !yield(events, lost) {
			return
		}
		lost = err != nil || lost && len(events) == 0
	}
}
