package arm64

// routines are the addresses of what stubs call, and of what these use, once it is emitted; 0 for what isn't asked for.
type routines struct {
	slow      uint64    // the slow path
	nap       uint64    // where the time of a nap is
	mask      uint64    // where a mask of all signals is
	shared    [2]uint64 // the shared event routines: entry, exit; 0 where every stub has the event inline
	lowerExit uint64    // the shared routine of exits that keep x16 and x17 on the stack
	// lower are the shared event routines of entries whose stack pointer has moved, and generic the generic trampolines, by that
	// distance.
	lower, generic map[int32]uint64

	seccomp    uint64    // what is done before a thread restricts its own system calls
	follow     uint64    // opens a forked child's gate
	exec       uint64    // what is done before the program is replaced
	loader     uint64    // what is done when the dynamic loader has loaded libraries
	names      uint64    // what is done where a thread names itself
	unwindList uint64    // the list of arenas whose unwind information is to be found
	chosen     [2]uint64 // decide whether a call is recorded: entry, exit
	open       [2]uint64 // push a record on the open stack, or pop it
	slowGather uint64    // the slow path of events with a payload
	read       uint64    // the reading of memory
	gather     map[gatherKey]uint64
	predicates [2]uint64 // what functions with predicates call at their entry, and at their exit
	threadID   uint64    // finds the thread's ID where nothing keeps it
	// Of a Go program: the slow paths of events, and of those with a payload, what is called at the entry and the exit of functions with predicates,
	// and where the stacks are that they run on.
	goSlow, goGather, goStacks uint64
	goPredicates               [2]uint64
}
