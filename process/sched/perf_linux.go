package sched

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/process/perf"
)

// perfSource has an event of each thread and processor.
type perfSource struct {
	events   *perf.Switches
	cpus     []*perfRing
	all      []ring // the same
	children bool
	watched  map[int32]bool

	onlyFaults bool   // switches are another's to tell
	minors     int    // faults in this second
	minorSince uint64 // nanoseconds of the clock
	minorsEnd  uint64 // when they became too many, else 0
}

func openPerf(o Options) (*perfSource, error) {
	events, err := perf.OpenSwitches(perf.SwitchOptions{
		// Nothing turns that clock faster or slower.
		Bytes: o.bufferBytes(), Children: o.Children, Clock: unix.CLOCK_MONOTONIC_RAW,
		Switches: true, Major: o.Faults >= MajorFaults, Minor: o.Faults >= AllFaults,
	})
	if err != nil {
		return nil, whyNoPerf(err)
	}
	return newPerf(events, o), nil
}

func newPerf(events *perf.Switches, o Options) *perfSource {
	s := &perfSource{events: events, children: o.Children, watched: map[int32]bool{}}
	for _, r := range events.Rings() {
		s.cpus = append(s.cpus, &perfRing{SwitchRing: r, source: s})
	}
	s.all = asRings(s.cpus)
	return s
}

func whyNoPerf(err error) error {
	if errors.Is(err, perf.ErrNotPermitted) || errors.Is(err, perf.ErrTooMany) {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}

const (
	// attachRounds bounds how often we look for threads that began meanwhile.
	attachRounds = 20
	spare        = 64 // file descriptors that are left for all else
)

// add begins an event for each thread of a process. Those that they start inherit it.
func (s *perfSource) add(pid int, tids []int) error {
	if s.events.PerThread() == 0 {
		s.watched[int32(pid)] = true
		return nil
	}
	if err := s.roomFor(len(tids)); err != nil {
		return err
	}
	attached := make(map[int]bool, len(tids))
	for round := range attachRounds {
		if round > 0 {
			var err error
			if tids, err = threadsOf(pid); err != nil {
				return err
			}
		}
		fresh := tids[:0:0]
		inherited := s.forked()
		for _, tid := range tids {
			if !attached[tid] && !inherited[uint32(tid)] {
				fresh = append(fresh, tid)
			}
		}
		if round > 0 && len(fresh) == 0 {
			break
		}
		if round == 1 {
			// One that inherits shows in /proc a moment before that is told. Told twice would do no harm, but cost.
			time.Sleep(time.Millisecond)
			inherited = s.forked()
		}
		for _, tid := range fresh {
			if inherited[uint32(tid)] {
				continue
			}
			attached[tid] = true
			if err := s.events.AddThread(pid, tid); err != nil && !errors.Is(err, unix.ESRCH) {
				s.events.Remove(pid)
				return whyNoPerf(err)
			}
		}
	}
	s.watched[int32(pid)] = true
	return nil
}

// forked are the threads that the rings tell have begun.
func (s *perfSource) forked() map[uint32]bool {
	out := map[uint32]bool{}
	for _, r := range s.cpus {
		r.Load()
		r.Each(func(data []byte) {
			var rec perf.SwitchRecord
			if rec.Decode(data) == nil && rec.Type == perf.Fork {
				out[rec.TID] = true
			}
		})
	}
	return out
}

// roomFor raises our own limit of file descriptors as far as we may.
func (s *perfSource) roomFor(threads int) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return nil // then it will be seen
	}
	if limit.Cur < limit.Max {
		raised := unix.Rlimit{Cur: limit.Max, Max: limit.Max}
		if unix.Setrlimit(unix.RLIMIT_NOFILE, &raised) == nil {
			limit = raised
		}
	}
	if need := uint64(threads*s.events.PerThread() + spare); need > limit.Cur {
		return fmt.Errorf("perf: %w: %d threads take %d file descriptors, and the limit is %d; raise ulimit -Hn: %w",
			ErrUnavailable, threads, need, limit.Cur, perf.ErrTooMany)
	}
	return nil
}

func (s *perfSource) forget(pid int) {
	delete(s.watched, int32(pid))
	if !s.children { // else its children have inherited from it
		s.events.Remove(pid)
	}
}

func (s *perfSource) name() string { return SourcePerf }
func (s *perfSource) clock() int32 { return unix.CLOCK_MONOTONIC_RAW }

func (s *perfSource) wakeUps() bool       { return false }
func (s *perfSource) repeats() bool       { return true }
func (s *perfSource) late() uint64        { return 0 }
func (s *perfSource) rings() []ring       { return s.all }
func (s *perfSource) faults() error       { return nil }
func (s *perfSource) minorsEnded() uint64 { return s.minorsEnd }
func (s *perfSource) stop() error         { s.events.Stop(); return nil }
func (s *perfSource) close() error        { return s.events.Close() }

// minor counts a minor fault, and ends telling of them once there are too many.
func (s *perfSource) minor(time uint64) {
	const second = 1e9
	if time-s.minorSince >= second {
		s.minorSince, s.minors = time, 0
	}
	if s.minors++; s.minors > MinorFaultRate*len(s.cpus) && s.minorsEnd == 0 {
		s.minorsEnd = time
		s.events.StopMinor()
	}
}

// perfRing is one processor's ring.
type perfRing struct {
	*perf.SwitchRing
	source *perfSource
	next   []byte
	last   uint64 // time of the last record that was taken
	holes  []window
}

func (r *perfRing) load(limit uint64) {
	full := r.Load()
	r.holes = r.holes[:0]
	last := r.last
	r.Each(func(data []byte) {
		var rec perf.SwitchRecord
		if rec.Decode(data) != nil {
			return
		}
		if rec.Type == perf.Lost {
			r.holes = append(r.holes, window{from: last, to: rec.Time, count: rec.Count})
		}
		last = max(last, rec.Time)
	})
	if full {
		// What is lost now is told by the next record that finds room. How much it was is known then.
		r.holes = append(r.holes, window{from: last, to: max(limit, last), count: 1})
	}
}

func (r *perfRing) windows() []window { return r.holes }

// underWay is how long a record may take, in nanoseconds: the kernel reads the clock some instructions before it shows the
// record. It takes longer where the processor itself stands still (a virtual one); what comes then is given late.
const underWay = uint64(time.Millisecond)

func (r *perfRing) bound(limit uint64) uint64 { return limit - min(limit, underWay) }

func (r *perfRing) peek() (uint64, bool) {
	if r.next = r.Peek(); r.next == nil {
		return 0, false
	}
	// The order of a ring is nearly that of time: where it isn't, the ring's is the true one.
	return max(perf.TimeOf(r.next), r.last), true
}

func (r *perfRing) take(out *[2]told) int {
	var rec perf.SwitchRecord
	err := rec.Decode(r.next)
	r.Skip(r.next)
	if err != nil {
		return 0
	}
	r.last = max(r.last, rec.Time)
	e := told{time: rec.Time, pid: int32(rec.PID), tid: int32(rec.TID), cpu: int32(r.CPU), syscall: NoSyscall}
	switch rec.Type {
	case perf.Switch:
		e.kind = In
		if rec.Out {
			e.kind = Blocked
			if rec.Preempted {
				e.kind = Preempted
			}
		}
	case perf.Fork:
		e.kind, e.waker = born, int32(rec.ParentTID)
	case perf.Exit:
		e.kind = Ended
	case perf.Comm:
		if !rec.Exec {
			return 0
		}
		e.kind = execed
	case perf.Sample:
		e.kind, e.address = MajorFault, rec.Address
		if !rec.Major {
			e.kind = MinorFault
			r.source.minor(rec.Time)
		}
	default:
		return 0
	}
	if e.pid <= 0 || e.tid <= 0 || r.source.onlyFaults && rec.Type != perf.Sample || !r.source.wanted(&e, &rec) {
		return 0
	}
	out[0] = e
	return 1
}

// wanted leaves out children, where the kernel can't.
func (s *perfSource) wanted(e *told, rec *perf.SwitchRecord) bool {
	if s.onlyFaults {
		return true // those of threads that aren't watched are passed over later
	}
	if s.children {
		if e.kind == born && s.watched[int32(rec.ParentPID)] {
			s.watched[e.pid] = true
		}
		return true
	}
	return s.watched[e.pid]
}

func (r *perfRing) release() { r.Release() }
