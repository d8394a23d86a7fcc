package amd64

// routines are the addresses of what stubs call, and of what these use, once it is emitted; 0 for what isn't asked for.
type routines struct {
	threadID   uint64    // finds the thread's ID, see threadid.go
	slow       uint64    // the slow path
	nap, mask  uint64    // where the time of a nap is, and a mask of all signals
	shared     [2]uint64 // the shared event routines: entry, exit; 0 where every stub has the event inline
	chosen     [2]uint64 // decide whether a call is recorded: entry, exit
	open       openStack
	predicates predicateRoutines
	seccomp    uint64 // what is done before a thread restricts its own system calls
	follow     uint64 // opens a forked child's gate
	exec       uint64 // what is done before the program is replaced
	loader     uint64 // what is done when the dynamic loader has loaded libraries
	names      uint64 // what is done where a thread names itself
	unwindList uint64 // the list of arenas whose unwind information is to be found
	captures   captureRoutines
	keptAt     uint64 // where cfg.Kept is
	goroutine  goRoutines
	marked     bool // there are events of markers
	// generic are the generic trampolines, entries the event routines behind them, both by SPDelta.
	generic, entries map[int32]uint64
}

// goRoutines are those of a Go program.
type goRoutines struct {
	slow       uint64 // see goEvents.emitSlow
	predicates uint64 // see goEvents.emitPredicates
	stacksAt   uint64 // where golang.Runtime.Stacks is, to which one stack is added
}
