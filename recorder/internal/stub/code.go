package stub

import "fmt"

// Code is what the arena of some images holds, and what changes in their text to lead there.
type Code struct {
	Base    uint64  // where it is in the target
	Bytes   []byte  // what is there
	Patches []Patch // islands first, then sites, each in the order of their addresses
	Slots   []Slot  // of functions whose probes are made on the first call
	// Rebindings are the slots of imports that lead here, in the order of the probes.
	Rebindings []Rebinding
	// UnwindList is the offset in Bytes of the list of arenas whose unwind information is to be found, see MaxUnwindEntries; 0 if there
	// is none. It is at a multiple of 16.
	UnwindList uint32
	Sites
}

// Sites answers what only the processor's package can tell of the sites that lead to some code.
type Sites interface {
	// InsideOf says whether pc is inside displaced instructions, where no thread may go on once they are replaced, and of which function,
	// by its ID.
	InsideOf(pc uint64) (id uint32, inside bool)
	// StubFor returns where in the code the same instruction is as at pc, which is inside displaced instructions.
	StubFor(pc uint64) (uint64, bool)
	// Switches are what switches the events of one of the functions that the code was made of, by its index there.
	Switches(index int) ([]Switch, error)
}

// Purpose is what some stubs make system calls for.
type Purpose uint8

// The purposes. Those behind the first are of some recordings only, and their system calls come besides those of the first.
const (
	ForRings      Purpose = iota // any stub does, where a thread needs a chunk
	ForChildren                  // Config.Follow
	ForThreadIDs                 // Config.NoTLS
	ForReading                   // captures that read memory
	ForPredicates                // Config.Predicates
	ForLoader                    // Config.Loads
	ForNames                     // Config.Names
)

// String says when stubs call.
func (p Purpose) String() string {
	names := [...]string{"when a ring is full", "when a forked child is followed", "to know which thread calls", "to read arguments in memory",
		"when a trigger fires", "when a library is loaded", "when a thread gets a name"}
	if int(p) < len(names) {
		return names[p]
	}
	return fmt.Sprintf("for purpose %d", uint8(p))
}

// Syscall is a system call that stubs make: its number, and the arguments by which seccomp filters may tell it from others of that number.
type Syscall struct {
	Number uint64
	Args   []uint64 // from the first on
}
