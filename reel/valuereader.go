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
	f *File
	valuePlace
	before valuePlace // of the set at hand
	set    ValueSet
	have   bool
}

// valuePlace is where a ValueReader is.
type valuePlace struct {
	chunks []indexEntry
	coder  valueCoder
	fields fields
	left   uint32
}

// next goes to the next set; have is false behind the last.
func (r *ValueReader) next() {
	r.before = r.valuePlace
	for r.have = false; !r.have; {
		for r.left == 0 {
			if len(r.chunks) == 0 {
				return
			}
			r.open(&r.chunks[0])
			r.chunks = r.chunks[1:]
		}
		r.left--
		if err := GuardFaults(func() error { return r.coder.next(&r.fields, &r.set) }); err != nil {
			r.left = 0
			continue
		}
		r.have = true
	}
}

// open begins a chunk. One that is damaged is told of, and passed over.
func (r *ValueReader) open(e *indexEntry) {
	var payload []byte
	err := GuardFaults(func() (err error) {
		payload, err = r.f.payload(e)
		return err
	})
	if err != nil {
		r.f.damage.add(Damage{Offset: e.offset, Len: frameSize + int64(e.length), What: fmt.Sprintf("%v: the values of %d events: %v", e.kind, e.count, err)})
		r.left = 0
		return
	}
	r.fields, r.coder, r.left = fields{b: payload}, valueCoder{}, min(e.count, e.length)
}

// Next returns the next event's values, which are valid until the next call, or nil.
func (r *ValueReader) Next() *ValueSet {
	if r.next(); !r.have {
		return nil
	}
	return &r.set
}

// Of returns the values of the event that is an entry into the function, or a return of it, at that time and stack pointer; nil if it has
// none. They are valid until the next call, their bytes until the File is closed. Events are to be asked for in their order.
func (r *ValueReader) Of(function uint32, atReturn bool, time uint64, sp uint32) []Value {
	if r.f.arguments[signature(function, atReturn)] == nil {
		return nil
	}
	const ahead = 64 // that are looked through where there are no times
	passed, skipped := r.valuePlace, false
	if r.have {
		passed = r.before
	}
	for range ahead {
		if !r.have {
			if r.next(); !r.have {
				break
			}
		}
		s := &r.set
		if s.Function == function && s.AtReturn == atReturn && s.SP == sp && (s.Time == time || s.Time == 0) {
			r.have = false
			return s.Values
		}
		if s.Time >= time && time != 0 { // of an event to come
			break
		}
		r.have = false
		if s.Time != 0 && time != 0 {
			passed, skipped = r.valuePlace, false
		} else {
			skipped = true
		}
	}
	if skipped || !r.have { // what was looked through may be of events to come
		r.valuePlace, r.have = passed, false
	}
	return nil
}

// From goes forward to the chunk of values that may have those of an event at the time.
func (r *ValueReader) From(time uint64) {
	for len(r.chunks) > 0 && r.chunks[0].last < time {
		r.chunks = r.chunks[1:]
	}
}
