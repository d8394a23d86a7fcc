package reel

// AddArguments says what is recorded with the entries of a function, or with its returns. It comes before the first values.
func (w *Writer) AddArguments(function uint32, atReturn bool, args []Argument) error {
	b := appendArguments(make([]byte, frameSize, frameSize+256), function, atReturn, args)
	return w.put(frame{kind: KindArgs, count: 1}, b)
}

// AppendWith is Append with the values that some of the events have; of those only Values is to be given, and Number, which is the event's
// index in events.
func (t *ThreadWriter) AppendWith(events []Event, values []ValueSet) error {
	t.mu.Lock()
	t.list()
	total := t.total
	for i := range values {
		s := values[i]
		if s.Number >= uint64(len(events)) {
			continue
		}
		e := &events[s.Number]
		s.Number += total
		s.Function, s.AtReturn, s.Time, s.SP = e.ID(), e.IsExit(), e.Time, e.SP
		if err := t.value(&s); err != nil {
			t.mu.Unlock()
			return err
		}
	}
	t.mu.Unlock()
	return t.Append(events)
}

// value takes the values of one event.
func (t *ThreadWriter) value(s *ValueSet) error {
	v := &t.values
	if v.count == 0 {
		v.coder = valueCoder{}
		v.buf = append(v.buf[:0], make([]byte, frameSize)...)
		v.first, v.last = s.Time, s.Time
	}
	v.first = min(v.first, s.Time)
	v.buf = v.coder.append(v.buf, s)
	v.count++
	v.last = max(v.last, s.Time)
	if len(v.buf) < maxArgChunk {
		return nil
	}
	return t.flushValues()
}

// threadValues are those of a thread that aren't written yet.
type threadValues struct {
	coder       valueCoder
	buf         []byte
	count       uint32
	first, last uint64
}

func (t *ThreadWriter) flushValues() error {
	v := &t.values
	if v.count == 0 {
		return nil
	}
	f := frame{kind: KindArgs, mode: t.w.mode, thread: t.thread.Key, count: v.count, first: v.first, last: v.last}
	v.count = 0
	return t.w.put(f, v.buf)
}
