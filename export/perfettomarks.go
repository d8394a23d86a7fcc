package export

import "math"

// perfettoCounter is a program's counter.
type perfettoCounter struct {
	pid   int
	title string
}

// tellMarks writes what markers said, in a sequence of its own. Threads that have made no calls are described before: readers take the last
// thread that is described in a sequence for that of its events.
func (p *perfetto) tellMarks() {
	if p.marks == nil {
		return
	}
	p.startSequence(0)
	for _, key := range sortedKeys(p.marks.marking) {
		t := p.marks.of[key]
		if p.parents[keyOf(key, 0)] != 0 || p.byTID[t.TID] != nil {
			continue
		}
		if l := p.stateLane(&t); l != nil {
			p.describe(l)
			p.parents[keyOf(key, 0)] = l.data.(uint64)
		}
	}
	p.startSequence(0)
	p.marks.all()
}

// markLane describes a track below that of the thread, or the goroutine.
func (p *perfetto) markLane(l *markLane) {
	parent, name := p.parents[keyOf(l.thread.Key, l.goroutine)], "markers"
	switch {
	case parent == 0:
		parent, name = p.trackOf(l.pid), l.name
	case l.pair != pairKey{}:
		name += ", " + l.pair.pair
	}
	l.data = p.child(parent, name)
	p.part.number(trackMerge, mergeNever)
	p.descriptor()
}

// child begins the description of a track.
func (p *perfetto) child(parent uint64, name string) uint64 {
	p.tracks++
	p.part = p.part[:0]
	p.part.number(trackUUID, p.tracks)
	p.part.number(trackParent, parent)
	p.part.text(trackName, validText(cut(name, maxName)))
	return p.tracks
}

// trackOf is the track of a process.
func (p *perfetto) trackOf(pid int) uint64 {
	if t, ok := p.processTrack[pid]; ok {
		return t
	}
	return p.processTrack[p.f.Header().PID]
}

// titled begins an event of a marker. What it is the first to need is in p.part.
func (p *perfetto) titled(track, kind uint64, x *said) {
	p.part = p.part[:0]
	var n perfettoName
	if x.marker != 0 {
		n = p.title(x)
	}
	p.event = p.event[:0]
	p.event.number(eventType, kind)
	p.event.number(eventTrack, track)
	if n.name != 0 {
		p.event.number(eventNameIID, n.name)
		p.event.number(eventCategoryIID, n.cat)
	} else {
		p.event.text(eventCategory, validText(x.category))
		p.event.text(eventName, validText(x.title))
	}
}

// title is a marker's title and category as interned.
func (p *perfetto) title(x *said) perfettoName {
	n, ok := p.seq.names[x.marker]
	if ok {
		return n
	}
	if len(p.seq.names) >= p.names {
		clear(p.seq.names)
		clear(p.seq.cats)
		p.startState(false)
	}
	n.name = uint64(len(p.seq.names)) + 1
	p.intern(internedName, n.name, x.title)
	if n.cat, ok = p.seq.cats[x.category]; !ok {
		n.cat = uint64(len(p.seq.cats)) + 1
		p.seq.cats[x.category] = n.cat
		p.intern(internedCategory, n.cat, x.category)
	}
	p.seq.names[x.marker] = n
	return n
}

// mention annotates an event with what it says.
func (p *perfetto) mention(x *said) {
	p.annotate(x.values)
	if x.unstarted {
		p.inner = p.inner[:0]
		p.inner.text(annotationName, "unstarted")
		p.inner.always(annotationBool, 1)
		p.event.bytes(eventAnnotation, p.inner)
	}
	if x.end != "" {
		p.text("end", x.end)
	}
	if x.by != "" {
		p.text("by", x.by)
	}
}

// marked writes an event of a marker.
func (p *perfetto) marked(track any, kind uint64, at int64, x *said) {
	p.titled(track.(uint64), kind, x)
	p.mention(x)
	p.emitWith(at, p.part)
}

// markEnd writes the end of what was begun last on a track.
func (p *perfetto) markEnd(track any, at int64, x *said) {
	p.event = p.event[:0]
	p.event.number(eventType, typeEnd)
	p.event.number(eventTrack, track.(uint64))
	p.mention(x)
	p.emit(at)
}

func (p *perfetto) spanBegin(l *markLane, at int64, x *said) { p.marked(l.data, typeBegin, at, x) }
func (p *perfetto) spanEnd(l *markLane, at int64, x *said)   { p.markEnd(l.data, at, x) }
func (p *perfetto) instant(l *markLane, at int64, x *said)   { p.marked(l.data, typeInstant, at, x) }

func (p *perfetto) asyncBegin(t *asyncTrack, at int64, x *said) { p.marked(t.data, typeBegin, at, x) }
func (p *perfetto) asyncStep(t *asyncTrack, at int64, x *said)  { p.marked(t.data, typeInstant, at, x) }
func (p *perfetto) asyncEnd(t *asyncTrack, at int64, x *said)   { p.markEnd(t.data, at, x) }

// markTrack describes a track of asynchronous spans. Viewers show those of one name together.
func (p *perfetto) markTrack(t *asyncTrack) {
	t.data = p.child(p.trackOf(t.key.pid), t.key.title)
	p.descriptor()
}

func (p *perfetto) flowOut(l *lane, at int64, x *said, _ bool) any {
	p.flows++
	p.through(l, at, x, p.flows)
	return p.flows
}

func (p *perfetto) flowIn(l *lane, at int64, x *said, from any, _ bool) {
	p.through(l, at, x, from.(uint64))
}

// through writes an instant that a flow leads through.
func (p *perfetto) through(l *lane, at int64, x *said, flow uint64) {
	p.titled(l.data.(uint64), typeInstant, x)
	p.event.fixed(eventFlow, flow)
	p.mention(x)
	p.emitWith(at, p.part)
}

// counter writes a counter's value.
func (p *perfetto) counter(pid int, at int64, x *said, v number) {
	key := perfettoCounter{pid, x.title}
	track, ok := p.counterTrack[key]
	if !ok {
		if len(p.counterTrack) >= maxCounters {
			clear(p.counterTrack)
		}
		track = p.child(p.trackOf(pid), x.title)
		p.part.bytes(trackCounter, nil)
		p.descriptor()
		p.counterTrack[key] = track
	}
	p.event = p.event[:0]
	p.event.number(eventType, typeCounter)
	p.event.number(eventTrack, track)
	if v.whole {
		p.event.always(eventCounter, uint64(v.int))
	} else {
		p.event.fixed(eventDouble, math.Float64bits(v.float))
	}
	p.emit(at)
}
