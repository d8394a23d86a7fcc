package export

import (
	"strconv"
)

// chromeMarkSize is about what an event of a marker takes.
const chromeMarkSize = 512

// markDue begins a new file before a mark, if it is time.
func (c *chrome) markDue(tick uint64) {
	if c.split.due(chromeMarkSize) {
		if c.rates != nil {
			c.rates.until(c.walk, tick, c.counters)
		}
		c.split.cut(c, max(c.nanoseconds(tick), 0), tick)
	}
}

func (c *chrome) markLane(l *markLane) { c.lane(&l.lane) }

// titled is the title of an event, rendered.
func (c *chrome) titled(x *said) chromeName {
	if n, ok := c.said[x.marker]; ok && x.marker != 0 {
		return n
	}
	n := chromeName{end: append(appendJSON([]byte(`,"name":`), x.title), '}')}
	n.begin = append(appendJSON([]byte(`,"cat":`), x.category), n.end...)
	if x.marker != 0 && len(c.said) < maxNames {
		if c.said == nil {
			c.said = make(map[uint32]chromeName)
		}
		c.said[x.marker] = n
	}
	return n
}

// markEvent writes an event of a lane of markers; of says more of it, and ends as names do.
func (c *chrome) markEvent(phase string, l *lane, at int64, of []byte, x *said) {
	lane := c.of(l).at // first: it may write, too
	b := append(append(c.buf[:0], `{"ph":"`...), phase...)
	b = append(b, lane...)
	b = appendMicros(b, at)
	b = append(b, of[:len(of)-1]...)
	c.buf = append(appendSaid(b, x), '}')
	c.event()
}

// appendSaid appends the arguments of an event, if there are any.
func appendSaid(b []byte, x *said) []byte {
	const args = `,"args":{`
	n := len(b)
	b = append(b, args...)
	member := func(name string) {
		if len(b) > n+len(args) {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), name...), `":`...)
	}
	b = appendValues(b, x.values)
	if x.unstarted {
		member("unstarted")
		b = append(b, "true"...)
	}
	if x.end != "" {
		member("end")
		b = appendJSON(b, x.end)
	}
	if x.by != "" {
		member("by")
		b = appendJSON(b, cut(x.by, maxName))
	}
	if len(b) == n+len(args) {
		return b[:n]
	}
	return append(b, '}')
}

func (c *chrome) spanBegin(l *markLane, at int64, x *said) {
	n := c.titled(x)
	if s := c.split; s != nil {
		d := c.of(&l.lane)
		if len(d.spans) == 0 {
			s.open[&l.lane] = struct{}{}
		}
		d.spans = append(d.spans, n)
		s.closing += s.endSize(d, n)
	}
	c.markEvent("B", &l.lane, at, n.begin, x)
}

func (c *chrome) spanEnd(l *markLane, at int64, x *said) {
	n := c.titled(x)
	if s := c.split; s != nil {
		d := c.of(&l.lane)
		s.closing -= s.endSize(d, d.spans[len(d.spans)-1])
		d.spans = d.spans[:len(d.spans)-1]
		if len(d.spans) == 0 {
			delete(s.open, &l.lane)
		}
	}
	c.markEvent("E", &l.lane, at, n.end, x)
}

func (c *chrome) instant(l *markLane, at int64, x *said) { c.instantIn(&l.lane, at, x) }

func (c *chrome) instantIn(l *lane, at int64, x *said) {
	b := append([]byte(`,"s":"t"`), c.titled(x).begin...)
	c.markEvent("i", l, at, b, x)
}

// flowEnd writes what an arrow begins or ends at.
func (c *chrome) flowEnd(l *lane, at int64, x *said, alone bool) {
	if !alone {
		c.instantIn(l, at, x)
		return
	}
	n := c.titled(x)
	c.markEvent("B", l, at, n.begin, x)
	l.last++
	c.markEvent("E", l, l.last, n.end, &said{})
}

// chromeFlow is where a flow has left.
type chromeFlow struct {
	lane *lane
	at   int64
}

func (c *chrome) flowOut(l *lane, at int64, x *said, alone bool) any {
	c.flowEnd(l, at, x, alone)
	return chromeFlow{l, at}
}

func (c *chrome) flowIn(l *lane, at int64, x *said, from any, alone bool) {
	c.flowEnd(l, at, x, alone)
	out := from.(chromeFlow)
	if c.split != nil && out.at < c.split.from {
		return // where it leaves is in a file before
	}
	c.flows++
	of := append(strconv.AppendUint([]byte(`,"id":`), c.flows, 10), c.titled(x).begin...)
	c.markEvent("s", out.lane, out.at, of, &said{})
	of = append(of[:len(of)-1], `,"bp":"e"}`...)
	c.markEvent("f", l, at, of, &said{})
}

// chromeTrack is what the events of asynchronous spans have in common: rendered pid, tid, id and category; the title; and the start of the time.
type chromeTrack struct{ at, title []byte }

// size is about what an event takes that ends a span.
func (t chromeTrack) size() int64 { return int64(len(t.at)+len(t.title)) + chromeEndSize }

func (c *chrome) markTrack(t *asyncTrack) {
	b := appendLane(nil, t.key.pid, c.tid)
	// An ID of the process: else viewers draw them apart from all processes.
	b = append(strconv.AppendUint(append(b, `,"id2":{"local":"0x`...), t.number, 16), `"}`...)
	b = appendJSON(append(b, `,"cat":`...), t.key.category)
	t.data = chromeTrack{at: append(b, `,"ts":`...), title: appendJSON([]byte(`,"name":`), t.key.title)}
}

// asyncStart begins an event.
func (c *chrome) asyncStart(phase string, t *asyncTrack, at int64, title []byte) []byte {
	b := append(append(c.buf[:0], `{"ph":"`...), phase...)
	b = append(b, t.data.(chromeTrack).at...)
	return append(appendMicros(b, at), title...)
}

func (c *chrome) asyncEvent(phase string, t *asyncTrack, at int64, x *said) {
	title := t.data.(chromeTrack).title
	if phase == "n" {
		title = appendJSON([]byte(`,"name":`), x.title)
	}
	c.buf = append(appendSaid(c.asyncStart(phase, t, at, title), x), '}')
	c.event()
}

func (c *chrome) asyncBegin(t *asyncTrack, at int64, x *said) {
	if s := c.split; s != nil {
		s.async[t] = struct{}{}
		s.closing += t.data.(chromeTrack).size()
	}
	c.asyncEvent("b", t, at, x)
}

func (c *chrome) asyncStep(t *asyncTrack, at int64, x *said) { c.asyncEvent("n", t, at, x) }

func (c *chrome) asyncEnd(t *asyncTrack, at int64, x *said) {
	if s := c.split; s != nil {
		delete(s.async, t)
		s.closing -= t.data.(chromeTrack).size()
	}
	c.asyncEvent("e", t, at, x)
}

// asyncBorder ends a span where a file ends, or begins it again in the next; arg says so.
func (c *chrome) asyncBorder(phase string, t *asyncTrack, at int64, arg string) {
	b := append(c.asyncStart(phase, t, at, t.data.(chromeTrack).title), `,"args":{`...)
	c.buf = append(append(b, arg...), `}}`...)
	c.event()
}

func (c *chrome) counter(pid int, at int64, x *said, v number) {
	b := appendLane(append(c.buf[:0], `{"ph":"C`...), pid, c.tid)
	b = appendMicros(append(b, `,"ts":`...), at)
	n := c.titled(x).begin
	b = append(append(b, n[:len(n)-1]...), `,"args":{"value":`...)
	if v.whole {
		b = strconv.AppendInt(b, v.int, 10)
	} else {
		b = strconv.AppendFloat(b, v.float, 'g', -1, 64)
	}
	c.buf = append(b, `}}`...)
	c.event()
}

var _ markSink = (*chrome)(nil)
