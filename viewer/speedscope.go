package viewer

import (
	"bufio"
	"fmt"
	"net/http"
	"strconv"

	"github.com/callreel/callreel/internal/safejson"
	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/reel/timeline"
)

// maxSpeedscope is how many calls a speedscope file has at most: its viewer takes seconds for a million. The file says where it
// ends.
const maxSpeedscope = 1_000_000

// speedscope is api/speedscope: the calls of a range as an evented speedscope file (speedscope's file-format-spec.ts), a profile
// for each stack. It is written as it is replayed.
func (r *recording) speedscope(w http.ResponseWriter, q *query) error {
	tl, err := r.wait(q.ctx)
	if err != nil {
		return err
	}
	from, to := q.interval()
	all := tl.Lanes()
	lanes := q.lanes(len(all))
	if q.err != nil {
		return q.err
	}
	if lanes == nil {
		for _, l := range all {
			lanes = append(lanes, l.ID)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Disposition", `attachment; filename="callreel.speedscope.json"`)
	s := &speedscopeWriter{tl: tl, w: bufio.NewWriterSize(w, 64<<10), from: from, to: max(from, min(to, tl.Duration())), until: to, frames: map[uint32]int{}, budget: maxSpeedscope}
	s.text(`{"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":"callreel","profiles":[`)
	for _, lane := range lanes {
		if err := s.lane(q, &all[lane]); err != nil {
			return err
		}
	}
	return s.finish(r.name)
}

// speedscopeWriter writes a speedscope file.
type speedscopeWriter struct {
	tl       *timeline.Timeline
	w        *bufio.Writer
	from, to uint64         // nanoseconds
	until    uint64         // to, or beyond the recording's end, where calls may begin
	frames   map[uint32]int // index of each function's frame
	order    []uint32       // functions by that index
	profiles int
	budget   int // calls that may still be written

	cut bool // there were more

	open   []uint32 // functions of the profile's open calls
	begun  bool     // the profile is
	events int      // of the profile
	last   uint64   // time of the last event, nanoseconds
	buf    []byte
	err    error
}

func (s *speedscopeWriter) text(text string) {
	if s.err == nil {
		_, s.err = s.w.WriteString(text)
	}
}

// lane writes a profile for each stack of a lane. Speedscope wants the events of one together, so that the lane is replayed for
// each; hardly any has more than one.
func (s *speedscopeWriter) lane(q *query, l *timeline.Lane) error {
	for stack, last := 0, 0; stack <= last && !s.cut; stack++ {
		s.begun, s.open, s.events, s.last = false, s.open[:0], 0, s.from
		err := s.tl.Visit(q.ctx, []uint32{l.ID}, s.from, s.until, timeline.Visitor{
			Enter: func(_ uint32, c *reel.Call) {
				last = max(last, c.Stack)
				if c.Stack == stack {
					s.enter(l, c)
				}
			},
			Leave: func(_ uint32, c *reel.Call) bool {
				if c.Stack == stack && !s.cut {
					s.leave(min(s.tl.NS(c.End), s.to))
				}
				return s.err == nil && !s.cut
			},
		})
		if err == nil {
			err = s.err
		}
		if err != nil {
			return err
		}
		if s.begun {
			s.end()
		}
	}
	return nil
}

// enter opens a call, unless there were too many.
func (s *speedscopeWriter) enter(l *timeline.Lane, c *reel.Call) {
	if s.budget == 0 {
		s.cut = true
	}
	if s.cut {
		return
	}
	if !s.begun {
		s.begin(l, c.Stack)
	}
	s.budget--
	s.open = append(s.open, c.Func)
	s.event('O', c.Func, max(s.tl.NS(c.Start), s.from))
}

// leave ends the innermost call.
func (s *speedscopeWriter) leave(at uint64) {
	if n := len(s.open); n > 0 {
		s.event('C', s.open[n-1], at)
		s.open = s.open[:n-1]
	}
}

// begin begins a profile.
func (s *speedscopeWriter) begin(l *timeline.Lane, stack int) {
	s.begun = true
	if s.profiles++; s.profiles > 1 {
		s.text(",")
	}
	name := fmt.Sprintf("%s (%d)", cut(l.Name, maxLaneName), l.TID)
	if l.Goroutine != 0 {
		name = fmt.Sprintf("goroutine %d", l.Goroutine)
	}
	if stack > 0 {
		name += fmt.Sprintf(", stack %d", stack)
	}
	s.text("\n" + `{"type":"evented","unit":"nanoseconds","name":` + s.quoted(name) + `,"startValue":` + strconv.FormatUint(s.from, 10) + `,"events":[`)
}

// event writes an event. Of one profile they must be in order.
func (s *speedscopeWriter) event(kind byte, function uint32, at uint64) {
	s.last = max(s.last, at)
	frame, known := s.frames[function]
	if !known {
		frame = len(s.order)
		s.frames[function] = frame
		s.order = append(s.order, function)
	}
	b := s.buf[:0]
	if s.events++; s.events > 1 {
		b = append(b, ',')
	}
	b = append(append(append(b, `{"type":"`...), kind), `","frame":`...)
	b = append(strconv.AppendInt(b, int64(frame), 10), `,"at":`...)
	s.buf = append(strconv.AppendUint(b, s.last, 10), '}')
	if s.err == nil {
		_, s.err = s.w.Write(s.buf)
	}
}

// end ends a profile, and where it was cut the calls that are open.
func (s *speedscopeWriter) end() {
	for len(s.open) > 0 {
		s.leave(s.last)
	}
	end := s.to
	if s.cut {
		end = s.last
	}
	s.text(`],"endValue":` + strconv.FormatUint(end, 10) + "}")
}

// finish writes what the profiles have in common.
func (s *speedscopeWriter) finish(name string) error {
	if s.cut {
		name += fmt.Sprintf(" (only the first %d calls: choose a shorter range)", maxSpeedscope)
	}
	s.text("],\n" + `"name":` + s.quoted(name) + `,"shared":{"frames":[`)
	naming := newNaming(s.tl.File())
	for i, id := range s.order {
		if i > 0 {
			s.text(",")
		}
		name, module := naming.of(id)
		s.text("\n" + `{"name":` + s.quoted(name) + `,"file":` + s.quoted(module) + "}")
	}
	s.text("]}}\n")
	if s.err == nil {
		s.err = s.w.Flush()
	}
	return s.err
}

// quoted is a string as JSON.
func (s *speedscopeWriter) quoted(text string) string {
	b, err := safejson.Marshal(text)
	if err != nil { // of a string there is none
		return `""`
	}
	return string(b)
}
