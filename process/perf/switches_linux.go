package perf

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// SwitchOptions says what is told of threads.
type SwitchOptions struct {
	Bytes    int   // of the rings of all processors together
	Clock    int32 // that times are of: unix.CLOCK_MONOTONIC_RAW or unix.CLOCK_MONOTONIC
	Children bool  // processes that they start, too; else only threads
	Switches bool  // when they come onto a processor and leave it, begin, end, and run a new program
	Major    bool  // page faults that had to read something
	Minor    bool  // other page faults; each costs the thread some 0.75 µs
}

// Switches are the events by which threads come onto a processor and leave it.
//
// All events write into one ring for each processor, that of an event of our own which tells nothing.
type Switches struct {
	opt   SwitchOptions
	cpus  []int
	rings []*SwitchRing
	// threadsOnly says that the kernel can leave out processes that are started (Linux 5.13).
	threadsOnly bool
	fds         map[int][]int // by the process they were added for; 0 for all
	minor       []int
}

// SwitchRing is what one processor has written.
type SwitchRing struct {
	cpuRing
	CPU  int
	head uint64
	err  error
}

// OpenSwitches makes the rings; AddThreads begins. The error wraps ErrNotPermitted where that is the reason.
func OpenSwitches(o SwitchOptions) (_ *Switches, err error) {
	cpus, err := onlineCPUs()
	if err != nil {
		return nil, err
	}
	s := &Switches{opt: o, fds: map[int][]int{}, threadsOnly: !o.Children}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	size := maxRing
	for size > minRing && size*len(cpus) > o.Bytes {
		size /= 2
	}
	for _, cpu := range cpus {
		attr := s.attributes(false)
		attr.Config, attr.Bits = unix.PERF_COUNT_SW_DUMMY, attr.Bits|unix.PerfBitDisabled
		fd, err := unix.PerfEventOpen(&attr, 0, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if errors.Is(err, unix.EINVAL) && s.threadsOnly {
			s.threadsOnly = false
			attr.Bits &^= bitInheritThread
			fd, err = unix.PerfEventOpen(&attr, 0, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
		}
		if errors.Is(err, unix.ENODEV) {
			continue // it was turned off
		}
		if err != nil {
			return nil, switchError(0, err)
		}
		r, got, err := mapRing(fd, size)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("perf: ring of processor %d: %w", cpu, err), unix.Close(fd))
		}
		size = got
		s.cpus = append(s.cpus, cpu)
		s.rings = append(s.rings, &SwitchRing{cpuRing: *r, CPU: cpu})
	}
	return s, nil
}

// PerThread is how many file descriptors a thread takes.
func (s *Switches) PerThread() int {
	n := 0
	if s.opt.Switches {
		n += len(s.cpus)
	}
	if s.opt.Minor {
		n += len(s.cpus)
	}
	return n
}

// OnlyThreads says whether what threads start as processes of their own is left out; else the caller has to.
func (s *Switches) OnlyThreads() bool { return s.threadsOnly }

// bitInheritThread is inherit_thread: only new threads inherit an event, not new processes (Linux 5.13).
const bitInheritThread = 1 << 35

func (s *Switches) attributes(minor bool) unix.PerfEventAttr {
	attr := unix.PerfEventAttr{
		Type:        unix.PERF_TYPE_SOFTWARE,
		Size:        uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Sample_type: unix.PERF_SAMPLE_TID | unix.PERF_SAMPLE_TIME | unix.PERF_SAMPLE_ADDR,
		Clockid:     s.opt.Clock,
		Bits: unix.PerfBitInherit | unix.PerfBitExcludeHv | unix.PerfBitExcludeKernel | unix.PerfBitSampleIDAll |
			unix.PerfBitUseClockID | unix.PerfBitWatermark,
		Wakeup: 1 << 30, // nobody waits for these rings
	}
	switch {
	case minor:
		attr.Config, attr.Sample = unix.PERF_COUNT_SW_PAGE_FAULTS_MIN, 1
		attr.Sample_type |= unix.PERF_SAMPLE_CPU
	case s.opt.Major: // one event for both
		attr.Config, attr.Sample = unix.PERF_COUNT_SW_PAGE_FAULTS_MAJ, 1
	default:
		attr.Config = unix.PERF_COUNT_SW_DUMMY
	}
	switch {
	case minor && !s.opt.Switches:
		attr.Bits |= unix.PerfBitTask // who inherits it
	case !minor && s.opt.Switches:
		attr.Bits |= unix.PerfBitContextSwitch | unix.PerfBitTask | unix.PerfBitComm | unix.PerfBitCommExec
	}
	if s.threadsOnly {
		attr.Bits |= bitInheritThread
	}
	return attr
}

// AddThread tells of a thread of a process, and of all that it will start from now on. The error wraps unix.ESRCH where
// the thread has ended, ErrNotPermitted or ErrTooMany where that is the reason.
func (s *Switches) AddThread(pid, tid int) error {
	for _, r := range s.rings {
		if s.opt.Switches {
			if err := s.addTo(r, pid, tid, false); err != nil {
				return err
			}
		}
		if s.opt.Minor {
			if err := s.addTo(r, pid, tid, true); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Switches) addTo(r *SwitchRing, pid, tid int, minor bool) error {
	attr := s.attributes(minor)
	// The event writes into the ring from its beginning on: no record of it is lost.
	fd, err := unix.PerfEventOpen(&attr, tid, r.CPU, r.fd, unix.PERF_FLAG_FD_CLOEXEC|unix.PERF_FLAG_FD_OUTPUT|unix.PERF_FLAG_FD_NO_GROUP)
	if errors.Is(err, unix.ENODEV) {
		return nil
	}
	if err != nil {
		return switchError(tid, err)
	}
	s.fds[pid] = append(s.fds[pid], fd)
	if minor {
		s.minor = append(s.minor, fd)
	}
	return nil
}

// AddAll tells of the major page faults of all processes on all processors, also of those that the kernel takes on their
// behalf. It needs CAP_PERFMON, or kernel.perf_event_paranoid of 0 or less.
func (s *Switches) AddAll() error {
	for _, r := range s.rings {
		attr := s.attributes(false)
		attr.Bits &^= unix.PerfBitInherit | unix.PerfBitExcludeKernel | bitInheritThread
		fd, err := unix.PerfEventOpen(&attr, -1, r.CPU, r.fd, unix.PERF_FLAG_FD_CLOEXEC|unix.PERF_FLAG_FD_OUTPUT|unix.PERF_FLAG_FD_NO_GROUP)
		if errors.Is(err, unix.ENODEV) {
			continue
		}
		if err != nil {
			return switchError(0, err)
		}
		s.fds[0] = append(s.fds[0], fd)
	}
	return nil
}

// ErrTooMany: there aren't enough file descriptors for all threads and processors.
var ErrTooMany = errors.New("too many threads for the limit of file descriptors")

func switchError(tid int, err error) error {
	switch {
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		return fmt.Errorf("perf: thread %d: %w: each takes one for each processor; raise ulimit -n (%w)", tid, ErrTooMany, err)
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.ENOENT), errors.Is(err, unix.EOPNOTSUPP):
		return fmt.Errorf("perf: thread %d: %w: %s (%w)", tid, ErrNotPermitted, advice(), err)
	}
	return fmt.Errorf("perf: thread %d: open event: %w", tid, err)
}

// Remove ends the events that were added for a process, and those of what its threads have started.
func (s *Switches) Remove(pid int) {
	for _, fd := range s.fds[pid] {
		_ = unix.Close(fd)
	}
	delete(s.fds, pid)
}

// StopMinor ends telling of minor faults.
func (s *Switches) StopMinor() {
	for _, fd := range s.minor {
		_ = unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_DISABLE, 0)
	}
	s.minor = nil
}

// Rings are those of all processors.
func (s *Switches) Rings() []*SwitchRing { return s.rings }

// Stop ends all events; what is in the rings can still be read.
func (s *Switches) Stop() {
	for pid := range s.fds {
		s.Remove(pid)
	}
	s.minor = nil
}

// Close gives all back.
func (s *Switches) Close() error {
	s.Stop()
	var errs []error
	for _, r := range s.rings {
		errs = append(errs, unix.Munmap(r.memory), unix.Close(r.fd))
	}
	s.rings = nil
	return errors.Join(errs...)
}

// Load looks at what there is, and says whether the ring is so full that something may have been lost.
func (r *SwitchRing) Load() (full bool) {
	r.head = atomic.LoadUint64(&r.page.Data_head)
	const largest = 256 // bytes of a record
	return r.head-r.tail > uint64(len(r.data))-largest
}

// Peek is the next record, which is valid until Skip; nil when there is none.
func (r *SwitchRing) Peek() []byte {
	if r.tail == r.head {
		return nil
	}
	data, err := r.peek(r.head)
	if err != nil {
		r.err, r.tail = err, r.head
		return nil
	}
	return data
}

// Skip goes on to the next record, behind the one that Peek gave.
func (r *SwitchRing) Skip(data []byte) { r.tail += uint64(len(data)) }

// Each calls fn with all records that there are, without going on.
func (r *SwitchRing) Each(fn func(data []byte)) {
	at := ring{data: r.data, tail: r.tail}
	_ = at.take(r.head, fn)
}

// Release gives the room of what was read back.
func (r *SwitchRing) Release() { atomic.StoreUint64(&r.page.Data_tail, r.tail) }

// TimeOf is a record's time, in nanoseconds of the clock that was asked for.
func TimeOf(data []byte) uint64 { return timeOf(data) }
