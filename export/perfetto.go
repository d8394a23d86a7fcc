package export

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"

	"github.com/callreel/callreel/reel"
)

// Perfetto writes the reel as a Perfetto trace (protos/perfetto/trace/trace.proto of
// github.com/google/perfetto), for ui.perfetto.dev and trace_processor.
//
// Calls are slices: pairs of TYPE_SLICE_BEGIN and TYPE_SLICE_END on the track of
// their thread, with the image's file as category. A thread's further stacks, a
// thread that has the ID of an earlier one, and goroutines have tracks of their
// own below the process. Times are exact: nanoseconds, several events may have the
// same. The recording's first tick has the wall time on Perfetto's clocks BOOTTIME and
// REALTIME. Without a clock every event takes one microsecond: only the order
// means something.
//
// What was dropped or damaged, and calls that were open at the end, are said as
// [Chrome] says them: by instants and by the argument "end" of the slice; so is what
// a dump was made for, what is missing from it, and which functions were off when. Which
// goroutine was on which thread is in tracks of their own; flows lead from a thread
// to the next, and from one stack of a thread to another, as there. The counters are
// the same.
//
// States of threads (see [reel.File.States]) are what the kernel's tracer would have
// said of them: readers make the tables sched and thread_state of it. Page faults
// are instants.
//
// What markers said is in tracks of their own: spans and instants in a track "markers" below that of the thread, or the goroutine, since they need
// not nest with calls, and those of a pair that crosses others in one beside it; asynchronous spans, and pauses, in tracks that have their title
// for a name, in several if they overlap; counters in counter tracks. The ends of a flow are instants in the innermost span, or else call, which
// the flow leads through: its events have the same number, which is not the program's, as a program may use an ID again. What arrives at several
// places so goes on from one to the next.
//
// Each thread's packets are a sequence of their own, all goroutines' one; names are
// interned, times are differences. When a sequence has too many names for the
// memory its state is cleared and begins anew.
func Perfetto(ctx context.Context, f *reel.File, w io.Writer, opt Options) error {
	return newPerfetto(ctx, f, w, opt).export()
}

func newPerfetto(ctx context.Context, f *reel.File, w io.Writer, opt Options) *perfetto {
	p := &perfetto{walk: newWalk(ctx, f, opt), w: bufio.NewWriterSize(w, 1<<18), processTrack: make(map[int]uint64), byTID: make(map[int]*lane),
		parents: make(map[laneKey]uint64), counterTrack: make(map[perfettoCounter]uint64)}
	p.rates = newRates(f)
	if p.base > 0 && p.base < math.MaxInt64/2 { // else a clock that was never right
		p.zero = uint64(p.base)
	}
	p.marks = newMarkWalk(p.walk, p)
	return p
}

func (p *perfetto) export() error {
	p.head()
	p.all(p, false)
	p.unplaced(p.mark)
	p.counters()
	p.tellMarks()
	p.states()
	if p.err == nil {
		p.err = p.w.Flush()
	}
	if p.err != nil {
		return fmt.Errorf("export: %s to perfetto: %w", p.f.Name(), p.err)
	}
	return nil
}

// perfetto is one export.
type perfetto struct {
	*walk
	w            *bufio.Writer
	zero         uint64 // time 0 on the trace's clock, in nanoseconds
	tracks       uint64 // given
	flows        uint64 // given
	arrow        uint64 // the flow that ends in the call that begins next, or 0
	processTrack map[int]uint64
	byTID        map[int]*lane // threads that readers know by their IDs
	seq          perfettoSequence
	marks        *markWalk          // or nil
	parents      map[laneKey]uint64 // tracks of threads, and of goroutines that have marks
	counterTrack map[perfettoCounter]uint64

	packet, event, part, inner protobuf
}

// perfettoSequence is what a reader knows of the packets before.
type perfettoSequence struct {
	id     uint64 // 0 before the first
	thread uint32 // key; 0 for all
	last   uint64 // time of the last packet, on the trace's clock
	names  map[uint32]perfettoName
	cats   map[string]uint64
}

// perfettoName is a function's name, module and place in its source as interned; 0 for what isn't known.
type perfettoName struct{ name, cat, source uint64 }

// head writes the clocks and the processes.
func (p *perfetto) head() {
	p.startSequence(0)
	h := p.f.Header()
	for _, pid := range p.processes() {
		p.tracks++
		p.processTrack[pid] = p.tracks
		p.part = p.part[:0]
		p.part.number(trackUUID, p.tracks)
		p.inner = p.inner[:0]
		p.inner.number(processPID, uint64(pid))
		p.inner.text(processName, validText(p.processName()))
		for _, arg := range h.Command {
			p.inner.text(processCmdline, validText(cut(arg, maxName)))
		}
		p.part.bytes(trackProcess, p.inner)
		p.descriptor()
	}
}

// startSequence begins a sequence: of a thread, or with 0 of all.
func (p *perfetto) startSequence(thread uint32) {
	p.seq = perfettoSequence{id: p.seq.id + 1, thread: thread, last: p.zero, names: make(map[uint32]perfettoName), cats: make(map[string]uint64)}
	p.startState(true)
}

// startState writes that the packets from here on need none before, and that their times are differences.
func (p *perfetto) startState(first bool) {
	clock := func(id uint64, incremental bool) {
		p.inner = p.inner[:0]
		p.inner.number(clockID, id)
		p.inner.number(clockTimestamp, p.seq.last)
		if incremental {
			p.inner.number(clockIncremental, 1)
		}
		p.part.bytes(snapshotClocks, p.inner)
	}
	p.part = p.part[:0]
	clock(clockBoottime, false)
	if p.seq.id == 1 {
		clock(clockRealtime, false)
	}
	clock(clockDelta, true)
	p.packet = p.packet[:0]
	p.packet.number(packetTimestamp, p.seq.last)
	p.packet.number(packetClockID, clockBoottime)
	p.packet.bytes(packetClockSnapshot, p.part)
	p.part = p.part[:0]
	p.part.number(defaultsClockID, clockDelta)
	p.packet.bytes(packetDefaults, p.part)
	p.packet.number(packetFlags, flagCleared)
	if first {
		p.packet.number(packetFirst, 1)
	}
	p.write()
	p.part = p.part[:0]
}

// write writes the packet.
func (p *perfetto) write() {
	p.packet.number(packetSequence, p.seq.id)
	p.inner = p.inner[:0]
	p.inner.varint(tracePacket<<3 | wireBytes)
	p.inner.varint(uint64(len(p.packet)))
	if p.err == nil {
		p.w.Write(p.inner)
		_, p.err = p.w.Write(p.packet)
	}
}

// descriptor writes p.part as the description of a track.
func (p *perfetto) descriptor() {
	p.packet = p.packet[:0]
	p.packet.bytes(packetTrack, p.part)
	p.write()
}

// lane describes the track of a lane.
func (p *perfetto) lane(l *lane) {
	if !p.f.Header().Goroutines && p.seq.thread != l.thread.Key {
		p.startSequence(l.thread.Key)
	}
	p.describe(l)
	if p.marks == nil || l.main != l || l.runs {
		return
	}
	if _, ok := p.marks.ran[l.goroutine]; ok || l.goroutine == 0 {
		p.parents[keyOf(l.thread.Key, l.goroutine)] = l.data.(uint64)
	}
}

func (p *perfetto) describe(l *lane) {
	p.tracks++
	l.data = p.tracks
	p.part = p.part[:0]
	p.part.number(trackUUID, p.tracks)
	p.part.number(trackParent, p.processTrack[l.pid])
	name := validText(cut(l.name, maxName))
	if l.main == l && l.goroutine == 0 && !l.runs && l.tid == l.thread.TID && l.pid > 0 {
		p.inner = p.inner[:0]
		p.inner.number(threadPID, uint64(l.pid))
		p.inner.number(threadTID, uint64(l.tid))
		p.inner.text(threadName, name)
		p.part.bytes(trackThread, p.inner)
		p.byTID[l.tid] = l
	} else {
		p.part.text(trackName, name)
		p.part.number(trackMerge, mergeNever)
	}
	p.descriptor()
}

// counters writes all counters.
func (p *perfetto) counters() {
	if p.rates == nil {
		return
	}
	var uuid [3]uint64
	for k, name := range []string{"calls per second", "open calls", "events dropped"} {
		p.tracks++
		uuid[k] = p.tracks
		p.part = p.part[:0]
		p.part.number(trackUUID, p.tracks)
		p.part.number(trackParent, p.processTrack[p.f.Header().PID])
		p.part.text(trackName, name)
		p.inner = p.inner[:0]
		p.inner.number(counterUnit, unitCount)
		p.part.bytes(trackCounter, p.inner)
		p.descriptor()
	}
	value := func(at int64, track, v uint64) {
		p.event = p.event[:0]
		p.event.number(eventType, typeCounter)
		p.event.number(eventTrack, track)
		p.event.always(eventCounter, v)
		p.emit(at)
	}
	p.rates.rest(p.walk, func(r rate) {
		if r.perSecond != nil {
			value(r.at, uuid[0], *r.perSecond)
		}
		if r.open != nil {
			value(r.at, uuid[1], uint64(max(*r.open, 0)))
		}
		if r.dropped != nil {
			value(r.at, uuid[2], *r.dropped)
		}
	})
}
