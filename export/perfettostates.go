package export

import (
	"math"

	"github.com/callreel/callreel/reel"
)

// Fields of the messages in protos/perfetto/trace/ftrace, and a thread's states as kernels before 4.8 number them: readers take the numbers so
// when no kernel is named.
const (
	packetFtrace = 1

	bundleCPU     = 1
	bundleEvent   = 2
	bundleCompact = 4

	compactTime  = 1
	compactState = 2
	compactNext  = 3
	compactPrio  = 4
	compactNames = 5
	compactName  = 6

	ftraceTime   = 1
	ftracePID    = 2
	ftraceWaking = 20
	wakingPID    = 2
	wakingCPU    = 5

	taskSleeping        = 1
	taskUninterruptible = 2
	taskDead            = 0x10
	taskNoLoad          = 0x400
	taskPreempted       = 0x800

	// bundleWords is how many words of a processor are written together.
	bundleWords = 1 << 10
)

// perfettoSched writes words of the kernel's tracer, those of a processor in bundles.
type perfettoSched struct {
	*perfetto
	cpus []perfettoCPU
}

// perfettoCPU is what waits of a processor: of switches each field by itself, of the first the time itself, of the others the difference.
type perfettoCPU struct {
	times, states, next protobuf
	wakings             protobuf
	switches, words     int
	last                int64
	some                bool // a switch was written
}

// states writes what the threads did besides their calls.
func (p *perfetto) states() {
	if p.untimed || !p.f.HasStates() {
		return
	}
	p.startSequence(0)
	for _, t := range p.f.Threads() {
		if p.failed() {
			return
		}
		if p.hasStates(t.Key, 0, math.MaxUint64) {
			p.faults(&t)
		}
	}
	s := &perfettoSched{perfetto: p}
	p.tellSched(s, 0, math.MaxUint64)
	for cpu := range s.cpus {
		s.flush(cpu)
	}
}

// faults writes the page faults of a thread, which is described if it has made no calls.
func (p *perfetto) faults(t *reel.Thread) {
	l := p.byTID[t.TID]
	if l == nil {
		if l = p.stateLane(t); l == nil {
			return
		}
		p.describe(l)
	}
	p.tellFaults(t.Key, 0, math.MaxUint64, func(at int64, x reel.Fault) {
		p.named(l, typeInstant, "callreel", faultName(x))
		if x.Address != 0 {
			p.count("address", x.Address)
		}
		p.emit(at)
	})
}

func (s *perfettoSched) cpu(n int) *perfettoCPU {
	for len(s.cpus) <= n {
		s.cpus = append(s.cpus, perfettoCPU{})
	}
	return &s.cpus[n]
}

func (s *perfettoSched) switched(at int64, cpu, _ int, left leftAs, to int) {
	c := s.cpu(cpu)
	if !c.some { // readers leave out the first one, as it doesn't say who was there before
		c.some = true
		c.add(s.zero, at, 0, 0)
	}
	c.add(s.zero, at, left, to)
	if c.words >= bundleWords {
		s.flush(cpu)
	}
}

func (c *perfettoCPU) add(zero uint64, at int64, left leftAs, to int) {
	delta := uint64(at - c.last)
	if c.switches == 0 {
		delta = zero + uint64(at)
	}
	c.times.varint(delta)
	c.states.varint(left.number())
	c.next.varint(uint64(to))
	c.last = at
	c.switches++
	c.words++
}

func (l leftAs) number() uint64 {
	switch l {
	case leftSleeping:
		return taskSleeping
	case leftUninterruptible:
		return taskUninterruptible
	case leftDead:
		return taskDead
	case leftUnknown:
		return taskNoLoad
	case leftPreempted:
		return taskPreempted
	}
	return 0
}

func (s *perfettoSched) woken(at int64, tid, waker, cpu int) {
	c := s.cpu(cpu)
	p := s.perfetto
	p.event = p.event[:0]
	p.event.number(ftraceTime, s.zero+uint64(at))
	p.event.always(ftracePID, uint64(waker))
	p.inner = p.inner[:0]
	p.inner.number(wakingPID, uint64(tid))
	p.inner.number(wakingCPU, uint64(cpu))
	p.event.bytes(ftraceWaking, p.inner)
	c.wakings.bytes(bundleEvent, p.event)
	if c.words++; c.words >= bundleWords {
		s.flush(cpu)
	}
}

// flush writes what waits of a processor.
func (s *perfettoSched) flush(cpu int) {
	c := &s.cpus[cpu]
	if c.words == 0 {
		return
	}
	p := s.perfetto
	p.part = p.part[:0]
	p.part.always(bundleCPU, uint64(cpu))
	if c.switches > 0 {
		zeros := make(protobuf, c.switches)
		p.event = p.event[:0]
		p.event.bytes(compactTime, c.times)
		p.event.bytes(compactState, c.states)
		p.event.bytes(compactNext, c.next)
		p.event.bytes(compactPrio, zeros) // isn't known
		p.event.text(compactNames, "")
		p.event.bytes(compactName, zeros)
		p.part.bytes(bundleCompact, p.event)
	}
	p.part = append(p.part, c.wakings...)
	p.packet = p.packet[:0]
	p.packet.bytes(packetFtrace, p.part)
	p.write()
	c.times, c.states, c.next, c.wakings = c.times[:0], c.states[:0], c.next[:0], c.wakings[:0]
	c.switches, c.words = 0, 0
}
