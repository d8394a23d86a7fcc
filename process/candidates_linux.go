package process

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// errUnfit marks a thread on which a remote call was not even begun.
var errUnfit = errors.New("thread is unfit")

func unfit(t *Thread, why error) error {
	return fmt.Errorf("%w: thread %d: %w", errUnfit, t.TID, why)
}

// candidates returns the threads in the order in which to try them: best is one
// that runs its own code, worst one whose interrupted call would lose the rest
// of a timeout.
func (s *Stopped) candidates() []*Thread {
	var ranks [6][]*Thread
	for _, t := range s.threads {
		if t.stopped {
			r := t.rank()
			ranks[r] = append(ranks[r], t)
		}
	}
	return slices.Concat(ranks[:]...)
}

// rank says how fit a thread is, 0 to 5, the best being 0.
func (t *Thread) rank() int {
	regs, err := t.Regs()
	if err != nil {
		return 5
	}
	return arch.rank(t, regs)
}

// ownsStack says whether the memory from base up to the stack pointer is unused
// stack: in the main thread's stack, or in a mapping that holds both the stack
// pointer and, above it, the thread pointer. C libraries keep a thread's control
// block at the top of its stack; goroutines and coroutines are elsewhere.
func (t *Thread) ownsStack(regs Regs, base uint64) error {
	if err := arch.runs(&regs); err != nil {
		return err
	}
	maps, err := t.s.mapsOnce()
	if err != nil {
		return err
	}
	i, found := slices.BinarySearchFunc(maps, regs.SP(), func(m Mapping, addr uint64) int {
		switch {
		case m.End <= addr:
			return -1
		case m.Start > addr:
			return 1
		}
		return 0
	})
	if !found {
		return fmt.Errorf("stack pointer %#x: %w", regs.SP(), ErrNoMapping)
	}
	m := maps[i]
	const rw = PermRead | PermWrite
	if m.Perm&rw != rw || base < m.Start {
		return fmt.Errorf("no room for %d bytes below the stack pointer %#x", regs.SP()-base, regs.SP())
	}
	if t.s.opts.AnyStack || m.Special == "[stack]" || m.Contains(regs.ThreadPointer()) && regs.ThreadPointer() > regs.SP() {
		return nil
	}
	if owns := t.s.opts.OwnsStack; owns != nil && owns(t.s.p, t, base) {
		return nil
	}
	return fmt.Errorf("stack pointer %#x is not in a C library's thread stack", regs.SP())
}

func (s *Stopped) mapsOnce() ([]Mapping, error) {
	if s.maps != nil {
		return s.maps, nil
	}
	maps, err := s.p.Maps()
	s.maps = maps
	return maps, err
}

// allowsChain checks that nothing forbids the thread the calls, and
// chooses a way to sleep that its filters allow.
func (t *Thread) allowsChain(g *gadgets, calls []Call) (sleepCall, error) {
	status, err := readStatus(t.s.p.pid, t.TID)
	if err != nil {
		return sleepCall{}, unfit(t, err)
	}
	if slices.Contains(strings.Fields(status.ThreadFeatures), "shstk") {
		return sleepCall{}, unfit(t, errors.New("it has a shadow stack, which signal frames made from outside would violate"))
	}
	if t.dispatchesSyscalls() {
		return sleepCall{}, unfit(t, errors.New("it dispatches its own system calls (PR_SET_SYSCALL_USER_DISPATCH)"))
	}
	if status.Seccomp == 0 {
		return arch.sleepCalls()[0], nil
	}
	filters, err := t.filters(status.Seccomp)
	if err != nil {
		return sleepCall{}, unfit(t, t.seccompError(uint64(calls[0].Number), err.Error()))
	}
	for _, c := range append(slices.Clone(calls), Call{Number: unix.SYS_RT_SIGRETURN}) {
		ip := g.syscall + arch.syscallSize()
		if c.Number == unix.SYS_RT_SIGRETURN {
			ip = g.sigreturnIP()
		}
		if err := t.verdict(filters, c, ip); err != nil {
			return sleepCall{}, unfit(t, err)
		}
	}
	var refused error
	for _, sleep := range arch.sleepCalls() {
		if refused = t.verdict(filters, sleep.call(0), g.syscall+arch.syscallSize()); refused == nil {
			return sleep, nil
		}
	}
	return sleepCall{}, unfit(t, refused)
}

// dispatchesSyscalls asks for struct ptrace_sud_config.
func (t *Thread) dispatchesSyscalls() bool {
	var config struct{ mode, selector, offset, length uint64 }
	_, err := ptracePointer(unix.PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG, t.TID, unsafe.Sizeof(config), unsafe.Pointer(&config))
	return err == nil && config.mode != 0
}
