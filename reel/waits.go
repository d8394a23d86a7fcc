package reel

import (
	"cmp"
	"fmt"
	"slices"
)

// threadWait is a wait that isn't written yet.
type threadWait struct {
	thread uint32
	Wait
}

// maxWaits is how many waits gather before they are written. maxObject bounds what is kept of a name.
const (
	maxWaits  = 1 << 12
	maxObject = 256
)

// Waits records what the thread waited for, in order of time.
func (t *ThreadWriter) Waits(waits []Wait) error {
	w := t.w
	w.schedMu.Lock()
	defer w.schedMu.Unlock()
	for i := range waits {
		w.sched.waits = append(w.sched.waits, threadWait{t.thread.Key, waits[i]})
		if len(w.sched.waits) >= maxWaits {
			if err := w.flushWaits(); err != nil {
				return err
			}
		}
	}
	return nil
}

// flushWaits writes the waits that there are. The caller holds schedMu.
//
//	names, and each wait: thread, time since the wait before (zigzag), system call+1, arguments, name from 1 on or 0
//
// If more is known of any of them, each has more behind that, which readers of before don't look at: which of waitLock, waitMutex and
// waitEnder there are, and of these the lock, the mutex, the ender's thread, EndedAt since Time (zigzag), EndedBy.
func (w *Writer) flushWaits() error {
	waits := w.sched.waits
	if len(waits) == 0 {
		return nil
	}
	b := make([]byte, frameSize, frameSize+24*len(waits))
	names := map[string]uint64{"": 0}
	var list []byte
	f := frame{kind: KindWaits, count: uint32(len(waits)), first: waits[0].Time, last: waits[0].Time}
	for i := range waits {
		o := &waits[i].Object
		*o = (*o)[:min(len(*o), maxObject)]
		if _, ok := names[*o]; !ok {
			names[*o] = uint64(len(names))
			list = appendString(list, *o)
		}
	}
	b = appendUvarint(b, uint64(len(names)-1))
	b = append(b, list...)
	last := uint64(0)
	for i := range waits {
		x := &waits[i]
		b = appendUvarint(b, uint64(x.thread))
		b = appendUvarint(b, zigzag(x.Time-last))
		b = appendUvarint(b, uint64(uint32(x.Syscall+1)))
		for _, a := range x.Args {
			b = appendUvarint(b, a)
		}
		b = appendUvarint(b, names[x.Object])
		last = x.Time
		f.first, f.last = min(f.first, x.Time), max(f.last, x.Time)
	}
	if slices.ContainsFunc(waits, func(x threadWait) bool { return x.known() != 0 }) {
		for i := range waits {
			b = waits[i].appendMore(b)
		}
	}
	w.sched.waits = waits[:0]
	return w.put(f, b)
}

// What is known of a wait besides, in bits.
const (
	waitLock = 1 << iota
	waitMutex
	waitEnder
)

// known says what is known of a wait besides.
func (x *Wait) known() (bits uint64) {
	if x.Lock != 0 {
		bits |= waitLock
	}
	if x.Mutex != 0 {
		bits |= waitMutex
	}
	if x.Ender != 0 {
		bits |= waitEnder
	}
	return bits
}

// appendMore appends it.
func (x *Wait) appendMore(b []byte) []byte {
	bits := x.known()
	b = appendUvarint(b, bits)
	if bits&waitLock != 0 {
		b = appendUvarint(b, x.Lock)
	}
	if bits&waitMutex != 0 {
		b = appendUvarint(b, x.Mutex)
	}
	if bits&waitEnder != 0 {
		b = appendUvarint(b, uint64(x.Ender))
		b = appendUvarint(b, zigzag(x.EndedAt-x.Time))
		b = appendUvarint(b, uint64(x.EndedBy))
	}
	return b
}

// more reads it.
func (x *Wait) more(d *fields) {
	bits := d.uvarint()
	if bits&waitLock != 0 {
		x.Lock = d.uvarint()
	}
	if bits&waitMutex != 0 {
		x.Mutex = d.uvarint()
	}
	if bits&waitEnder != 0 {
		x.Ender = d.uint32()
		x.EndedAt = x.Time + unzigzag(d.uvarint())
		x.EndedBy = WaitEnd(d.uvarint())
	}
}

func (f *File) loadWaits(payload []byte, count uint32) error {
	d := fields{b: payload}
	names := []string{""}
	for n := d.uvarint(); n > 0 && d.err == nil; n-- {
		names = append(names, d.string())
	}
	last := uint64(0)
	type place struct{ thread, wait int }
	var places []place
	for range count {
		key, at := d.uint32(), last+unzigzag(d.uvarint())
		x := Wait{Time: at, Syscall: int32(d.uint32()) - 1, Args: [3]uint64{d.uvarint(), d.uvarint(), d.uvarint()}}
		name := d.uvarint()
		if d.err != nil {
			return d.err
		}
		i, ok := f.byKey[key]
		if !ok || name >= uint64(len(names)) {
			return fmt.Errorf("of thread %d with name %d, one of which there is not", key, name)
		}
		x.Object = names[name]
		t := &f.threads[i]
		if n := len(t.waits); n > 0 && t.waits[n-1].Time > at {
			return fmt.Errorf("waits of thread %d go back in time", key)
		}
		places = append(places, place{i, len(t.waits)})
		t.waits = append(t.waits, x)
		last = at
	}
	for i := 0; i < len(places) && d.more(); i++ {
		x := &f.threads[places[i].thread].waits[places[i].wait]
		known := *x
		known.more(&d)
		if _, there := f.byKey[known.Ender]; d.err != nil || known.Ender != 0 && !there {
			return fmt.Errorf("of what ended a wait: by thread %d: %w", known.Ender, cmp.Or(d.err, errShortField))
		}
		*x = known
	}
	return nil
}

// Waits is what a thread, by its key, waited for, in order of time. The caller must not change it.
func (f *File) Waits(thread uint32) []Wait {
	if i, ok := f.byKey[thread]; ok {
		return f.threads[i].waits
	}
	return nil
}
