package export

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/callreel/callreel/reel"
)

// Speedscope writes the reel in speedscope's own file format (its
// file-format-schema.json), "evented": a profile for each lane, which is a stack of a
// thread or a goroutine, with times in nanoseconds since the recording started.
// Without a clock each event takes one unit: only the order means something.
// As speedscope does not show calls that take no time, an event that falls on the
// nanosecond of the one before is written one nanosecond later.
//
// Of reels with states of threads there are two more profiles for each stack that has
// any: of the time in its calls that the thread was running (", CPU time"), and that it was
// blocked. Their axes are that time, without what is between, and they leave out
// calls that have none of it. [Options.Weight] asks for one of these alone.
//
// The format has neither instants nor arguments. How many events were dropped, and
// how many calls were open at the end or ended without returning, is in the
// name of the profile; what is damaged, what share is recorded where functions were off, and what a dump was made for, in that of the file. Goroutines' and further stacks' events are
// kept in a temporary file, a fifth as large as the result, until their turn comes, and so are those of the other profiles.
func Speedscope(ctx context.Context, f *reel.File, w io.Writer, opt Options) error {
	s := &speedscope{walk: newWalk(ctx, f, opt), w: bufio.NewWriterSize(w, 1<<18), frames: make(map[uint32]int)}
	s.gap = 1
	s.wall = opt.Weight.state() == reel.StateUnknown
	switch {
	case !s.weighed():
	case !s.wall:
		s.weights = []Weight{opt.Weight}
	case opt.Weight == WeightDefault:
		s.weights = []Weight{WeightCPU, WeightBlocked}
	}
	s.clocks = len(s.weights) > 0
	s.spool.dir = opt.TempDir
	s.raw(`{"$schema":"https://www.speedscope.app/file-format-schema.json","profiles":[`)
	s.all(s, false)
	s.spooled()
	s.foot()
	s.err = errors.Join(s.err, s.spool.close())
	if s.err == nil {
		s.err = s.w.Flush()
	}
	if s.err != nil {
		return fmt.Errorf("export: %s to speedscope: %w", f.Name(), s.err)
	}
	return nil
}

// speedscope is one export.
type speedscope struct {
	*walk
	w        *bufio.Writer
	spool    spool
	lanes    []*speedscopeLane // whose events are in the spool
	direct   *speedscopeLane   // the one that is being written, or nil
	wall     bool              // there are profiles of the wall time
	weights  []Weight          // of which there are profiles, too
	profiles int
	frames   map[uint32]int // by function ID, in the order of order
	order    []uint32
	others   int // frame of functions beyond maxNames, or 0
	buf      []byte
}

// speedscopeLane is what there is to be said of a lane.
type speedscopeLane struct {
	*lane
	some     bool
	implicit uint64
	dropped  uint64
	spool    spoolLane
	at       int64 // of the last event in the spool
	weighed  []speedscopeWeighed
	// Of a thread's, or goroutine's, first lane: the lane of the last event, and what had been done up to it.
	on  *speedscopeLane
	did reel.StateTimes
}

func (s *speedscope) raw(text string) {
	if s.err == nil {
		_, s.err = s.w.WriteString(text)
	}
}

// lane begins a profile if it can be written at once: that of a thread's first stack, unless threads come together.
func (s *speedscope) lane(l *lane) {
	d := &speedscopeLane{lane: l}
	l.data = d
	if l.runs {
		return
	}
	if l.stack == 0 && !s.f.Header().Goroutines {
		s.finish()
		s.direct = d
		if s.wall {
			s.profile()
		}
		return
	}
	s.lanes = append(s.lanes, d)
}

// profile begins a profile, whose name comes at its end.
func (s *speedscope) profile() {
	if s.profiles > 0 {
		s.raw(",")
	}
	s.profiles++
	unit := "nanoseconds"
	if s.untimed {
		unit = "none"
	}
	s.raw("\n" + `{"type":"evented","unit":"` + unit + `","startValue":0,"events":[`)
}

// finish ends the profile that is being written.
func (s *speedscope) finish() {
	if s.direct == nil {
		return
	}
	d := s.direct
	s.direct = nil
	if s.wall {
		what := ""
		if len(d.weighed) > 0 {
			what = ", wall time"
		}
		s.ended(s.value(d.last), d.title(what))
	}
	s.weighedProfiles(d)
}

// ended ends a profile.
func (s *speedscope) ended(at int64, title string) {
	b := append(s.buf[:0], `],"endValue":`...)
	b = strconv.AppendInt(b, at, 10)
	b = appendJSON(append(b, `,"name":`...), title)
	s.raw(string(append(b, '}')))
	s.buf = b
}

// title is the name of a profile, with what it is of and what isn't as it seems.
func (d *speedscopeLane) title(what string) string {
	name := cut(d.name, maxName)
	if d.main == d.lane && d.goroutine == 0 && d.tid == d.thread.TID {
		name = fmt.Sprintf("%s (%d)", name, d.tid)
	}
	name += what
	for _, n := range []struct {
		count     uint64
		what, how string
	}{{d.dropped, "event", "dropped"}, {d.open, "call", "open at the end"}, {d.implicit, "call", "ended without returning"}} {
		switch {
		case n.count == 1:
			name += ", 1 " + n.what + " " + n.how
		case n.count > 1:
			name += fmt.Sprintf(", %d %ss %s", n.count, n.what, n.how)
		}
	}
	return name
}

func (s *speedscope) begin(l *lane, at int64, call *reel.Call) {
	s.weighBegin(l, call)
	s.event(l.data.(*speedscopeLane), at, s.frame(call.Func), false)
}

func (s *speedscope) end(l *lane, at int64, call *reel.Call) {
	d := l.data.(*speedscopeLane)
	if call.Flags&(reel.Implicit|reel.Unfinished) == reel.Implicit {
		d.implicit++
	}
	s.weighEnd(l)
	s.event(d, at, s.frame(call.Func), true)
}

// event writes an event, now or into the spool.
func (s *speedscope) event(d *speedscopeLane, at int64, frame int, end bool) {
	if !s.wall {
		return
	}
	if d == s.direct {
		s.write(d, s.value(at), frame, end)
		return
	}
	kind := uint64(frame) << 1
	if end {
		kind |= 1
	}
	if s.err == nil {
		s.err = s.spool.add(&d.spool, kind, uint64(at-d.at))
	}
	d.at = at
}

// write writes an event at a time in the profile's unit.
func (s *speedscope) write(d *speedscopeLane, at int64, frame int, end bool) {
	b := s.buf[:0]
	if d.some {
		b = append(b, ',')
	}
	d.some = true
	if end {
		b = append(b, `{"type":"C","frame":`...)
	} else {
		b = append(b, `{"type":"O","frame":`...)
	}
	b = strconv.AppendInt(b, int64(frame), 10)
	b = append(b, `,"at":`...)
	b = strconv.AppendInt(b, at, 10)
	s.buf = append(b, '}')
	if s.err == nil {
		_, s.err = s.w.Write(s.buf)
	}
}

// value is a time in the unit of the file.
func (s *speedscope) value(at int64) int64 {
	if s.untimed {
		return at / 1000
	}
	return at
}

// spooled writes the profiles whose events are in the spool.
func (s *speedscope) spooled() {
	s.finish()
	for _, d := range s.lanes {
		if s.failed() {
			return
		}
		s.direct = d
		if s.wall {
			s.profile()
			s.fromSpool(d, &d.spool, s.value)
		}
		s.finish()
	}
}

// fromSpool writes events of a profile.
func (s *speedscope) fromSpool(d *speedscopeLane, from *spoolLane, value func(at int64) int64) {
	at := int64(0)
	d.some = false
	err := s.spool.read(from, func(kind, delta uint64) bool {
		at += int64(delta)
		s.write(d, value(at), int(kind>>1), kind&1 != 0)
		return s.err == nil
	})
	s.err = errors.Join(s.err, err)
}

func (s *speedscope) note(l *lane, _ int64, n note) {
	if d := l.data.(*speedscopeLane); n.kind == noteDropped {
		d.dropped += n.entries + n.exits
	}
}

func (s *speedscope) switched(_, _ *lane, _ int64)           {}
func (s *speedscope) run(*lane, goroutineRun, *goroutineRun) {}

// frame is the number of a function's frame.
func (s *speedscope) frame(id uint32) int {
	n, ok := s.frames[id]
	if ok {
		return n
	}
	if _, known := s.f.Function(id); !known && len(s.order) >= maxNames { // only a damaged reel has so many
		if s.others == 0 {
			s.others = s.addFrame(0)
		}
		return s.others
	}
	n = s.addFrame(id)
	s.frames[id] = n
	return n
}

func (s *speedscope) addFrame(id uint32) int {
	s.order = append(s.order, id)
	return len(s.order) - 1
}

// foot ends the file with the frames, and what could not be read.
func (s *speedscope) foot() {
	s.raw("\n],\n" + `"shared":{"frames":[`)
	for k, id := range s.order {
		name, module := s.functionName(id)
		if k > 0 && k == s.others {
			name, module = otherFunctions, ""
		}
		b := s.buf[:0]
		if k > 0 {
			b = append(b, ',')
		}
		b = appendJSON(append(b, "\n{\"name\":"...), name)
		file, line := s.line(id)
		if file == "" {
			file = module
		}
		if file != "" {
			b = appendJSON(append(b, `,"file":`...), file)
		}
		if line != 0 {
			b = strconv.AppendUint(append(b, `,"line":`...), uint64(line), 10)
		}
		s.raw(string(append(b, '}')))
		s.buf = b
	}
	name := s.processName()
	if s.placed != nil && len(s.placed.dump.Triggers) > 0 {
		name += ", " + triggerName(&s.placed.dump.Triggers[0])
	}
	if text := Unrecorded(s.f); text != "" {
		name += ", " + text
	}
	if n := len(s.f.Damage()); n > 0 {
		name += fmt.Sprintf(", damaged in %d places: %v", n, s.f.Damage()[0])
	}
	b := appendJSON(append(s.buf[:0], "\n]},\n\"activeProfileIndex\":0,\"exporter\":"...), s.f.Header().Tool)
	b = appendJSON(append(b, `,"name":`...), name)
	s.raw(string(append(b, "}\n"...)))
}
