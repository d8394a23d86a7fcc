package process

import (
	"errors"
	"fmt"
	"syscall"
	"time"
)

// An Invocation is a function that a thread is to call, see Thread.Invoke.
type Invocation struct {
	Function  uint64 // its address
	Arguments []Argument
	// ErrnoLocation is the address of the C library's function that tells where errno is (__errno_location), 0 for none: with it errno is
	// what it was when the thread goes on. It is called before.
	ErrnoLocation uint64
	// Room is how much stack must be free below the thread's stack pointer, in bytes, besides what the call's own frame takes.
	Room uint64
	// Timeout is when Overdue is asked for the first time.
	Timeout time.Duration
	// Returned is called when the function has returned, while the thread still stands behind it: what the result points to is as the
	// function has left it. It must not take long.
	Returned func(Returned)
	// Overdue is called each time that the call has lasted for too long, with the thread stopped somewhere in the function. nil means
	// that the thread is left there, to come back by itself.
	Overdue func(*Thread) Overdue
}

// An Argument is one argument of a function of the C ABI.
type Argument struct {
	Value uint64 // a register's bits
	Float bool   // it goes in a vector register, as a double does
	// Data, if not nil, is copied to the thread's stack for the time of the call, and Value is its address then. All of one call's may
	// have MaxInvocationData bytes.
	Data []byte
}

// MaxInvocationData is how many bytes the data of a call's arguments may have.
const MaxInvocationData = 16 << 10

// MaxArguments is how many arguments a call may have.
const MaxArguments = 64

// Returned are the registers with which a function returns (System V AMD64 ABI §3.2.3, AAPCS64 §6.9).
type Returned struct {
	Integer [2]uint64 // rax, rdx; x0, x1
	Float   [2]uint64 // the low halves of xmm0, xmm1; v0, v1
	X87     [10]byte  // a long double, in the form of x87's registers: st(0); what is in v0
	// WaitsAnew says that the thread was in a system call with a timeout which the function made the kernel forget: it starts over.
	WaitsAnew bool
	Took      time.Duration
}

// Overdue is what to do with a call that has lasted for too long.
type Overdue struct {
	Do    OverdueAction
	After time.Duration // for AskAgain: when
}

// OverdueAction says how to go on with a call that has lasted for too long.
type OverdueAction int

const (
	// LeaveThere leaves the thread in the function; when that returns the thread goes on where it was, without us.
	LeaveThere OverdueAction = iota
	// PutBack puts the thread back where it was, with the function half done: what it has locked stays locked.
	PutBack
	// AskAgain lets the function run on for a while.
	AskAgain
)

// How a call may end otherwise than by the function's return. ErrNotInvoked: nothing was done. After the others the thread is where it
// was, but for ErrLeftInFunction and ErrFunctionLeft.
var (
	ErrNotInvoked     = errors.New("the function was not called")
	ErrLeftInFunction = errors.New("the function has not returned in time; the thread is left in it and goes on by itself when it returns")
	ErrPutBack        = errors.New("the function has not returned in time; the thread was put back with the function half done")
	ErrFunctionFault  = errors.New("the function has failed; the thread was put back with the function half done")
	ErrFunctionEnds   = errors.New("the function would have ended or replaced the program; it was kept from it, and the thread was put back")
	ErrFunctionLeft   = errors.New("the function has left its caller by a jump; the thread goes on where that led to")
)

// A FunctionFaultError is a fault in a function that was called. It is an ErrFunctionFault.
type FunctionFaultError struct {
	Signal  int
	PC      uint64
	Address uint64 // that was accessed, of SIGSEGV and SIGBUS
}

func (e *FunctionFaultError) Error() string {
	text := fmt.Sprintf("%v: %v at %#x", ErrFunctionFault, syscall.Signal(e.Signal), e.PC)
	if e.Signal == int(syscall.SIGSEGV) || e.Signal == int(syscall.SIGBUS) {
		text += fmt.Sprintf(", access to %#x", e.Address)
	}
	return text
}

// Is makes errors.Is(err, ErrFunctionFault) true.
func (e *FunctionFaultError) Is(target error) bool { return target == ErrFunctionFault }
