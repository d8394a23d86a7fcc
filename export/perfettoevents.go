package export

import (
	"encoding/binary"
	"fmt"

	"github.com/callreel/callreel/reel"
)

// Fields and values of the messages, as in protos/perfetto/trace.
const (
	tracePacket = 1

	packetTimestamp     = 8
	packetClockID       = 58
	packetSequence      = 10
	packetInterned      = 12
	packetFlags         = 13
	packetEvent         = 11
	packetTrack         = 60
	packetClockSnapshot = 6
	packetDefaults      = 59
	packetFirst         = 87

	flagCleared = 1
	flagNeeds   = 2

	defaultsClockID = 58

	snapshotClocks   = 1
	clockID          = 1
	clockTimestamp   = 2
	clockIncremental = 3
	clockRealtime    = 1
	clockBoottime    = 6
	clockDelta       = 64 // the first that a sequence may give a meaning to

	trackUUID    = 1
	trackName    = 2
	trackProcess = 3
	trackThread  = 4
	trackParent  = 5
	trackCounter = 8
	trackMerge   = 15
	mergeNever   = 2

	processPID     = 1
	processCmdline = 2
	processName    = 6
	threadPID      = 1
	threadTID      = 2
	threadName     = 5
	counterUnit    = 3
	unitCount      = 2

	eventCategoryIID = 3
	eventCategory    = 22
	eventNameIID     = 10
	eventName        = 23
	eventType        = 9
	eventTrack       = 11
	eventCounter     = 30
	eventDouble      = 44 // a counter's value
	eventAnnotation  = 4
	eventSourceIID   = 34
	eventFlow        = 47
	eventFlowEnd     = 48
	typeBegin        = 1
	typeEnd          = 2
	typeInstant      = 3
	typeCounter      = 4

	internedCategory = 1
	internedName     = 2
	internedSource   = 4
	internedIID      = 1
	internedText     = 2
	sourceFile       = 2
	sourceFunction   = 3
	sourceLine       = 4

	annotationName   = 10
	annotationNumber = 3
	annotationBool   = 2
	annotationInt    = 4
	annotationDouble = 5
	annotationText   = 6
)

// emit writes p.event at a time.
func (p *perfetto) emit(at int64) { p.emitWith(at, nil) }

// emitWith writes it with what it is the first to need.
func (p *perfetto) emitWith(at int64, interned protobuf) {
	t := p.zero + uint64(at)
	p.packet = p.packet[:0]
	if t >= p.seq.last {
		p.packet.always(packetTimestamp, t-p.seq.last)
		p.seq.last = t
	} else {
		p.packet.number(packetTimestamp, t)
		p.packet.number(packetClockID, clockBoottime)
	}
	if len(interned) > 0 {
		p.packet.bytes(packetInterned, interned)
	}
	p.packet.number(packetFlags, flagNeeds)
	p.packet.bytes(packetEvent, p.event)
	p.write()
}

// name is a function's name as interned; what is new is appended to p.part.
func (p *perfetto) name(id uint32) perfettoName {
	n, ok := p.seq.names[id]
	if ok {
		return n
	}
	if len(p.seq.names) >= p.names {
		clear(p.seq.names)
		clear(p.seq.cats)
		p.startState(false)
	}
	name, module := p.functionName(id)
	n.name = uint64(len(p.seq.names)) + 1
	p.intern(internedName, n.name, name)
	if module != "" {
		n.cat, ok = p.seq.cats[module]
		if !ok {
			n.cat = uint64(len(p.seq.cats)) + 1
			p.seq.cats[module] = n.cat
			p.intern(internedCategory, n.cat, module)
		}
	}
	if file, line := p.line(id); file != "" {
		n.source = n.name
		p.inner = p.inner[:0]
		p.inner.number(internedIID, n.source)
		p.inner.text(sourceFile, validText(file))
		p.inner.text(sourceFunction, validText(name))
		p.inner.number(sourceLine, uint64(line))
		p.part.bytes(internedSource, p.inner)
	}
	p.seq.names[id] = n
	return n
}

func (p *perfetto) intern(field, iid uint64, text string) {
	p.inner = p.inner[:0]
	p.inner.number(internedIID, iid)
	p.inner.text(internedText, validText(text))
	p.part.bytes(field, p.inner)
}

func (p *perfetto) begin(l *lane, at int64, call *reel.Call) {
	p.part = p.part[:0]
	n := p.name(call.Func)
	p.start(l, typeBegin)
	p.event.number(eventNameIID, n.name)
	p.event.number(eventCategoryIID, n.cat)
	p.event.number(eventSourceIID, n.source)
	if p.arrow != 0 {
		p.event.fixed(eventFlowEnd, p.arrow)
		p.arrow = 0
	}
	p.annotate(p.values)
	p.emitWith(at, p.part)
}

// start begins an event.
func (p *perfetto) start(l *lane, kind uint64) {
	p.event = p.event[:0]
	p.event.number(eventType, kind)
	p.event.number(eventTrack, l.data.(uint64))
}

func (p *perfetto) end(l *lane, at int64, call *reel.Call) {
	p.start(l, typeEnd)
	if how := endOf(call.Flags); how != "" {
		p.text("end", how)
	}
	p.annotate(p.values)
	p.emit(at)
}

func (p *perfetto) note(l *lane, at int64, n note) {
	p.named(l, typeInstant, "callreel", n.name())
	switch n.kind {
	case noteTrigger:
		p.trigger(n)
	case noteDropped:
		p.count("entries", n.entries)
		p.count("exits", n.exits)
	case noteOpen:
		p.count("calls", n.calls)
	}
	p.emit(at)
}

// mark writes an instant of the whole process.
func (p *perfetto) mark(at int64, tid int, n note) {
	p.named(&lane{data: p.processTrack[p.f.Header().PID]}, typeInstant, "callreel", n.name())
	if n.kind == noteTrigger {
		p.trigger(n)
	} else {
		for _, x := range n.numbers() {
			p.count(x.key, x.value)
		}
		if n.off != nil && n.off.text != "" {
			p.text(n.textKey(), n.off.text)
		}
	}
	if tid != 0 {
		p.count("tid", uint64(tid))
	}
	p.emit(at)
}

// trigger annotates an event with what is known of a trigger.
func (p *perfetto) trigger(n note) {
	p.count("duration_ns", n.nanoseconds)
	for _, a := range [...][2]string{{"kind", n.trigger.Kind.String()}, {"detail", n.trigger.Detail}} {
		if a[1] != "" {
			p.text(a[0], a[1])
		}
	}
	if n.trigger.Open() {
		p.count("open", 1)
	}
}

// text annotates an event with a text.
func (p *perfetto) text(name, v string) {
	p.inner = p.inner[:0]
	p.inner.text(annotationName, name)
	p.inner.text(annotationText, validText(cut(v, maxName)))
	p.event.bytes(eventAnnotation, p.inner)
}

// named begins an event that no function is behind.
func (p *perfetto) named(l *lane, kind uint64, category, name string) {
	p.start(l, kind)
	p.event.text(eventCategory, category)
	p.event.text(eventName, validText(name))
}

// count annotates an event with a number.
func (p *perfetto) count(name string, v uint64) {
	p.inner = p.inner[:0]
	p.inner.text(annotationName, name)
	p.inner.always(annotationNumber, v)
	p.event.bytes(eventAnnotation, p.inner)
}

// switched writes an instant where a thread goes to another stack, from which a
// flow leads to the call that begins there.
func (p *perfetto) switched(from, to *lane, at int64) {
	p.flows++
	p.arrow = p.flows
	p.named(from, typeInstant, "callreel", fmt.Sprintf("to stack %d", to.stack+1))
	p.event.fixed(eventFlow, p.arrow)
	p.emit(max(at, from.last))
}

// run writes that a goroutine was on a thread, and a flow to there from the
// thread where it was before.
func (p *perfetto) run(l *lane, r goroutineRun, back *goroutineRun) {
	moved := back != nil && back.thread != r.thread
	if moved {
		p.flows++
		p.named(back.lane, typeInstant, "callreel", fmt.Sprintf("to thread %d", r.tid))
		p.event.fixed(eventFlow, p.flows)
		p.emit(back.end - 1)
	}
	p.named(l, typeBegin, "goroutine", goroutineName(r.goroutine))
	if moved {
		p.event.fixed(eventFlowEnd, p.flows)
	}
	p.emit(r.start)
	p.start(l, typeEnd)
	p.emit(r.end)
}

// always appends a number, also when it has its default.
func (p *protobuf) always(field, v uint64) {
	p.varint(field<<3 | wireVarint)
	p.varint(v)
}

// fixed appends a number of eight bytes.
func (p *protobuf) fixed(field, v uint64) {
	p.varint(field<<3 | wireFixed64)
	*p = binary.LittleEndian.AppendUint64(*p, v)
}
