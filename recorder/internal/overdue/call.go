package overdue

// Call is a call that was seen on a stack: the low 32 bits of the stack pointer before its function's first instruction, and the function.
type Call struct{ SP, ID uint32 }

// Look is what was seen of a thread at a tick: calls of functions that aren't recorded, outermost first.
type Look struct {
	Tick  uint64
	Calls []Call
	// Within is the recorded call that the look was at: what it has seen lies within that. None says that it was at all of the stack.
	Within Call
	// Wait is how often the thread had begun to wait by then, 0 if it wasn't found waiting. What two looks have seen in the same wait are the same
	// calls.
	Wait uint64
	// Loose says that it is usual for the thread to write nothing for so long: what two looks have seen may be calls of their own.
	Loose bool
	until uint64 // the tick at which it was found in the same wait last; 0 for Tick
}

// last is up to when what was seen went on for sure.
func (l *Look) last() uint64 { return max(l.Tick, l.until) }
