package export

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"path"
	"strconv"

	"github.com/callreel/callreel/reel"
)

// ChromeOptions say how [Chrome] writes names.
type ChromeOptions struct {
	// Name turns a recorded function name into the one shown, for example
	// demangled; nil shows it as recorded. It is called once for each function
	// that was called.
	Name func(name string) string
}

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
// argument "end": "implicit" if it was left by an exception or longjmp (see
// [reel.Implicit]), "unfinished" if it was open.
func Chrome(ctx context.Context, f *reel.File, w io.Writer, opt ChromeOptions) error {
	c := &chrome{f: f, ctx: ctx, w: bufio.NewWriterSize(w, 1<<18), opt: opt, names: make(map[uint32]chromeName), used: make(map[int]bool)}
	c.base = f.Clock().UnixNS(f.FirstTick())
	c.untimed = f.Header().Clock.Mode == reel.ClockNone
	c.raw(`{"traceEvents":[`)
	c.processes()
	if f.Header().Goroutines {
		c.goroutines()
	} else {
		for _, t := range f.Threads() {
			c.thread(t)
		}
	}
	c.raw("\n],\n")
	c.trailer()
	c.raw("}\n")
	if c.err == nil {
		c.err = c.w.Flush()
	}
	if c.err != nil {
		return fmt.Errorf("export: %s to chrome: %w", f.Name(), c.err)
	}
	return nil
}

// chrome is one export.
type chrome struct {
	f       *reel.File
	ctx     context.Context
	w       *bufio.Writer
	opt     ChromeOptions
	base    int64 // time 0, in nanoseconds since 1970
	untimed bool
	names   map[uint32]chromeName // by function ID
	used    map[int]bool          // lane numbers given
	next    int                   // lane number to try next
	some    bool                  // an event has been written
	buf     []byte
	err     error
}

// chromeName holds the ends of a function's events, rendered.
type chromeName struct {
	begin, end []byte
}

// maxNames bounds the cache of rendered names: a hostile reel can name functions
// by the billion.
const maxNames = 1 << 18

// firstExtraLane is above any thread ID of Linux, whose pid_max is at most 2^22.
const firstExtraLane = 1<<22 + 1

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
	c.w.WriteString(sep)
	_, c.err = c.w.Write(c.buf)
}

func (c *chrome) processes() {
	h := c.f.Header()
	name := path.Base(h.Exe)
	if h.Exe == "" && len(h.Command) > 0 {
		name = path.Base(h.Command[0])
	}
	seen := make(map[int]bool)
	for _, t := range c.f.Threads() {
		pid := c.pid(t)
		if seen[pid] {
			continue
		}
		seen[pid] = true
		c.metadata("process_name", pid, 0, name)
	}
}

// pid is the thread's process, as far as it is known.
func (c *chrome) pid(t reel.Thread) int {
	if t.Process != 0 {
		return t.Process
	}
	return c.f.Header().PID
}

func (c *chrome) metadata(what string, pid, tid int, name string) {
	b := append(c.buf[:0], `{"ph":"M","name":"`...)
	b = append(b, what...)
	b = appendLane(b, pid, tid)
	b = append(b, `,"ts":0,"args":{"name":`...)
	b = appendJSON(b, name)
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
	b = strconv.AppendInt(b, ns/1000, 10)
	r := ns % 1000
	return append(b, '.', byte('0'+r/100), byte('0'+r/10%10), byte('0'+r%10))
}

// name returns the function's name as it ends an event, rendered.
func (c *chrome) name(id uint32) chromeName {
	n, ok := c.names[id]
	if ok {
		return n
	}
	fn, known := c.f.Function(id)
	text := fn.Name
	if !known || text == "" {
		text = fmt.Sprintf("function #%d", id)
	}
	if c.opt.Name != nil {
		text = c.opt.Name(text)
	}
	n.end = append(appendJSON([]byte(`,"name":`), text), '}')
	n.begin = n.end
	if m, ok := c.f.Image(fn.Image); ok && m.Path != "" {
		n.begin = appendJSON([]byte(`,"cat":`), path.Base(m.Path))
		n.begin = append(n.begin, n.end...)
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
	b = append(b, `,"start_unix_ns":"`...)
	b = strconv.AppendInt(b, c.base, 10)
	b = append(b, '"')
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
