package reel

import "fmt"

// Arguments are what is recorded with the entries of a function, or with its returns; nil if nothing is. The caller must not change them.
func (f *File) Arguments(function uint32, atReturn bool) []Argument {
	return f.arguments[signature(function, atReturn)]
}

// HasArguments says whether values of any function are recorded.
func (f *File) HasArguments() bool { return len(f.arguments) > 0 }

// Values reads the values of a thread's events.
func (f *File) Values(thread uint32) *ValueReader {
	r := &ValueReader{f: f}
	if i, ok := f.byKey[thread]; ok {
		r.chunks = f.threads[i].values
	}
	return r
}

// ValueReader goes forward through the values of a thread. It is for one goroutine at a time.
type ValueReader struct {
	f         *File
	chunks    []indexEntry
	coder     valueCoder
	fields    fields
	remaining uint32
	set       ValueSet
	have      bool
}

// next goes to the next set; have is false behind the last.
func (r *ValueReader) next() {
	for r.have = false; !r.have; {
		for r.remaining == 0 {
			if len(r.chunks) == 0 {
				return
			}
			r.open(&r.chunks[0])
			r.chunks = r.chunks[1:]
		}
		r.remaining--
		if err := CatchFaults(func() error { return r.coder.next(&r.fields, &r.set) }); err != nil {
			r.remaining = 0
			continue
		}
		r.have = true
	}
}

// open begins a chunk. One that is damaged is told of, and passed over.
func (r *ValueReader) open(e *indexEntry) {
	var payload []byte
	err := CatchFaults(func() (err error) {
		payload, err = r.f.payload(e)
		return err
	})
	if err != nil {
		r.f.damage.add(Damage{Offset: e.offset, Len: frameSize + int64(e.length), What: fmt.Sprintf("%v: the values of %d events: %v", e.kind, e.count, err)})
		r.remaining = 0
		return
	}
	r.fields, r.coder, r.remaining = fields{b: payload}, valueCoder{}, min(e.count, e.length)
}

// Next returns the next event's values, which are valid until the next call, or nil.
func (r *ValueReader) Next() *ValueSet {
	if r.next(); !r.have {
		return nil
	}
	return &r.set
}

// UnknownNumber stands for the number of an event that isn't known.
const UnknownNumber = ^uint64(0)

// Of returns the values of the event that is an entry into the function, or a return of it, at that time and stack pointer; nil if it has
// none. Where events have no times it goes by number, which is the event's in its thread. They are valid until the next call, their bytes
// until the File is closed. Events are to be asked for in their order.
func (r *ValueReader) Of(function uint32, atReturn bool, time uint64, sp uint32, number uint64) []Value {
	if r.f.arguments[signature(function, atReturn)] == nil {
		return nil
	}
	timed := r.f.header.Clock.Mode == ClockFull
	if !timed && number == UnknownNumber {
		return nil
	}
	for {
		if !r.have {
			if r.next(); !r.have {
				return nil
			}
		}
		s := &r.set
		at, is := s.Number, number
		if timed {
			at, is = s.Time, time
		}
		if at == is && s.Function == function && s.AtReturn == atReturn && s.SP == sp {
			r.have = false
			return s.Values
		}
		if at >= is { // of an event to come
			return nil
		}
		r.have = false
	}
}

// ValuesBetween returns the values of an entry into the function, or of a return of it, made from one tick up to before another; nil if there
// are none, or no times. Of several it gives the first. thread is the key of the thread that made it, 0 for any.
func (f *File) ValuesBetween(function uint32, atReturn bool, thread uint32, from, to uint64) []Value {
	if f.arguments[signature(function, atReturn)] == nil {
		return nil
	}
	for i := range f.threads {
		t := &f.threads[i]
		if thread != 0 && t.Key != thread {
			continue
		}
		for k := range t.values {
			e := &t.values[k]
			if e.last < from || e.first >= to {
				continue
			}
			r := ValueReader{f: f, chunks: t.values[k : k+1]}
			for s := r.Next(); s != nil && s.Time < to; s = r.Next() {
				if s.Time >= from && s.Time != 0 && s.Function == function && s.AtReturn == atReturn {
					return s.Values
				}
			}
		}
	}
	return nil
}
