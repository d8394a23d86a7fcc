package process

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// An invocationPlan is what a call's frame is made from.
type invocationPlan struct {
	function  uint64
	arguments []Argument
	code      uint64 // where the function returns to
	own       Regs   // the thread's registers
	rest      Regs   // the same in a form that needs no help from the kernel
	mask      uint64 // its own
	vector    []byte // its own, as ptrace gives it
}

// An invocationFrame is a piece of stack on which a thread calls a function and then restores itself, with no help from outside.
type invocationFrame struct {
	base, end uint64 // its lowest address, which is the stack pointer at the function's start, and above its highest
	frame     uint64 // of the signal frame with the thread's own state
	after     uint64 // the address behind the system call that restores it
	bytes     []byte // what to write at base
	start     Regs   // at the function's first instruction
	home      Regs   // with which the thread restores itself at once
	vector    []byte // at the function's first instruction, as ptrace takes it
}

// An invocation is a call that is under way.
type invocation struct {
	t       *Thread
	call    Invocation
	f       *invocationFrame
	code    *returnCode
	own     Regs
	back    Regs // see resumable
	mask    uint64
	vector  []byte
	filters []Filter // nil without seccomp
	begun   time.Time

	stackEnd uint64 // of the mapping that the stack is in

	asks    bool   // it is still in ErrnoLocation
	errnoAt uint64 // where errno is, 0 if that isn't known
	errno   [4]byte

	forgets bool  // the kernel has forgotten how long the thread's own call would have waited
	ordered bool  // to stop
	failure error // why it can't go on
}

// Invoke makes the thread call a function as if it were called by the code where the thread stands, and puts the thread back: its
// registers, its vector state and signal mask, and the system call that it waits in, which goes on waiting for what is left of its
// timeout. Whether the thread may call the function there is the caller's to know: it must hold no lock that the function wants.
// Other threads run on if they were not stopped.
//
// At no instant does the target depend on us: if we are killed, the function returns by itself to a signal frame that restores the
// thread. A system call then begins anew with its whole timeout.
//
// Signals wait until the thread is back, but those by which an instruction fails. These, and abort(3), are not delivered: the thread is
// put back. Its system calls are looked at, so that none ends the process, and none is made that a seccomp filter would kill it for.
//
// The error wraps ErrNotInvoked if nothing was done, and then the thread can be used again; else the thread was let go. When ctx ends
// the call is overdue at once.
func (t *Thread) Invoke(ctx context.Context, call Invocation) error {
	v, err := t.prepareInvocation(call)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotInvoked, err)
	}
	if err := v.code.lay(); err != nil {
		return fmt.Errorf("%w: %w", ErrNotInvoked, err)
	}
	if _, err := t.s.p.WriteAt(v.f.bytes, v.f.base); err != nil {
		return errors.Join(fmt.Errorf("%w: %w", ErrNotInvoked, err), v.code.take())
	}
	// From here on it is done, whatever happens; giving up halfway is for overdue to decide.
	t.s.ctx = context.WithoutCancel(t.s.ctx)
	err = v.start()
	if err == nil {
		err = v.run(ctx)
	}
	if errors.Is(err, ErrLeftInFunction) || errors.Is(err, ErrFunctionLeft) || !t.ended {
		return v.code.unlock(err) // something may still come back to it
	}
	return errors.Join(err, v.code.take())
}

func (t *Thread) prepareInvocation(call Invocation) (*invocation, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	if err := checkInvocation(call); err != nil {
		return nil, err
	}
	if t.groupStop {
		return nil, fmt.Errorf("process %d is stopped by a signal such as SIGSTOP; send it SIGCONT first", t.s.p.pid)
	}
	v := &invocation{t: t, call: call}
	if err := v.allowed(); err != nil {
		return nil, err
	}
	if err := t.leaveRestartableSequence(); err != nil {
		return nil, err
	}
	regs, err := t.Regs()
	if err != nil {
		return nil, err
	}
	if v.mask, err = t.SigMask(); err != nil {
		return nil, err
	}
	if v.vector, err = t.XState(); err != nil {
		return nil, err
	}
	back, rest, err := t.resumable(*regs)
	if err != nil {
		return nil, err
	}
	v.own, v.back = *regs, back
	if v.code, err = t.s.p.returnCode(); err != nil {
		return nil, err
	}
	if err := v.filtered(call0(unix.SYS_RT_SIGRETURN), v.code.end()); err != nil {
		return nil, err
	}
	v.f, err = arch.invocation(invocationPlan{
		function: call.Function, arguments: call.Arguments, code: v.code.at, own: *regs, rest: rest, mask: v.mask, vector: v.vector,
	})
	if err != nil {
		return nil, err
	}
	if err := t.ownsStack(*regs, v.f.base); err != nil {
		return nil, err
	}
	v.stackEnd, err = t.hasRoom(v.f.base, call.Room)
	return v, err
}

// hasRoom checks that there is so much stack below an address, and returns where the mapping ends that the stack is in. The first thread's stack grows by itself, up to a limit and a gap above
// what is mapped below it.
func (t *Thread) hasRoom(base, room uint64) (end uint64, err error) {
	maps, err := t.s.mapsOnce()
	if err != nil {
		return 0, err
	}
	const gap = 1 << 20 // stack_guard_gap, 256 pages unless the kernel was told otherwise
	lowest := uint64(0)
	for k, m := range maps {
		if !m.Contains(base) {
			continue
		}
		lowest, end = m.Start, m.End
		if m.Special == "[stack]" {
			var limit unix.Rlimit
			if err := unix.Prlimit(t.s.p.pid, unix.RLIMIT_STACK, nil, &limit); err != nil {
				break
			}
			lowest = m.End - min(limit.Cur, m.End)
			if k > 0 {
				lowest = max(lowest, maps[k-1].End+gap)
			}
			lowest = min(lowest, m.Start)
		}
	}
	if base < room || base-room < lowest {
		return 0, fmt.Errorf("%w: it has less than %d KiB of stack left", ErrNoSafeThread, room>>10)
	}
	return end, nil
}

// argumentRegisters says what goes where, with so many registers for integers and for floats.
func argumentRegisters(arguments []Argument, addrs []uint64, forIntegers, forFloats int) (integers, floats, stack []uint64) {
	for i, a := range arguments {
		v := a.Value
		if a.Data != nil {
			v = addrs[i]
		}
		switch {
		case a.Float && len(floats) < forFloats:
			floats = append(floats, v)
		case !a.Float && len(integers) < forIntegers:
			integers = append(integers, v)
		default:
			stack = append(stack, v)
		}
	}
	return integers, floats, stack
}

func checkInvocation(call Invocation) error {
	size := 0
	for _, a := range call.Arguments {
		size += len(a.Data)
	}
	switch {
	case call.Function == 0:
		return errors.New("no function")
	case len(call.Arguments) > MaxArguments:
		return fmt.Errorf("%d arguments, at most %d", len(call.Arguments), MaxArguments)
	case size > MaxInvocationData:
		return fmt.Errorf("%d bytes of strings, at most %d", size, MaxInvocationData)
	case call.Room > 1<<30:
		return fmt.Errorf("%d bytes of stack", call.Room)
	}
	return nil
}

// allowed checks what no function can be called under, and reads the filters.
func (v *invocation) allowed() error {
	t := v.t
	status, err := readStatus(t.s.p.pid, t.TID)
	if err != nil {
		return err
	}
	if slices.Contains(strings.Fields(status.ThreadFeatures), "shstk") {
		return fmt.Errorf("thread %d has a shadow stack, which signal frames made from outside would violate", t.TID)
	}
	if t.dispatchesSyscalls() {
		return fmt.Errorf("thread %d dispatches its own system calls (PR_SET_SYSCALL_USER_DISPATCH)", t.TID)
	}
	if status.Seccomp == 0 {
		return nil
	}
	if v.filters, err = t.filters(status.Seccomp); err != nil {
		return t.seccompError(unix.SYS_RT_SIGRETURN, err.Error())
	}
	return nil
}

func call0(number uintptr) Call { return Call{Number: number} }

// filtered returns an error for a system call that a filter answers otherwise than by letting it pass or by an error number.
func (v *invocation) filtered(c Call, ip uint64) error {
	if v.filters == nil {
		return nil
	}
	verdict, err := Verdict(v.filters, syscallData(c, ip))
	if err != nil {
		return v.t.seccompError(uint64(c.Number), err.Error())
	}
	if !Passes(verdict) && (verdict&seccompRetAction != seccompRetErrno || c.Number == unix.SYS_RT_SIGRETURN) {
		return v.t.seccompError(uint64(c.Number), fmt.Sprintf("it answers %#x", verdict))
	}
	return nil
}

const seccompRetErrno = 0x00050000

// start leads the thread to the function. Each step leaves it whole: first it is one that would restore itself at once, and only when
// all else is in place is it one that calls the function.
func (v *invocation) start() error {
	t := v.t
	v.begun = time.Now()
	steps := []struct {
		doing string
		do    func() error
	}{
		{"set options", func() error { return setOptions(t.TID, unix.PTRACE_O_TRACEEXEC|unix.PTRACE_O_TRACESYSGOOD) }},
		{"write registers", func() error { return setRegs(t.TID, v.f.home) }},
		{"write vector state", func() error { return arch.setVector(t.TID, v.f.vector) }},
		{"block signals", func() error { return setSigMask(t.TID, stepMask) }},
		{"write registers", func() error { return setRegs(t.TID, v.entry()) }},
	}
	t.haveRegs, t.returnsTo = false, v.code.at
	for _, s := range steps {
		if err := s.do(); err != nil {
			return t.fail(s.doing, err)
		}
	}
	return v.goOn()
}

// entry are the registers with which the thread goes to the function, or first to the one that says where errno is.
func (v *invocation) entry() Regs {
	v.asks = v.call.ErrnoLocation != 0
	r := v.f.start
	if v.asks {
		r.SetPC(v.call.ErrnoLocation)
	}
	return r
}

// ReturnsTo is the address that a function returns to which the thread was made to call by Invoke, 0 if there is none.
func (t *Thread) ReturnsTo() uint64 { return t.returnsTo }

// goOn lets the thread run to its next stop.
func (v *invocation) goOn() error {
	v.t.stopped, v.t.haveRegs = false, false
	return v.t.pass(unix.PTRACE_SYSCALL, report{event: -1})
}
