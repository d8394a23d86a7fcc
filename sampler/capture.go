package sampler

import (
	"time"

	"github.com/callreel/callreel/unwind"
)

// A Capture is the stacks of a process's threads.
type Capture struct {
	PID     int
	Name    string // of the process, at most 15 bytes; from outside, like all names here
	Arch    string // Go's name
	Images  []*Image
	Threads []Thread
	// Problems are what was wrong without ending the work: files that could not be
	// opened, or were not those that the process has loaded.
	Problems []error

	space *space
}

// Close closes the files of the images. What was named stays valid.
func (c *Capture) Close() error { return c.space.close() }

// A Thread is one thread and its stack.
type Thread struct {
	TID     int
	Name    string // "" in cores, which do not tell
	State   string // "running", "sleeping", "blocked" (in the kernel, uninterruptibly), "stopped", "zombie" …; "" in cores
	Signal  int    // in cores: the signal that ended the process, for the thread that got it
	Frames  []Frame
	End     unwind.End
	Stopped time.Duration // how long the thread was stopped by us
}

// A Frame is one function call that is under way. Where a call was inlined there is
// a frame for it, with the address of the one that it is inlined into behind it.
type Frame struct {
	Address  uint64 // where it goes on: the next instruction, or the return address
	Image    *Image // nil when no file is behind the code
	Offset   uint64 // Address from Image.Load
	Function string // demangled; "" when not known
	Linkage  string // as the symbol table has it
	File     string // "" when not known
	Line     uint32 // 0 when not known
	Inlined  bool   // into the next frame
	SP       uint64
	By       unwind.Rule
	Flags    unwind.Flags
}

// stateNames are the words for the letters of /proc/PID/stat (proc_pid_stat(5)).
func stateName(letter byte) string {
	switch letter {
	case 'R':
		return "running"
	case 'S':
		return "sleeping"
	case 'D':
		return "blocked"
	case 'T':
		return "stopped"
	case 't':
		return "traced"
	case 'Z':
		return "zombie"
	case 'X', 'x':
		return "dead"
	case 'I':
		return "idle"
	}
	return "unknown"
}
