package reel

// maxMarks is how many marks a chunk has at most, maxMarkBytes about how many bytes.
const (
	maxMarks     = 1 << 13
	maxMarkBytes = 64 << 10
)

// threadMarks are those of a thread that aren't written yet.
type threadMarks struct {
	coder       markCoder
	bits        bitWriter
	values      []byte
	count       uint32
	first, last uint64
	start       uint64 // quanta
}

// AddMarkers adds markers, and returns the ID of the first; the others have those that follow. It comes before their first marks.
func (w *Writer) AddMarkers(markers []Marker) (firstID uint32, err error) {
	w.tableMu.Lock()
	defer w.tableMu.Unlock()
	firstID = w.markers + 1
	for at := 0; at < len(markers); {
		n := min(len(markers)-at, 1<<10)
		b := appendMarkers(make([]byte, frameSize, frameSize+64*n), w.markers+1, markers[at:at+n])
		if err := w.put(frame{kind: KindMarkers, count: uint32(n)}, b); err != nil {
			return 0, err
		}
		w.markers += uint32(n)
		at += n
	}
	return firstID, nil
}

// Pause tells of a time in which nothing was recorded. It may be told twice: without To when it begins, and with To when it has ended.
func (w *Writer) Pause(p Pause) error {
	b := appendUvarint(make([]byte, frameSize, frameSize+32), p.From)
	b = appendUvarint(b, p.To)
	b = appendUvarint(b, uint64(p.Process))
	b = appendString(b, p.By)
	return w.put(frame{kind: KindPauses, count: 1, first: p.From, last: max(p.From, p.To)}, b)
}

// Marks takes the next marks of the thread, in order of time. It keeps neither the slice nor the values' bytes. A thread may have marks and
// no calls.
func (t *ThreadWriter) Marks(marks []Mark) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(marks) == 0 {
		return nil
	}
	t.list()
	if t.marks == nil {
		t.marks = new(threadMarks)
	}
	x := t.marks
	for i := range marks {
		m := &marks[i]
		if x.count == 0 {
			x.start = m.Time >> t.w.markShift
			x.coder = newMarkCoder(t.w.markShift, x.start, t.w.goroutines)
			x.first, x.last = m.Time, m.Time
		}
		x.coder.append(&x.bits, m)
		x.values = x.coder.appendValues(x.values, m)
		x.count++
		x.last = max(x.last, m.Time)
		if x.count >= maxMarks || len(x.bits.b)+len(x.values) >= maxMarkBytes {
			if err := t.flushMarks(); err != nil {
				return err
			}
		}
	}
	return nil
}

// flushMarks writes a chunk of marks:
//
//	unit of times as a shift, time of the first mark in units, how many bytes the marks take, and those, and their values
func (t *ThreadWriter) flushMarks() error {
	x := t.marks
	if x == nil || x.count == 0 {
		return nil
	}
	coded := x.bits.finish()
	b := appendUvarint(make([]byte, frameSize, frameSize+len(coded)+len(x.values)+24), uint64(t.w.markShift))
	b = appendUvarint(b, x.start)
	b = appendUvarint(b, uint64(len(coded)))
	b = append(b, coded...)
	b = append(b, x.values...)
	f := frame{kind: KindMarks, thread: t.thread.Key, count: x.count, first: x.first, last: x.last}
	t.high = max(t.high, x.last)
	*x = threadMarks{bits: bitWriter{b: coded[:0]}, values: x.values[:0]}
	return t.w.put(f, b)
}

// appendMarkers appends markers, of which the first has the ID:
//
//	ID, and of each: provider, name, title, pair, category, kind, image, address, title's argument + 1, ID's, value's, arguments
func appendMarkers(b []byte, first uint32, markers []Marker) []byte {
	b = appendUvarint(b, uint64(first))
	for i := range markers {
		m := &markers[i]
		for _, s := range [...]string{m.Provider, m.Name, m.Title, m.Pair, m.Category} {
			b = appendString(b, s[:min(len(s), maxMarkString)])
		}
		b = append(b, byte(m.Kind))
		b = appendUvarint(b, uint64(m.Image))
		b = appendUvarint(b, m.Addr)
		for _, at := range [...]int{m.TitleArg, m.IDArg, m.ValueArg} {
			b = appendUvarint(b, uint64(at+1))
		}
		b = appendArguments(b, 0, false, m.Arguments)
	}
	return b
}
