package invoke

import (
	"time"

	"github.com/callreel/callreel/object"
)

// Options say what is called, and how long that may take.
type Options struct {
	PID  int
	Call Expression
	// TID is the thread that is to make the call; 0 for whichever stands well.
	TID int
	// Wait is for how long a point is looked for where the function can be called, 0 for DefaultWait.
	Wait time.Duration
	// Timeout is how long the function may take, 0 for DefaultTimeout; what happens then says Overdue.
	Timeout time.Duration
	Overdue Overdue
	// Type is what the result is read as, one of Types; "" for what is known of the function.
	Type string
	// DebugFiles finds debug information, nil for *object.DebugSearch.
	DebugFiles DebugFiles
	// Memory bounds what the files of the process may make us keep of them, nil for the default.
	Memory *object.Allowance
}

// The defaults of Options.
const (
	DefaultWait    = 2 * time.Second
	DefaultTimeout = 5 * time.Second
)

// Overdue says what becomes of a thread whose function has not returned in time.
type Overdue int

const (
	// BackIfSafe puts the thread back as soon as it stands where it holds no lock of the C library; if that doesn't come soon, it is left
	// in the function.
	BackIfSafe Overdue = iota
	// Back puts it back wherever it stands.
	Back
	// Leave leaves it in the function, from which it comes back by itself.
	Leave
)

// room is how much stack a function may need, in bytes. Threads of musl have 128 KiB in all.
const room = 64 << 10

// A Result is what has come of a call.
type Result struct {
	Function string
	Image    string // base name of its file
	Address  uint64
	TID      int
	Thread   string // its name
	Where    string // what it was in, in words
	Value    Value
	Float    uint64 // xmm0's low half
	Second   uint64 // rdx
	// Took is how long the function ran, Stopped how long the thread was kept from its own work in all.
	Took, Stopped time.Duration
	// WaitsAnew says that the thread was in a system call with a timeout, which has begun anew.
	WaitsAnew bool
}
