package export

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/callreel/callreel/reel"
)

// chromeThread writes the events of one thread.
type chromeThread struct {
	*chrome
	thread reel.Thread
	name   string
	lanes  []chromeLane
	pairer reel.Pairer
	now    uint64 // tick of the last call that began or ended
	steps  int64  // events written, which is the time without a clock
	depth  int    // open calls, those that are too deep left out
}

// chromeLane is where one stack of the thread is drawn.
type chromeLane struct {
	lane []byte // rendered pid, tid and the start of the time
	tid  int
	last int64  // time of the last event, in nanoseconds
	open uint64 // calls that the end of the recording ended
}

// thread writes all events of a thread.
func (c *chrome) thread(thread reel.Thread) {
	t := c.newThread(thread)
	var drops []reel.Drop
	for _, d := range c.f.Drops() {
		if d.Thread == thread.Key {
			drops = append(drops, d)
		}
	}
	done := uint64(0)
	c.f.ReadThread(thread.Key, func(events []reel.Event, lost bool) bool {
		if lost {
			t.pairer.Lost()
			t.instant("events lost: the file is damaged", eventTick(events[0], t.now), "")
		}
		for len(drops) > 0 && drops[0].After <= done+uint64(len(events)) {
			// An After that is not in order comes from a damaged file.
			n := int(max(drops[0].After, done) - done)
			t.pairer.Push(events[:n])
			events, done = events[n:], done+uint64(n)
			t.dropped(drops[0])
			drops = drops[1:]
		}
		t.pairer.Push(events)
		done += uint64(len(events))
		if c.err == nil {
			c.err = c.ctx.Err()
		}
		return c.err == nil
	})
	for _, d := range drops {
		t.dropped(d)
	}
	t.finish()
}

func (c *chrome) newThread(thread reel.Thread) *chromeThread {
	t := &chromeThread{chrome: c, thread: thread, name: thread.Name}
	if t.name == "" {
		t.name = "thread"
	}
	t.pairer.OnEntry, t.pairer.OnCall = t.begin, t.end
	t.now = c.f.FirstTick()
	t.pairer.SetTime(t.now)
	return t
}

// finish ends the calls that are open.
func (t *chromeThread) finish() {
	t.pairer.Finish(t.f.EndOf(&t.thread))
	for i := range t.lanes {
		if n := t.lanes[i].open; n > 0 {
			t.instantIn(i, "calls open when the thread or the recording ended", t.now, `"calls":`+strconv.FormatUint(n, 10))
		}
	}
}

func eventTick(e reel.Event, otherwise uint64) uint64 {
	if e.Time != 0 {
		return e.Time
	}
	return otherwise
}

func (t *chromeThread) dropped(d reel.Drop) {
	tick := d.Tick
	if tick == 0 {
		tick = t.now
	}
	t.instant("events dropped: the ring was full", tick, fmt.Sprintf(`"entries":%d,"exits":%d`, d.Entries, d.Exits))
}

func (t *chromeThread) begin(call *reel.Call) {
	t.depth++
	lane := t.lane(call.Stack)
	b := append(t.buf[:0], `{"ph":"B`...)
	b = append(b, lane.lane...)
	b = t.appendTime(b, lane, call.Start)
	t.buf = append(b, t.chrome.name(call.Func).begin...)
	t.event()
}

func (t *chromeThread) end(call *reel.Call) {
	t.depth--
	lane := t.lane(call.Stack)
	if call.Flags&reel.Unfinished != 0 {
		lane.open++
	}
	b := append(t.buf[:0], `{"ph":"E`...)
	b = append(b, lane.lane...)
	b = t.appendTime(b, lane, call.End)
	b = append(b, t.chrome.name(call.Func).end...)
	if how := endOf(call.Flags); how != "" {
		b = append(b[:len(b)-1], `,"args":{"end":"`...)
		b = append(append(b, how...), `"}}`...)
	}
	t.buf = b
	t.event()
}

// endOf says how a call ended that was not seen to return, in the words of report --json.
func endOf(flags reel.CallFlags) string {
	switch {
	case flags&reel.Unfinished != 0:
		return "unfinished"
	case flags&reel.Implicit != 0:
		return "implicit"
	}
	return ""
}

// appendTime appends the time of the lane's next event.
func (t *chromeThread) appendTime(b []byte, lane *chromeLane, tick uint64) []byte {
	t.now = tick
	ns := t.f.Clock().UnixNS(tick) - t.base
	if t.untimed {
		t.steps++
		ns = t.steps * 1000
	}
	lane.last = max(ns, lane.last+1)
	return appendMicros(b, lane.last)
}

// instant writes an instant event of the whole thread, in its first lane.
func (t *chromeThread) instant(name string, tick uint64, args string) {
	t.instantIn(0, name, tick, args)
}

func (t *chromeThread) instantIn(stack int, name string, tick uint64, args string) {
	lane := t.lane(stack)
	b := append(t.buf[:0], `{"ph":"i`...)
	b = append(b, lane.lane...)
	b = t.appendTime(b, lane, tick)
	b = append(b, `,"s":"t","name":`...)
	b = appendJSON(b, name)
	b = append(b, `,"args":{`...)
	b = append(b, args...)
	t.buf = append(b, `}}`...)
	t.event()
}

// lane returns the lane of a stack; new ones are announced.
func (t *chromeThread) lane(stack int) *chromeLane {
	for len(t.lanes) <= stack {
		i := len(t.lanes)
		tid := t.thread.TID
		name := t.name
		if i > 0 || t.used[tid] {
			tid = t.extraLane()
			name = fmt.Sprintf("%s (%d)", t.name, t.thread.TID)
		}
		if i > 0 {
			name += fmt.Sprintf(", stack %d", i+1)
		}
		t.used[tid] = true
		pid := t.pid(t.thread)
		t.metadata("thread_name", pid, tid, name)
		start := append(appendLane(nil, pid, tid), `,"ts":`...)
		t.lanes = append(t.lanes, chromeLane{lane: slices.Clip(start), tid: tid, last: -1})
	}
	return &t.lanes[stack]
}

// extraLane returns a lane number that is no thread's ID.
func (c *chrome) extraLane() int {
	if c.next == 0 {
		c.next = firstExtraLane
		for _, t := range c.f.Threads() {
			c.next = max(c.next, t.TID+1)
		}
	}
	c.next++
	return c.next - 1
}
