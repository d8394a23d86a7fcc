package reel

import "sync"

// maxPendingDrops is how many drops a thread gathers before they are written.
const maxPendingDrops = 256

// ThreadWriter appends the events of one thread.
type ThreadWriter struct {
	w *Writer

	mu     sync.Mutex
	thread Thread
	enc    *encoder // holds the chunk being filled; nil when there is none
	seq    uint32
	total  uint64 // events appended
	drops  []Drop
	values threadValues
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

// End records that the thread has ended, or runs another program, about at that tick. Events may still be appended.
func (t *ThreadWriter) End(tick uint64) error {
	if t.w.mode == ClockNone {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.thread.EndTick = tick
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
	for len(events) > 0 {
		if t.enc == nil {
			t.enc = t.w.takeEncoder()
		}
		n := t.enc.append(events, t.w.mode)
		events = events[n:]
		t.total += uint64(n)
		t.w.appended.Add(uint64(n))
		if t.enc.full() {
			if err := t.flushEvents(); err != nil {
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
	if err := t.flushEvents(); err != nil {
		return err
	}
	if err := t.flushValues(); err != nil {
		return err
	}
	return t.flushDrops()
}

func (t *ThreadWriter) flushEvents() error {
	e := t.enc
	if e == nil {
		return nil
	}
	e.finish()
	f := frame{kind: KindEvents, mode: t.w.mode, thread: t.thread.Key, count: e.count, seq: t.seq, first: e.first, last: e.high}
	err := t.w.put(f, e.buf[:e.pos])
	t.seq++
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
