package export

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/callreel/callreel/reel"
)

// chromeSched writes words of the kernel's tracer as the format has them: lines of that tracer's text in the member "systemTraceEvents".
type chromeSched struct {
	*chrome
	tasks map[int]chromeTask // by thread ID
	some  bool
}

// chromeTask is a thread in the tracer's words.
type chromeTask struct {
	name string // without space
	pid  int    // of its process; 0 if that isn't known
}

// states writes what the threads did besides their calls, from the tick where the file begins up to before another. It ends the events.
func (c *chrome) states(to uint64) {
	from := c.statesFrom
	c.statesFrom = to
	if c.untimed || !c.f.HasStates() {
		c.raw("\n],\n")
		return
	}
	for _, t := range c.f.Threads() {
		if c.failed() {
			break
		}
		if c.hasStates(t.Key, from, to) {
			c.faults(&t, from, to)
		}
	}
	c.raw("\n],\n")
	s := &chromeSched{chrome: c, tasks: make(map[int]chromeTask)}
	s.tasks[0] = chromeTask{name: "<idle>"}
	for _, t := range c.f.Threads() {
		s.tasks[t.TID] = chromeTask{taskName(t.Name), c.pid(t)}
	}
	c.tellSched(s, from, to)
	if s.some {
		c.raw("\",\n")
	}
}

// faults writes the page faults of a thread, which is announced if it has made no calls.
func (c *chrome) faults(t *reel.Thread, from, to uint64) {
	l := c.byTID[t.TID]
	if l == nil {
		if l = c.stateLane(t); l == nil {
			return
		}
		c.lane(l)
	}
	at := c.of(l).at
	c.tellFaults(t.Key, from, to, func(ns int64, x reel.Fault) {
		b := append(c.buf[:0], `{"ph":"i`...)
		b = append(b, at...)
		b = appendMicros(b, ns)
		b = append(b, `,"s":"t","cat":"callreel","name":"`...)
		b = append(append(b, faultName(x)...), `","args":{`...)
		if x.Address != 0 { // as a string: JavaScript cannot hold such a number
			b = append(strconv.AppendUint(append(b, `"address":"0x`...), x.Address, 16), '"')
		}
		c.buf = append(b, `}}`...)
		c.event()
	})
}

// taskName is a thread's name as a word: readers part the tracer's lines at spaces and equals signs.
func taskName(name string) string {
	if name == "" {
		return "thread"
	}
	word := false
	return strings.Map(func(r rune) rune {
		if word && r == ' ' {
			return '\u00a0'
		}
		word = true
		if r == '"' || r == '\\' || r == '=' || r == unicode.ReplacementChar || unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(cut(name, maxTaskName), "_"))
}

// maxTaskName is how long a name may be that is repeated in each line. The kernel's have 15.
const maxTaskName = 64

func (s *chromeSched) task(tid int) chromeTask {
	t, ok := s.tasks[tid]
	if !ok {
		t.name = "<...>"
	}
	return t
}

// line begins a line: by whom, on which processor, when, and what.
func (s *chromeSched) line(tid, cpu int, at int64, what string) []byte {
	b := s.buf[:0]
	if !s.some { // the first one is about the clock, which is that of the events
		s.some = true
		b = append(b, `"systemTraceEvents":"# tracer: nop\n<...>-0 (-----) [000] d... 0.000000: tracing_mark_write: trace_event_clock_sync: parent_ts=0\n`...)
	}
	t := s.task(tid)
	b = append(append(b, t.name...), '-')
	b = append(strconv.AppendInt(b, int64(tid), 10), " ("...)
	if t.pid > 0 {
		b = strconv.AppendInt(b, int64(t.pid), 10)
	} else {
		b = append(b, "-----"...)
	}
	b = append(b, ") ["...)
	b = append(strconv.AppendInt(b, int64(cpu), 10), "] d... "...)
	b = strconv.AppendInt(b, at/1e9, 10)
	r := at % 1e9
	b = append(b, '.')
	for d := int64(1e8); d > 0; d /= 10 {
		b = append(b, byte('0'+r/d%10))
	}
	// Readers have times in floating point, and cut what is below a nanosecond.
	return append(append(b, "5: "...), what...)
}

func (s *chromeSched) switched(at int64, cpu, from int, left leftAs, to int) {
	if from == 0 {
		left = leftRunnable
	}
	b := s.line(from, cpu, at, "sched_switch: ")
	b = s.comm(append(b, "prev_"...), "prev_", from)
	b = append(append(b, " prev_state="...), left.String()...)
	b = s.comm(append(b, " ==> next_"...), "next_", to)
	s.buf = append(b, `\n`...)
	s.raw(string(s.buf))
}

// comm appends who is meant, and no priority, which isn't known.
func (s *chromeSched) comm(b []byte, which string, tid int) []byte {
	name := s.task(tid).name
	if tid == 0 {
		name = "swapper"
	}
	b = append(append(b, "comm="...), name...)
	b = append(append(append(b, ' '), which...), "pid="...)
	b = strconv.AppendInt(b, int64(tid), 10)
	return append(append(append(b, ' '), which...), "prio=0"...)
}

func (s *chromeSched) woken(at int64, tid, waker, cpu int) {
	for _, what := range [...]string{"sched_waking: ", "sched_wakeup: "} { // for trace_processor, and for Chrome's trace viewer
		b := s.comm(s.line(waker, cpu, at, what), "", tid)
		b = append(b, " target_cpu="...)
		s.buf = append(strconv.AppendInt(b, int64(cpu), 10), `\n`...)
		s.raw(string(s.buf))
	}
}

// chromeSchedSize estimates how many bytes there will be of states.
type chromeSchedSize int64

// Bytes of what is written, of which names are a part.
const (
	chromeSwitchSize = 200
	chromeWakingSize = 240
	chromeFaultSize  = 140
)

func (s *chromeSchedSize) switched(int64, int, int, leftAs, int) { *s += chromeSwitchSize }
func (s *chromeSchedSize) woken(int64, int, int, int)            { *s += chromeWakingSize }
