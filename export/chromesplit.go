package export

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/callreel/callreel/reel"
)

// ChromeSplit writes the reel as [Chrome] does, into several files of about size
// bytes each (at least 64 KiB), for viewers that can't load it in one. Each holds
// all threads for a stretch of time, follows on the one before, and can be loaded
// alone: a call that is open at a border ends there with the argument "end":
// "continues" and begins again in the next file, with the argument "continued".
// Only where the open calls themselves take more than half of size is a file
// larger. next makes the file with that number, from 1; it is closed when it is
// complete.
func ChromeSplit(ctx context.Context, f *reel.File, size int64, next func(part int) (io.WriteCloser, error), opt Options) error {
	c := newChrome(ctx, f, opt)
	c.split = &chromeSplit{size: max(size, 64<<10), next: next, open: make(map[*lane]struct{}), async: make(map[*asyncTrack]struct{})}
	if !c.untimed && f.HasStates() {
		c.split.sched = c.newSched(&c.split.lines, 0, math.MaxUint64)
		c.split.sched.fault = func(reel.Fault) { c.split.lines += chromeFaultSize }
	}
	c.split.start(c)
	c.all(c, true)
	if c.marks != nil {
		c.marks.until(math.MaxUint64, c.markDue)
		c.marks.finish()
	}
	c.split.last = true
	if c.w != nil {
		c.foot()
	}
	return errors.Join(c.done(), c.split.close())
}

// chromeSplit is what an export into several files is at.
type chromeSplit struct {
	size     int64
	next     func(part int) (io.WriteCloser, error)
	file     io.WriteCloser
	part     int
	last     bool
	written  int64 // bytes of this file
	reopened int64 // of them for calls that go on in it
	closing  int64 // at most so many are needed to end what is open
	from     int64 // where the file begins, in nanoseconds
	open     map[*lane]struct{}
	async    map[*asyncTrack]struct{} // on which a span is open
	sched    *sched                   // tells of states as the calls go on, into size
	lines    chromeSchedSize
}

// room for the end of a call besides its name and lane, and for the end of a file.
const (
	chromeEndSize  = 64
	chromeTailSize = 4 << 10
)

// start begins the next file.
func (s *chromeSplit) start(c *chrome) {
	if c.err != nil {
		return
	}
	s.part++
	file, err := s.next(s.part)
	if err != nil {
		c.err = err
		return
	}
	s.file, s.written = file, 0
	if c.w == nil {
		c.w = bufio.NewWriterSize(file, chromeBuffer)
	} else {
		c.w.Reset(file)
	}
	c.head()
}

func (s *chromeSplit) close() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}

// due says whether a new file is to be begun before so many bytes more.
func (s *chromeSplit) due(more int64) bool {
	return s.written+s.closing+int64(s.lines)+more+chromeTailSize > s.size && s.written+int64(s.lines)-s.reopened >= s.size/2
}

// has says whether a call is open on the lane in this file, and will stay so.
func (s *chromeSplit) has(l *lane) bool {
	return len(l.data.(*chromeLane).calls) > 0 && !s.due(maxName)
}

// begin takes note of a call, which may be the first of a new file.
func (s *chromeSplit) begin(c *chrome, l *lane, at int64, n chromeName, call *reel.Call) int64 {
	if c.marks != nil {
		part := s.part
		if c.marks.until(call.Start, c.markDue); s.part != part {
			l.last++
			at = l.last
		}
	}
	if c.rates != nil {
		c.rates.until(c.walk, call.Start, c.counters)
	}
	if s.sched != nil {
		s.sched.until(call.Start)
	}
	d := l.data.(*chromeLane)
	end := s.endSize(d, n)
	if s.due(2 * end) {
		s.cut(c, at, call.Start)
		l.last = max(at, l.last+1)
		at = l.last
	}
	if len(d.calls) == 0 {
		s.open[l] = struct{}{}
	}
	d.calls = append(d.calls, call.Func)
	s.closing += end
	return at
}

func (s *chromeSplit) endSize(d *chromeLane, n chromeName) int64 {
	return int64(len(d.at)+len(n.end)) + chromeEndSize
}

func (s *chromeSplit) end(l *lane, n chromeName) {
	d := l.data.(*chromeLane)
	d.calls = d.calls[:len(d.calls)-1]
	s.closing -= s.endSize(d, n)
	if len(d.calls) == 0 {
		delete(s.open, l)
	}
}

// cut ends the file at a time, which is that of a tick, and begins the next.
func (s *chromeSplit) cut(c *chrome, at int64, tick uint64) {
	lanes := slices.SortedFunc(maps.Keys(s.open), func(a, b *lane) int { return cmp.Compare(a.tid, b.tid) })
	step := func(l *lane) int64 {
		l.last++
		if !c.untimed {
			l.last = max(l.last, at)
		}
		return l.last
	}
	for _, l := range lanes {
		calls := l.data.(*chromeLane).calls
		for k := len(calls) - 1; k >= 0; k-- {
			c.ended(l, step(l), c.name(calls[k]), "continues")
		}
		spans := l.data.(*chromeLane).spans
		for k := len(spans) - 1; k >= 0; k-- {
			c.ended(l, step(l), spans[k], "continues")
		}
	}
	async := slices.SortedFunc(maps.Keys(s.async), func(a, b *asyncTrack) int { return cmp.Compare(a.number, b.number) })
	for _, t := range async {
		c.asyncBorder("e", t, at, `"end":"continues"`)
	}
	c.tail(tick)
	if c.err == nil {
		c.err = c.w.Flush()
	}
	c.err = errors.Join(c.err, s.close())
	s.from = at
	s.start(c)
	for _, l := range lanes {
		for _, id := range l.data.(*chromeLane).calls {
			c.reopened(l, step(l), c.name(id))
		}
		for _, n := range l.data.(*chromeLane).spans {
			c.reopened(l, step(l), n)
		}
	}
	for _, t := range async {
		c.asyncBorder("b", t, at, `"continued":true`)
	}
	if c.marks != nil {
		c.marks.least = at
	}
	s.reopened = s.written
	if s.sched != nil { // the states that go on are told again
		s.lines = chromeSchedSize(2 * chromeSwitchSize * len(s.sched.going))
		s.reopened += int64(s.lines)
	}
}

// reopened writes that a call goes on in this file.
func (c *chrome) reopened(l *lane, at int64, n chromeName) {
	if c.err != nil {
		return
	}
	lane := c.of(l).at // first: it may write, too
	b := append(c.buf[:0], `{"ph":"B`...)
	b = append(b, lane...)
	b = appendMicros(b, at)
	b = append(b, n.begin[:len(n.begin)-1]...)
	c.buf = append(b, `,"args":{"continued":true}}`...)
	c.event()
}
