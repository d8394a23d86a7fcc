package reel

import "sync"

// An encoder takes 400 KB. So the first events of a chunk wait for more as they are, and when many threads have an encoder others give theirs
// back at once: then chunks are small, at a cost of some 10 ns an event.
const (
	maxRaw        = 1 << 10
	firstRaw      = 64 // of a thread that begins with more the room for maxRaw is taken at once
	maxRawBuffers = 256
	maxEncoders   = 64
)

// maxPendingDrops is how many drops a thread gathers before they are written.
const maxPendingDrops = 256

// ThreadWriter appends the events of one thread.
type ThreadWriter struct {
	w *Writer

	mu     sync.Mutex
	thread Thread
	raw    []Event  // that are not worth an encoder yet: nil when there is one
	enc    *encoder // holds the chunk being filled; nil when there is none
	seq    uint32
	total  uint64 // events appended
	high   uint64 // the latest time of those that were written
	drops  []Drop
	values threadValues
	marks  *threadMarks // nil before the first one
	ended  bool
	listed bool // among the Writer's threads

	states threadStates // guarded by the Writer's schedMu
}

// Key is the thread's number in the reel.
func (t *ThreadWriter) Key() uint32 { return t.thread.Key }

// Rename records the thread's new name.
func (t *ThreadWriter) Rename(name string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.thread.Name == name {
		return nil
	}
	t.thread.Name = name
	return t.describe()
}

// End records that the thread has ended, or runs another program: at that tick or, if that is later, with its last event. A tick of 0
// says that only its events are known. Events may still be appended.
func (t *ThreadWriter) End(tick uint64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	if err := t.write(); err != nil { // now, since there may be many that live but for a moment
		return err
	}
	if t.w.mode == ClockNone {
		return nil
	}
	if t.enc != nil {
		tick = max(tick, t.enc.high)
	}
	t.thread.EndTick = max(tick, t.high, 1) // 0 would be that it hasn't ended
	return t.describe()
}

func (t *ThreadWriter) describe() error {
	b := appendThread(make([]byte, frameSize, frameSize+64), &t.thread)
	return t.w.put(frame{kind: KindThread, count: 1, thread: t.thread.Key}, b)
}

// Append takes the thread's next events, in order. It does not keep the slice.
// A chunk that is full goes to the file at once, the rest when it is flushed. On
// an error some of the events may have been written.
func (t *ThreadWriter) Append(events []Event) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list()
	t.total += uint64(len(events))
	t.w.appended.Add(uint64(len(events)))
	if t.enc == nil && len(t.raw)+len(events) <= maxRaw {
		if t.raw == nil && len(events) > firstRaw {
			t.raw = t.w.takeRaw()
		}
		t.raw = append(t.raw, events...)
		return nil
	}
	if err := t.encodeRaw(); err != nil {
		return err
	}
	if err := t.encode(events); err != nil {
		return err
	}
	if t.enc != nil && t.w.encoders.Load() > maxEncoders {
		return t.flushEvents()
	}
	return nil
}

func (t *ThreadWriter) encodeRaw() error {
	raw := t.raw
	t.raw = nil
	err := t.encode(raw)
	t.w.returnRaw(raw)
	return err
}

// encode fills chunks. What is full goes to the file.
func (t *ThreadWriter) encode(events []Event) error {
	for len(events) > 0 {
		if t.enc == nil {
			t.enc = t.w.takeEncoder()
		}
		events = events[t.enc.append(events, t.w.mode):]
		if t.enc.full() {
			if err := t.flushEncoder(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Dropped records that about now, at tick, events of the thread were lost:
// entries calls whose entry was not recorded and exits whose exit was not.
func (t *ThreadWriter) Dropped(entries, exits, tick uint64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if entries == 0 && exits == 0 {
		return nil
	}
	t.list()
	if n := len(t.drops); n > 0 && t.drops[n-1].After == t.total {
		t.drops[n-1].Entries += entries
		t.drops[n-1].Exits += exits
		return nil
	}
	t.drops = append(t.drops, Drop{Entries: entries, Exits: exits, Tick: tick, After: t.total})
	if len(t.drops) < maxPendingDrops {
		return nil
	}
	return t.flushDrops()
}

// Flush writes what the thread has appended; see [Writer.Flush].
func (t *ThreadWriter) Flush() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.write()
}

// flush is Flush, and says whether the thread has ended and needs none any more until something is appended.
func (t *ThreadWriter) flush() (over bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.write(); err != nil {
		return false, err
	}
	t.listed = !t.ended
	return t.ended, nil
}

// list sees to it that what is appended is flushed. The caller holds mu.
func (t *ThreadWriter) list() {
	if !t.listed {
		t.listed = true
		t.w.list(t)
	}
}

func (t *ThreadWriter) write() error {
	if err := t.flushEvents(); err != nil {
		return err
	}
	if err := t.flushValues(); err != nil {
		return err
	}
	if err := t.flushMarks(); err != nil {
		return err
	}
	return t.flushDrops()
}

func (t *ThreadWriter) flushEvents() error {
	if err := t.encodeRaw(); err != nil {
		return err
	}
	return t.flushEncoder()
}

func (t *ThreadWriter) flushEncoder() error {
	e := t.enc
	if e == nil {
		return nil
	}
	e.finish()
	f := frame{kind: KindEvents, mode: t.w.mode, thread: t.thread.Key, count: e.count, seq: t.seq, first: e.first, last: e.high}
	err := t.w.put(f, e.buf[:e.pos])
	t.seq++
	t.high = max(t.high, e.high)
	t.enc = nil
	t.w.returnEncoder(e)
	return err
}

func (t *ThreadWriter) flushDrops() error {
	if len(t.drops) == 0 {
		return nil
	}
	b := make([]byte, frameSize, frameSize+24*len(t.drops))
	for i := range t.drops {
		b = appendDrop(b, &t.drops[i])
	}
	f := frame{kind: KindDrops, thread: t.thread.Key, count: uint32(len(t.drops)), first: t.drops[0].Tick, last: t.drops[len(t.drops)-1].Tick}
	t.drops = t.drops[:0]
	return t.w.put(f, b)
}
