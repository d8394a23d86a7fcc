package perf

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Options says what is sampled.
type Options struct {
	Rate int // samples of a second that a thread runs; at least 1
	// Stack is how many bytes of the stack are copied at most; 0 means as many as the
	// rings have good room for, up to DefaultStack.
	Stack int
}

// The bounds of Options.Stack: a record's size has 16 bits. The kernel copies no more
// than there is, so that a large piece costs room, not time.
const (
	DefaultStack = 32 << 10
	MaxStack     = 60 << 10
)

// All rings together have allRings bytes where there are few processors; each has a power
// of two. Less is asked for until the kernel grants it: what may be locked is bounded for
// users without CAP_IPC_LOCK (kernel.perf_event_mlock_kb).
const (
	allRings = 32 << 20
	maxRing  = 8 << 20
	midRing  = 1 << 20 // at least, as far as it is granted
	minRing  = 64 << 10
)

// inRing is how many samples a ring should have room for, since it is emptied by a
// process that may have to wait for the processor.
const inRing = 32

// ErrNotPermitted: the kernel lets us have no events for the process.
var ErrNotPermitted = errors.New("perf events are not permitted")

// Events are the events of a number of threads, and those that they start.
type Events struct {
	// UserOnly says that we may not see what threads do in the kernel: samples are of
	// the time outside of it.
	UserOnly bool

	opt    Options
	cpus   []int
	rings  []*cpuRing // by index in cpus; nil for processors that are off
	size   int        // of a ring, bytes
	fds    []int
	marks  []mark
	record Record
}

// cpuRing is the ring that all events of one processor write to.
type cpuRing struct {
	ring
	fd     int // of the event that owns it
	memory []byte
	page   *unix.PerfEventMmapPage
}

// mark is a record that waits to be handed on, when its time comes.
type mark struct {
	time uint64
	data []byte
}

// Open prepares events; Add begins.
func Open(o Options) (*Events, error) {
	cpus, err := onlineCPUs()
	if err != nil {
		return nil, err
	}
	size := maxRing
	for size > midRing && size*len(cpus) > allRings {
		size /= 2
	}
	return &Events{opt: o, cpus: cpus, rings: make([]*cpuRing, len(cpus)), size: size}, nil
}

// onlineCPUs lists the processors that are on. Where /sys isn't mounted, /proc/stat has them too.
func onlineCPUs() ([]int, error) {
	text, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		stat, err2 := os.ReadFile("/proc/stat")
		if err2 != nil {
			return nil, fmt.Errorf("perf: processors: %w", errors.Join(err, err2))
		}
		text = cpusOfStat(stat)
	}
	cpus, err := parseList(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, fmt.Errorf("perf: processors: %w", err)
	}
	return cpus, nil
}

// Add samples a thread and all that it will start from now on. The error wraps
// ErrNotPermitted when that is the reason, and unix.ESRCH when the thread has ended.
func (e *Events) Add(tid int) error {
	// An inherited event has a ring only when it is bound to a processor (perf_mmap in
	// kernel/events/core.c), so there is one for each.
	for k := range e.cpus {
		fd, err := e.withRing(tid, k)
		if errors.Is(err, unix.ENODEV) {
			continue // the processor was turned off
		}
		if err != nil {
			return err
		}
		e.fds = append(e.fds, fd)
		// Only now, so that no sample is lost to an event without a ring.
		if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0); err != nil {
			return fmt.Errorf("perf: thread %d: enable: %w", tid, err)
		}
	}
	return nil
}

// withRing opens a thread's event for a processor, with a place to write to.
func (e *Events) withRing(tid, k int) (int, error) {
	for {
		fd, err := e.open(tid, e.cpus[k])
		if err != nil {
			return -1, err
		}
		size := e.size
		if e.rings[k] == nil {
			err = e.makeRing(k, fd)
		} else if err = unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_OUTPUT, e.rings[k].fd); err != nil {
			err = fmt.Errorf("perf: thread %d: ring of processor %d: %w", tid, e.cpus[k], err)
		}
		if err == nil && e.size == size {
			return fd, nil
		}
		// How much a sample holds, and when to wake us, follows from the ring's size.
		if err == nil && len(e.fds) == 0 {
			err = unix.Munmap(e.rings[k].memory)
			e.rings[k] = nil
		} else if err == nil {
			return fd, nil
		}
		if err = errors.Join(err, unix.Close(fd)); err != nil {
			return -1, err
		}
	}
}

func (e *Events) open(tid, cpu int) (int, error) {
	for {
		attr := e.attributes()
		fd, err := unix.PerfEventOpen(&attr, tid, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
		switch {
		case err == nil:
			return fd, nil
		case (errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM)) && !e.UserOnly && len(e.fds) == 0:
			e.UserOnly = true // kernel.perf_event_paranoid is 2
		case errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE):
			return -1, fmt.Errorf("perf: thread %d: %w; a thread takes a file descriptor for each processor, raise ulimit -n", tid, err)
		case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.ENOENT), errors.Is(err, unix.EOPNOTSUPP):
			return -1, fmt.Errorf("perf: thread %d: %w: %s (%w)", tid, ErrNotPermitted, advice(), err)
		default:
			return -1, fmt.Errorf("perf: thread %d: open event: %w", tid, err)
		}
	}
}

// advice says what would make events work (perf_event_open(2), proc_sys_kernel(5)).
func advice() string {
	text, err := os.ReadFile("/proc/sys/kernel/perf_event_paranoid")
	if err != nil {
		return "the kernel has no perf events (CONFIG_PERF_EVENTS), or /proc/sys cannot be read"
	}
	level, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err == nil && level > 2 {
		return fmt.Sprintf("kernel.perf_event_paranoid is %d: sysctl kernel.perf_event_paranoid=2, or CAP_PERFMON (root)", level)
	}
	return fmt.Sprintf("kernel.perf_event_paranoid is %d, so either the process is another user's (CAP_PERFMON or root is needed), or a seccomp filter such as a container's refuses",
		level)
}

func (e *Events) attributes() unix.PerfEventAttr {
	period := uint64(time.Second) / uint64(max(e.opt.Rate, 1))
	attr := unix.PerfEventAttr{
		Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK,
		Size:        uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Sample:      period,
		Sample_type: unix.PERF_SAMPLE_TID | unix.PERF_SAMPLE_TIME | unix.PERF_SAMPLE_CALLCHAIN | unix.PERF_SAMPLE_REGS_USER | unix.PERF_SAMPLE_STACK_USER,
		Bits: unix.PerfBitDisabled | unix.PerfBitInherit | unix.PerfBitExcludeHv | unix.PerfBitMmap | unix.PerfBitMmap2 |
			unix.PerfBitComm | unix.PerfBitCommExec | unix.PerfBitTask | unix.PerfBitSampleIDAll | unix.PerfBitWatermark |
			unix.PerfBitUseClockID | unix.PerfBitExcludeCallchainKernel,
		Clockid:           unix.CLOCK_MONOTONIC, // the default differs between processors
		Sample_regs_user:  registerMask,
		Sample_stack_user: uint32(e.stack()),
		Wakeup:            uint32(e.size / 2),
	}
	if e.UserOnly {
		attr.Bits |= unix.PerfBitExcludeKernel
	}
	return attr
}

// stack is how much is copied.
func (e *Events) stack() int {
	if e.opt.Stack > 0 {
		return min(e.opt.Stack, MaxStack) &^ 7
	}
	return min(DefaultStack, e.size/inRing)
}

// makeRing makes an event the owner of its processor's ring.
func (e *Events) makeRing(k, fd int) error {
	r, size, err := mapRing(fd, e.size)
	if err != nil {
		return fmt.Errorf("perf: ring of processor %d: %w", e.cpus[k], err)
	}
	e.rings[k], e.size = r, size
	return nil
}

// mapRing maps an event's ring, of size bytes or of as many as are granted.
func mapRing(fd, size int) (*cpuRing, int, error) {
	page := os.Getpagesize()
	for {
		memory, err := unix.Mmap(fd, 0, page+size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		switch {
		case err == nil:
			return &cpuRing{
				ring: ring{data: memory[page:]}, fd: fd, memory: memory,
				page: (*unix.PerfEventMmapPage)(unsafe.Pointer(&memory[0])),
			}, size, nil
		case size > minRing && (errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOMEM)):
			size /= 2
		default:
			return nil, size, fmt.Errorf("%w: kernel.perf_event_mlock_kb bounds what may be locked, and ulimit -l (%w)", ErrNotPermitted, err)
		}
	}
}

// Wait waits until a ring is half full, or for some time.
func (e *Events) Wait(timeout time.Duration) error {
	var fds []unix.PollFd
	for _, r := range e.rings {
		if r != nil {
			fds = append(fds, unix.PollFd{Fd: int32(r.fd), Events: unix.POLLIN})
		}
	}
	begun := time.Now()
	_, err := unix.Poll(fds, int(timeout.Milliseconds()))
	if err != nil && !errors.Is(err, unix.EINTR) {
		return fmt.Errorf("perf: wait: %w", err)
	}
	hung := slices.ContainsFunc(fds, func(f unix.PollFd) bool { return f.Revents&^unix.POLLIN != 0 })
	if hung && time.Since(begun) < timeout {
		// The thread whose event owns the ring has ended, which is not to be waited
		// for; others may still write to it.
		time.Sleep(min(timeout-time.Since(begun), 5*time.Millisecond))
	}
	return nil
}

// Drain calls fn with all that has happened, in the order of time, and gives the room
// back. The record is valid until fn returns.
func (e *Events) Drain(fn func(*Record)) error {
	var errs []error
	e.marks = e.marks[:0]
	for _, r := range e.rings {
		if r == nil {
			continue
		}
		head := atomic.LoadUint64(&r.page.Data_head)
		errs = append(errs, r.take(head, func(data []byte) { e.marks = append(e.marks, mark{timeOf(data), data}) }))
	}
	slices.SortStableFunc(e.marks, func(a, b mark) int { return cmp.Compare(a.time, b.time) })
	for _, m := range e.marks {
		if err := e.record.Decode(m.data); err != nil {
			errs = append(errs, err)
			continue
		}
		fn(&e.record)
	}
	for _, r := range e.rings {
		if r != nil {
			atomic.StoreUint64(&r.page.Data_tail, r.tail)
		}
	}
	return errors.Join(errs...)
}

// Close ends the events.
func (e *Events) Close() error {
	var errs []error
	for _, fd := range e.fds {
		errs = append(errs, unix.Close(fd))
	}
	for _, r := range e.rings {
		if r != nil {
			errs = append(errs, unix.Munmap(r.memory))
		}
	}
	e.fds, e.rings = nil, nil
	return errors.Join(errs...)
}
