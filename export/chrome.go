package export

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/callreel/callreel/reel"
)

// Chrome writes the reel as Chrome trace JSON (the Trace Event Format), which
// chrome://tracing, Perfetto and speedscope open.
//
// Calls are pairs of "B" and "E" events, not "X" events: an "X" event can only be
// written when its call ends, after those inside it, and viewers then cannot
// tell a call from one inside it that has the same start and duration. Pairs
// nest by their order. As speedscope orders by time first, times within a lane
// are made to increase: an event that falls on the nanosecond of the one before
// is written one nanosecond later. For the same reason "E" events repeat the
// name, and all events have a time.
//
// A lane ("tid") is one stack of one thread: a thread's signal stack or
// coroutines, and a thread that had the ID of an earlier one, get lanes with
// numbers beyond the kernel's thread IDs, and so do goroutines, each of which has
// one, whatever the threads it ran on. Times are microseconds since the
// recording started, with three decimals. Without a clock every event takes one
// microsecond: only the order means something.
//
// Where events were dropped, or lost in a damaged file, an instant event says
// so. Calls that were open at the end are ended there, and an instant event
// tells how many. The "E" event of a call that was not seen to return has an
// argument "end": "implicit" if an exception or longjmp unwound it (see
// [reel.Implicit]), "unfinished" if it was open. Of a dump an instant event in the
// call that made it says so, just before its end; triggers that are no calls and
// stretches that are missing are instant events of the whole trace. So is what recording
// was allowed to cost and how much of the program is recorded, and where functions went off
// for that, with their names and for how long; at most 1,000 are told.
//
// Which goroutine was on which thread is in lanes of their own, as "X" events of
// the category "goroutine"; flow events lead from one thread to the next. Flow
// events also lead from the innermost call on one stack of a thread to the first
// on another. Counter events tell calls per second, open calls and events dropped
// until then, of all processes together, in a thousandth of the recording each.
//
// States of threads (see [reel.File.States]) are in the member "systemTraceEvents", as
// lines of the kernel's tracer (sched_switch, sched_waking) on the clock of the events;
// page faults are instant events.
//
// What markers said is in lanes of their own, one for each thread, or goroutine, that has any ("NAME (TID): markers"): spans need not nest with
// calls, and in this format what is in one lane has to; so pairs whose spans cross others have lanes beside that. There spans are "B" and "E"
// events, and instants are instant events. So are the ends of flows, whose arrows ("s" and "f") are bound to the innermost span that is open, else
// to the innermost call, in whose lane the end then is, behind all calls in the file; where neither is, the end is a pair of events a nanosecond
// long, which the arrow is bound to: viewers drop an arrow that begins in nothing. Asynchronous spans and pauses are "b", "n" and "e" events.
// Their "id" is not the program's, which is among the arguments, but that of a row that is free: a program may use an ID for several things at a
// time. Counters are "C" events, which hold a value and no other arguments.
func Chrome(ctx context.Context, f *reel.File, w io.Writer, opt Options) error {
	c := newChrome(ctx, f, opt)
	c.w = bufio.NewWriterSize(w, chromeBuffer)
	c.head()
	c.all(c, false)
	if c.marks != nil {
		c.marks.all()
	}
	c.foot()
	return c.done()
}

const chromeBuffer = 1 << 18

func newChrome(ctx context.Context, f *reel.File, opt Options) *chrome {
	c := &chrome{walk: newWalk(ctx, f, opt), names: make(map[uint32]chromeName), byTID: make(map[int]*lane)}
	c.gap = 1
	if f.HasStates() { // a thread 0 is none of the process's, but the processors' idling
		c.tid = f.Header().PID
	}
	c.rates = newRates(f)
	c.marks = newMarkWalk(c.walk, c)
	return c
}

func (c *chrome) done() error {
	if c.err == nil {
		c.err = c.w.Flush()
	}
	if c.err != nil {
		return fmt.Errorf("export: %s to chrome: %w", c.f.Name(), c.err)
	}
	return nil
}

// chrome is one export.
type chrome struct {
	*walk
	w     *bufio.Writer
	names map[uint32]chromeName // by function ID
	some  bool                  // an event has been written
	buf   []byte
	flows uint64                // given
	arrow uint64                // of the flow that ends in the call that begins next, or 0
	split *chromeSplit          // or nil
	marks *markWalk             // or nil
	said  map[uint32]chromeName // titles by marker ID

	byTID      map[int]*lane // threads that readers know by their IDs
	statesFrom uint64        // tick from which states go into the file
	tid        int           // of what is the whole process's
}

// chromeName holds the ends of a function's events, rendered.
type chromeName struct {
	begin, end []byte
	place      []byte // members of args that say where the function is; empty if that isn't known
}

// head begins a file.
func (c *chrome) head() {
	c.some = false
	c.raw(`{"traceEvents":[`)
	name := c.processName()
	labels := cut(strings.Join(c.f.Header().Command, " "), maxName)
	for k, pid := range c.processes() {
		c.metadata("process_name", pid, c.tid, appendJSON([]byte(`"name":`), name))
		c.metadata("process_sort_index", pid, c.tid, fmt.Appendf(nil, `"sort_index":%d`, k))
		if labels != "" {
			c.metadata("process_labels", pid, c.tid, appendJSON([]byte(`"labels":`), labels))
		}
	}
}

// foot ends the last file.
func (c *chrome) foot() {
	if c.rates != nil {
		c.rates.rest(c.walk, c.counters)
	}
	c.unplaced(c.mark)
	c.tail(math.MaxUint64)
}

// tail ends a file, which holds what was before a tick.
func (c *chrome) tail(tick uint64) {
	c.states(tick)
	c.trailer()
	c.raw("}\n")
}

func (c *chrome) raw(s string) {
	if c.err == nil {
		_, c.err = c.w.WriteString(s)
	}
}

// event writes c.buf as the next event.
func (c *chrome) event() {
	if c.err != nil {
		return
	}
	sep := ",\n"
	if !c.some {
		sep, c.some = "\n", true
	}
	if c.split != nil {
		c.split.written += int64(len(sep) + len(c.buf))
	}
	c.w.WriteString(sep)
	_, c.err = c.w.Write(c.buf)
}

// name returns the function's name as it ends an event, rendered.
func (c *chrome) name(id uint32) chromeName {
	n, ok := c.names[id]
	if ok {
		return n
	}
	name, module := c.functionName(id)
	n.end = append(appendJSON([]byte(`,"name":`), name), '}')
	n.begin = n.end
	if module != "" {
		n.begin = appendJSON([]byte(`,"cat":`), module)
		n.begin = append(n.begin, n.end...)
	}
	if file, line := c.line(id); file != "" {
		n.place = appendJSON([]byte(`"source.file_name":`), file)
		n.place = fmt.Appendf(n.place, `,"source.line_number":%d`, line) // as trace_processor calls them
	}
	if len(c.names) < maxNames {
		c.names[id] = n
	}
	return n
}

// trailer writes what describes the trace as a whole; what is damaged is known
// only now.
func (c *chrome) trailer() {
	h := c.f.Header()
	b := append(c.buf[:0], `"displayTimeUnit":"ns","otherData":{"tool":`...)
	b = appendJSON(b, h.Tool)
	b = append(b, `,"host":`...)
	b = appendJSON(b, h.Host)
	b = append(b, `,"clock":`...)
	b = appendJSON(b, h.Clock.Mode.String())
	// As a string: JavaScript cannot hold such a number.
	b = fmt.Appendf(b, `,"start_unix_ns":"%d"`, c.base)
	if c.split != nil {
		b = fmt.Appendf(b, `,"part":%d,"continued":%v`, c.split.part, !c.split.last)
	}
	for i, d := range c.f.Damage() {
		sep := `,"damage":[`
		if i > 0 {
			sep = ","
		}
		b = append(b, sep...)
		b = appendJSON(b, d.String())
	}
	if len(c.f.Damage()) > 0 {
		b = append(b, ']')
	}
	c.buf = append(b, '}')
	c.raw(string(c.buf))
}
