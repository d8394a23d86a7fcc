package reel

import "fmt"

// TriggerKind is what made a recorder dump.
type TriggerKind uint8

const (
	TriggerCall    TriggerKind = iota // a call that took too long, or its return value, or the Nth
	TriggerRequest                    // callreel dump, or a signal to the recorder
	TriggerStall                      // a thread that made no progress
	TriggerEnd                        // the process ended; by which signal or exit code, Detail says
)

// String returns the kind as reports spell it.
func (k TriggerKind) String() string {
	switch k {
	case TriggerCall:
		return "call"
	case TriggerRequest:
		return "request"
	case TriggerStall:
		return "stall"
	case TriggerEnd:
		return "end"
	}
	return fmt.Sprintf("trigger kind %d", uint8(k))
}

// Trigger is what a dump was made for. Times are in ticks.
type Trigger struct {
	Kind TriggerKind
	// Condition is the condition as it was given: "call > 20ms". It may hold any bytes, and be empty.
	Condition string
	// Detail is what there is to say besides; it may be empty.
	Detail string
	// Function is the ID of the call's function, Thread the key of its thread; 0 if there is none.
	Function, Thread uint32
	// Start and End are those of the call's entry and exit, or a little behind them; the call's own are in its events. An End of 0 says that
	// it had not returned.
	Start, End uint64
	// SP is that of the call's events.
	SP uint32
}

// Open says that the trigger is a call that had not returned.
func (t *Trigger) Open() bool { return t.End == 0 && t.Function != 0 }

// Missing says that the calls that a thread made between From and To, in ticks, are not in a dump. Thread is the key of the thread, 0
// for all threads.
type Missing struct {
	Thread   uint32
	From, To uint64
}

// Dump says that a reel is a dump: the events of a window of time, which a recorder kept in memory until something made it write them.
// Calls that were open when the window began have their entries in it, so that events may be older than From.
type Dump struct {
	// From and To are the window that was asked for, in ticks.
	From, To uint64
	// Triggers are what happened within the window; the first is what made the dump.
	Triggers []Trigger
	// Missing is what is not in the dump though it is of the window; empty if the dump is whole.
	Missing []Missing
}

// Ticks is how long the trigger's call took, up to the end of the dump if it had not returned; 0 if that is not known.
func (d *Dump) Ticks(t *Trigger) uint64 {
	end := t.End
	if end == 0 {
		end = d.To
	}
	if t.Start == 0 || end < t.Start {
		return 0
	}
	return end - t.Start
}

// Dump says that the reel is a dump. It may be called once, at any time before Close.
func (w *Writer) Dump(d Dump) error {
	w.tableMu.Lock()
	defer w.tableMu.Unlock()
	if w.dumped {
		return fmt.Errorf("reel: %s: it has been said before what this is a dump of", w.name)
	}
	f := frame{kind: KindDump, count: uint32(len(d.Triggers)), first: d.From, last: d.To}
	if err := w.put(f, appendDump(make([]byte, frameSize), &d)); err != nil {
		return err
	}
	w.dumped = true
	return nil
}

// Dump returns what the reel is a dump of; ok is false if it is none. Of a damaged one it has what precedes the damage, which Damage tells
// of. The caller must not change the lists.
func (f *File) Dump() (d Dump, ok bool) {
	if f.dump == nil {
		return Dump{}, false
	}
	return *f.dump, true
}

// Field tags of the dump chunk, as those of the header: what a reader does not know it skips.
const (
	tagDumpFrom = iota + 1
	tagDumpTo
	tagTrigger // a Trigger, its fields one after the other; what follows them is skipped
	tagMissing // a Missing, likewise
)

func appendDump(b []byte, d *Dump) []byte {
	b = appendTagged(b, tagDumpFrom, d.From)
	b = appendTagged(b, tagDumpTo, d.To)
	var field []byte
	for i := range d.Triggers {
		t := &d.Triggers[i]
		field = appendUvarint(field[:0], uint64(t.Kind))
		field = appendString(field, t.Condition)
		field = appendString(field, t.Detail)
		for _, v := range []uint64{uint64(t.Function), uint64(t.Thread), t.Start, t.End, uint64(t.SP)} {
			field = appendUvarint(field, v)
		}
		b = appendUvarint(b, tagTrigger)
		b = append(appendUvarint(b, uint64(len(field))), field...)
	}
	for _, m := range d.Missing {
		field = appendUvarint(field[:0], uint64(m.Thread))
		field = appendUvarint(field, m.From)
		field = appendUvarint(field, m.To)
		b = appendUvarint(b, tagMissing)
		b = append(appendUvarint(b, uint64(len(field))), field...)
	}
	return b
}

// parseDump reads the chunk; of a damaged one it returns what precedes the damage. A trigger takes at least eight bytes and a missing
// stretch three, so that what is listed is in proportion to the file.
func parseDump(payload []byte) (Dump, error) {
	var d Dump
	p := fields{b: payload}
	for p.more() {
		tag, v := p.tagged()
		if p.err != nil {
			break
		}
		switch tag {
		case tagDumpFrom:
			d.From = v.number()
		case tagDumpTo:
			d.To = v.number()
		case tagTrigger:
			t, err := parseTrigger(v)
			if err != nil {
				return d, fmt.Errorf("trigger %d: %w", len(d.Triggers)+1, err)
			}
			d.Triggers = append(d.Triggers, t)
		case tagMissing:
			q := fields{b: v}
			m := Missing{Thread: q.uint32(), From: q.uvarint(), To: q.uvarint()}
			if q.err != nil {
				return d, fmt.Errorf("missing stretch %d: %w", len(d.Missing)+1, q.err)
			}
			d.Missing = append(d.Missing, m)
		}
	}
	return d, p.err
}

func parseTrigger(v value) (Trigger, error) {
	p := fields{b: v}
	t := Trigger{Kind: TriggerKind(min(p.uvarint(), 255))}
	t.Condition, t.Detail = p.string(), p.string()
	t.Function, t.Thread = p.uint32(), p.uint32()
	t.Start, t.End = p.uvarint(), p.uvarint()
	t.SP = p.uint32()
	return t, p.err
}
