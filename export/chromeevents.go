package export

import (
	"fmt"
	"strconv"

	"github.com/callreel/callreel/reel"
)

// chromeLane is what a lane's events have in common.
type chromeLane struct {
	at    []byte       // rendered pid, tid and the start of the time
	part  int          // last one that it was announced in
	calls []uint32     // open ones, where files are split
	spans []chromeName // the same of a lane of markers
}

func (c *chrome) lane(l *lane) {
	d := &chromeLane{at: append(appendLane(nil, l.pid, l.tid), `,"ts":`...)}
	if c.split != nil {
		d.part = c.split.part
	}
	l.data = d
	if l.main == l && l.goroutine == 0 && !l.runs && !l.marks && l.tid == l.thread.TID {
		c.byTID[l.tid] = l
	}
	c.announce(l)
}

// announce names a lane, in each file again.
func (c *chrome) announce(l *lane) {
	c.metadata("thread_name", l.pid, l.tid, appendJSON([]byte(`"name":`), l.name))
	c.metadata("thread_sort_index", l.pid, l.tid, fmt.Appendf(nil, `"sort_index":%d`, l.order))
}

// of is the lane as this export has it.
func (c *chrome) of(l *lane) *chromeLane {
	d := l.data.(*chromeLane)
	if c.split != nil && d.part != c.split.part {
		d.part = c.split.part
		c.announce(l)
	}
	return d
}

func (c *chrome) begin(l *lane, at int64, call *reel.Call) {
	n := c.name(call.Func)
	if c.split != nil {
		at = c.split.begin(c, l, at, n, call)
	}
	lane := c.of(l).at // first: it may write, too
	b := append(c.buf[:0], `{"ph":"B`...)
	b = append(b, lane...)
	b = appendMicros(b, at)
	b = append(b, n.begin...)
	if c.values.n() > 0 || len(n.place) > 0 {
		b = append(append(b[:len(b)-1], `,"args":{`...), n.place...)
		if c.values.n() > 0 && len(n.place) > 0 {
			b = append(b, ',')
		}
		b = append(appendValues(b, c.values), `}}`...)
	}
	c.buf = b
	c.event()
	if c.arrow != 0 {
		c.flow("f", l, at, c.arrow, "stack")
		c.arrow = 0
	}
}

func (c *chrome) end(l *lane, at int64, call *reel.Call) {
	n := c.name(call.Func)
	if c.split != nil {
		c.split.end(l, n)
	}
	c.ended(l, at, n, endOf(call.Flags))
}

// ended writes that a call has ended; how is empty for one that was seen to return.
func (c *chrome) ended(l *lane, at int64, n chromeName, how string) {
	lane := c.of(l).at // first: it may write, too
	b := append(c.buf[:0], `{"ph":"E`...)
	b = append(b, lane...)
	b = appendMicros(b, at)
	b = append(b, n.end...)
	if how != "" {
		b = append(b[:len(b)-1], `,"args":{"end":"`...)
		b = append(append(b, how...), `"}}`...)
	} else if c.values.n() > 0 {
		b = append(appendValues(append(b[:len(b)-1], `,"args":{`...), c.values), `}}`...)
	}
	c.buf = b
	c.event()
}

func (c *chrome) note(l *lane, at int64, n note) {
	lane := c.of(l).at // first: it may write, too
	b := append(c.buf[:0], `{"ph":"i`...)
	b = append(b, lane...)
	b = appendMicros(b, at)
	b = append(b, `,"s":"t","cat":"callreel","name":`...)
	b = appendJSON(b, n.name())
	b = append(b, `,"args":{`...)
	switch n.kind {
	case noteTrigger:
		b = appendTrigger(b, n)
	case noteDropped:
		b = fmt.Appendf(b, `"entries":%d,"exits":%d`, n.entries, n.exits)
	case noteOpen:
		b = fmt.Appendf(b, `"calls":%d`, n.calls)
	}
	c.buf = append(b, `}}`...)
	c.event()
}

// mark writes an instant of the whole process.
func (c *chrome) mark(at int64, tid int, n note) {
	b := append(c.buf[:0], `{"ph":"i`...)
	b = appendLane(b, c.f.Header().PID, c.tid)
	b = append(b, `,"ts":`...)
	b = appendMicros(b, at)
	b = append(b, `,"s":"g","cat":"callreel","name":`...)
	b = appendJSON(b, n.name())
	b = append(b, `,"args":{`...)
	if n.kind == noteTrigger {
		b = appendTrigger(b, n)
	} else {
		sep := ""
		for _, x := range n.numbers() {
			b = fmt.Appendf(b, `%s"%s":%d`, sep, x.key, x.value)
			sep = ","
		}
		if n.off != nil && n.off.text != "" {
			b = appendJSON(fmt.Appendf(b, `%s"%s":`, sep, n.textKey()), cut(n.off.text, maxName))
		}
	}
	if tid != 0 {
		b = fmt.Appendf(b, `,"tid":%d`, tid)
	}
	c.buf = append(b, `}}`...)
	c.event()
}

// appendTrigger appends a trigger's arguments.
func appendTrigger(b []byte, n note) []byte {
	b = fmt.Appendf(b, `"kind":"%v","duration_ns":%d,"open":%v`, n.trigger.Kind, n.nanoseconds, n.trigger.Open())
	if n.trigger.Detail != "" {
		b = appendJSON(append(b, `,"detail":`...), cut(n.trigger.Detail, maxName))
	}
	return b
}

// switched writes the start of a flow between two stacks of a thread. Its end
// comes after the call that begins next.
func (c *chrome) switched(from, to *lane, at int64) {
	if c.split != nil && !c.split.has(from) {
		return // the call that it would start in isn't in this file
	}
	c.flows++
	c.arrow = c.flows
	c.flow("s", from, max(at, from.last), c.arrow, "stack")
}

// flow writes one end of an arrow.
func (c *chrome) flow(phase string, l *lane, at int64, id uint64, kind string) {
	lane := c.of(l).at // first: it may write, too
	b := append(c.buf[:0], `{"ph":"`...)
	b = append(b, phase...)
	b = append(b, lane...)
	b = appendMicros(b, at)
	b = fmt.Appendf(b, `,"id":%d,"cat":"%s","name":"%s"`, id, kind, kind)
	if phase == "f" {
		b = append(b, `,"bp":"e"`...)
	}
	c.buf = append(b, '}')
	c.event()
}

// run writes that a goroutine was on a thread, and an arrow to there from the
// thread where it was before.
func (c *chrome) run(l *lane, r goroutineRun, back *goroutineRun) {
	lane := c.of(l).at // first: it may write, too
	b := append(c.buf[:0], `{"ph":"X`...)
	b = append(b, lane...)
	b = appendMicros(b, r.start)
	b = append(b, `,"dur":`...)
	b = appendMicros(b, r.end-r.start)
	b = append(b, `,"cat":"goroutine","name":"`...)
	b = append(b, goroutineName(r.goroutine)...)
	c.buf = append(b, `"}`...)
	c.event()
	if back == nil || back.thread == r.thread || c.split != nil && back.start < c.split.from {
		return
	}
	c.flows++
	c.flow("s", back.lane, back.end-1, c.flows, "goroutine")
	c.flow("f", l, r.start, c.flows, "goroutine")
}

// counters writes the counters that have changed.
func (c *chrome) counters(r rate) {
	one := func(name string, value uint64) {
		b := append(c.buf[:0], `{"ph":"C","name":"`...)
		b = append(b, name...)
		b = appendLane(b, c.f.Header().PID, c.tid)
		b = append(b, `,"ts":`...)
		b = appendMicros(b, r.at)
		b = append(b, `,"args":{"value":`...)
		b = strconv.AppendUint(b, value, 10)
		c.buf = append(b, `}}`...)
		c.event()
	}
	if r.perSecond != nil {
		one("calls per second", *r.perSecond)
	}
	if r.open != nil {
		one("open calls", uint64(max(*r.open, 0)))
	}
	if r.dropped != nil {
		one("events dropped", *r.dropped)
	}
}

func (c *chrome) metadata(what string, pid, tid int, args []byte) {
	b := append(c.buf[:0], `{"ph":"M","name":"`...)
	b = append(b, what...)
	b = appendLane(b, pid, tid)
	b = append(b, `,"ts":0,"args":{`...)
	b = append(b, args...)
	c.buf = append(b, `}}`...)
	c.event()
}

// appendLane ends a string and appends pid and tid.
func appendLane(b []byte, pid, tid int) []byte {
	b = append(b, `","pid":`...)
	b = strconv.AppendInt(b, int64(pid), 10)
	b = append(b, `,"tid":`...)
	return strconv.AppendInt(b, int64(tid), 10)
}

// appendMicros appends nanoseconds as microseconds with three decimals. A float
// would lose the last ones after some days.
func appendMicros(b []byte, ns int64) []byte {
	if ns < 0 {
		b, ns = append(b, '-'), -ns
	}
	b = strconv.AppendInt(b, ns/1000, 10)
	r := ns % 1000
	return append(b, '.', byte('0'+r/100), byte('0'+r/10%10), byte('0'+r%10))
}
