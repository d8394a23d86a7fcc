//go:build !linux

package process

import (
	"context"
	"os"
	"syscall"
	"time"
)

// A Process is a live process. There are none here: Open gives ErrUnsupported.
type Process struct{}

// A Stopped is a process whose threads are stopped.
type Stopped struct {
	Since time.Time // when the first thread was told to stop
}

// A Thread is one thread of a stopped process.
type Thread struct {
	TID int
}

// A Handle holds on to a process.
type Handle struct{}

// A Launched is a program that Launch has started.
type Launched struct {
	Process *Process
}

// Regs are a thread's general registers. There are none here.
type Regs struct{}

// PC returns 0.
func (*Regs) PC() uint64 { return 0 }

// SP returns 0.
func (*Regs) SP() uint64 { return 0 }

// ThreadPointer returns 0.
func (*Regs) ThreadPointer() uint64 { return 0 }

// DWARF returns nil.
func (*Regs) DWARF() []uint64 { return nil }

// A Vec is one piece of memory for ReadVec.
type Vec struct {
	Addr uint64
	Buf  []byte
}

// Supported returns ErrUnsupported.
func Supported() error { return ErrUnsupported }

// CodeSupported returns ErrUnsupported.
func CodeSupported() error { return ErrUnsupported }

// CallsSupported returns ErrUnsupported.
func CallsSupported() error { return ErrUnsupported }

// OpenForCode returns ErrUnsupported.
func OpenForCode(int) (*Process, error) { return nil, ErrUnsupported }

// Open returns ErrUnsupported.
func Open(int) (*Process, error) { return nil, ErrUnsupported }

// Launch returns ErrUnsupported.
func Launch(context.Context, Command, StopOptions, func(*Stopped) error) (*Launched, error) {
	return nil, ErrUnsupported
}

// AwaitExec returns ErrUnsupported.
func AwaitExec(context.Context, int, int, time.Duration, StopOptions, func(), func(*Stopped) error) error {
	return ErrUnsupported
}

// FromTerminal returns false.
func FromTerminal(syscall.Signal, int) bool { return false }

// Close does nothing.
func (*Process) Close() error { return nil }

// Pid returns 0.
func (*Process) Pid() int { return 0 }

// StartTime returns 0.
func (*Process) StartTime() uint64 { return 0 }

// Alive returns false.
func (*Process) Alive() bool { return false }

// Exe returns ErrUnsupported.
func (*Process) Exe() (string, bool, error) { return "", false, ErrUnsupported }

// ExeFile returns ErrUnsupported.
func (*Process) ExeFile(Mapping) (string, error) { return "", ErrUnsupported }

// Comm returns an empty name.
func (*Process) Comm() string { return "" }

// Cmdline returns ErrUnsupported.
func (*Process) Cmdline() ([]string, error) { return nil, ErrUnsupported }

// Maps returns ErrUnsupported.
func (*Process) Maps() ([]Mapping, error) { return nil, ErrUnsupported }

// LimitMemory does nothing.
func (*Process) LimitMemory(int64) {}

// VisitMaps returns ErrUnsupported.
func VisitMaps(int, func(*Mapping) bool) error { return ErrUnsupported }

// ThreadName returns ErrUnsupported.
func ThreadName(int, int) (string, error) { return "", ErrUnsupported }

// Auxv returns ErrUnsupported.
func (*Process) Auxv() (Auxv, error) { return Auxv{}, ErrUnsupported }

// Status returns ErrUnsupported.
func (*Process) Status() (Status, error) { return Status{}, ErrUnsupported }

// ThreadStatus returns ErrUnsupported.
func (*Process) ThreadStatus(int) (Status, error) { return Status{}, ErrUnsupported }

// Threads returns ErrUnsupported.
func (*Process) Threads() ([]ThreadInfo, error) { return nil, ErrUnsupported }

// ThreadInfo isn't supported here.
func (*Process) ThreadInfo(int) (ThreadInfo, error) { return ThreadInfo{}, ErrUnsupported }

// MemoryShared returns ErrUnsupported.
func (*Process) MemoryShared() (int, string, error) { return 0, "", ErrUnsupported }

// ReadAt returns ErrUnsupported.
func (*Process) ReadAt([]byte, uint64) (int, error) { return 0, ErrUnsupported }

// WriteAt returns ErrUnsupported.
func (*Process) WriteAt([]byte, uint64) (int, error) { return 0, ErrUnsupported }

// ReadVec returns ErrUnsupported.
func (*Process) ReadVec([]Vec) (int, error) { return 0, ErrUnsupported }

// PrepareSyscalls returns ErrUnsupported.
func (*Process) PrepareSyscalls() error { return ErrUnsupported }

// Stop returns ErrUnsupported.
func (*Process) Stop(context.Context, StopOptions, func(*Stopped) error) (time.Duration, error) {
	return 0, ErrUnsupported
}

// Process returns nil.
func (*Stopped) Process() *Process { return nil }

// Threads returns nil.
func (*Stopped) Threads() []*Thread { return nil }

// Thread returns nil.
func (*Stopped) Thread(int) *Thread { return nil }

// Syscall returns ErrUnsupported.
func (*Stopped) Syscall(uintptr, ...uint64) (uint64, error) { return 0, ErrUnsupported }

// SyscallBatch returns ErrUnsupported.
func (*Stopped) SyscallBatch([]Call) ([]SyscallResult, error) { return nil, ErrUnsupported }

// A FirstStack is the stack that the kernel made for the program, and the thread on it.
type FirstStack struct {
	TID         int
	Start, Size uint64
}

// FirstStack returns ErrUnsupported.
func (*Stopped) FirstStack() (FirstStack, error) { return FirstStack{}, ErrUnsupported }

// DescribesThreads returns ErrUnsupported.
func (*Stopped) DescribesThreads() (bool, error) { return false, ErrUnsupported }

// TIDOffset returns ErrUnsupported.
func (*Stopped) TIDOffset() (int32, error) { return 0, ErrUnsupported }

// Info returns ErrUnsupported.
func (*Thread) Info() (ThreadInfo, error) { return ThreadInfo{}, ErrUnsupported }

// GroupStopped returns false.
func (*Thread) GroupStopped() bool { return false }

// Regs returns ErrUnsupported.
func (*Thread) Regs() (*Regs, error) { return nil, ErrUnsupported }

// SetRegs returns ErrUnsupported.
func (*Thread) SetRegs(*Regs) error { return ErrUnsupported }

// ThreadPointer returns ErrUnsupported.
func (*Thread) ThreadPointer() (uint64, error) { return 0, ErrUnsupported }

// InSyscall returns ErrUnsupported.
func (*Thread) InSyscall() (uint64, bool, error) { return 0, false, ErrUnsupported }

// XState returns ErrUnsupported.
func (*Thread) XState() ([]byte, error) { return nil, ErrUnsupported }

// SetXState returns ErrUnsupported.
func (*Thread) SetXState([]byte) error { return ErrUnsupported }

// SigMask returns ErrUnsupported.
func (*Thread) SigMask() (uint64, error) { return 0, ErrUnsupported }

// SetSigMask returns ErrUnsupported.
func (*Thread) SetSigMask(uint64) error { return ErrUnsupported }

// Step returns ErrUnsupported.
func (*Thread) Step(int, func(*Regs) bool) (bool, error) { return false, ErrUnsupported }

// Nudge returns ErrUnsupported.
func (*Thread) Nudge(int, func(*Regs) bool) (bool, error) { return false, ErrUnsupported }

// SeccompAllows returns ErrUnsupported.
func (*Thread) SeccompAllows(uintptr, ...uint64) (bool, error) { return false, ErrUnsupported }

// SeccompMode returns ErrUnsupported.
func (*Thread) SeccompMode() (int, error) { return 0, ErrUnsupported }

// Wait returns ErrUnsupported.
func (*Launched) Wait() (ExitStatus, error) { return ExitStatus{}, ErrUnsupported }

// Pid returns 0.
func (*Launched) Pid() int { return 0 }

// Signal returns ErrUnsupported.
func (*Launched) Signal(os.Signal) error { return ErrUnsupported }

// A Tracing is a command that runs under our eyes.
type Tracing struct{}

// Trace returns ErrUnsupported.
func Trace(context.Context, Command, func(*Tracing) error) (ExitStatus, error) {
	return ExitStatus{}, ErrUnsupported
}

// EachThread returns ErrUnsupported.
func (*Process) EachThread(context.Context, StopOptions, []int, func(*Thread, error) error, func(int, time.Duration)) error {
	return ErrUnsupported
}

// ReadUpTo reads nothing.
func (*Process) ReadUpTo([]byte, uint64) int { return 0 }

// WaitingAt returns ErrUnsupported.
func (*Process) WaitingAt(int) (Waiting, error) { return Waiting{}, ErrUnsupported }

// A Passage notices a thread's coming by an address. There are none here.
type Passage struct{}

// Activity returns ErrUnsupported.
func (*Process) Activity(int) (Activity, error) { return Activity{}, ErrUnsupported }

// Blocked returns ErrUnsupported.
func (*Process) Blocked(int) (uint64, error) { return 0, ErrUnsupported }

// CPU returns ErrUnsupported.
func (*Process) CPU() (time.Duration, error) { return 0, ErrUnsupported }

// FileOf returns ErrUnsupported.
func (*Process) FileOf(int) (string, error) { return "", ErrUnsupported }

// Passage returns ErrUnsupported.
func (*Process) Passage(int, uint64, int) (*Passage, error) { return nil, ErrUnsupported }

// Seen returns nil.
func (*Passage) Seen() []uint64 { return nil }

// Close does nothing.
func (*Passage) Close() error { return nil }

// OtherRoot says that no process is known to see other files.
func OtherRoot(int) (dir string, ok bool) { return "", false }
