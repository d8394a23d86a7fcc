package export

import "time"

// Stacks is how often each stack of a program was seen, as a sampler has it.
type Stacks struct {
	Wall      bool // at all times, not only while a thread had a processor
	Begun     time.Time
	Duration  time.Duration
	Period    time.Duration // that one sample stands for
	Images    []StackImage
	Locations []StackLocation
	Stacks    []Stack
	Comments  []string
}

// A StackImage is a file that code is in.
type StackImage struct {
	Path       string
	ID         string // build ID in hexadecimal; "" when it has none
	Start, End uint64 // where it is loaded
	Offset     uint64 // in the file, of what is at Start
}

// A StackLocation is a place in code, and what is there.
type StackLocation struct {
	Address uint64
	Image   int         // index of Stacks.Images; -1 for code that no file is behind
	Calls   []StackCall // innermost first: inlined calls, and last the function; may be empty
}

// A StackCall is a function at work.
type StackCall struct {
	Function string // demangled
	Linkage  string // "" when it is the same
	File     string // "" when not known
	Line     uint32 // 0 when not known
}

// A Stack is one that was seen.
type Stack struct {
	Process string // name of the process
	Frames  []int  // indices of Stacks.Locations, innermost first
	// Missing says why outer frames are missing, in a word; "" when none are.
	Missing string
	Kernel  bool // it was seen in the kernel, which the innermost frame had called
	Count   uint64
}

// Names that stand for no function, in the brackets that tools know them by.
const (
	kernelFrame  = "[kernel]"
	unknownFrame = "[unknown]"
)

// missingFrame stands for the frames that are missing.
func missingFrame(why string) string { return "[incomplete: " + why + "]" }

// name is what a place is called whose function is not known.
func (s *Stacks) name(l *StackLocation) string {
	if l.Image < 0 || l.Image >= len(s.Images) {
		return unknownFrame
	}
	return "[" + baseName(s.Images[l.Image].Path) + "]"
}

// baseName is the last part of a path of the traced system's, not of ours.
func baseName(path string) string {
	for k := len(path) - 1; k >= 0; k-- {
		if path[k] == '/' {
			return path[k+1:]
		}
	}
	return path
}
