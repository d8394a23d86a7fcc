package overdue

// Call is a call that was seen on a stack: the low 32 bits of the stack pointer before its function's first instruction, and the function.
type Call struct{ SP, ID uint32 }

// Look is what was seen of a thread at a tick: calls of functions that aren't recorded, outermost first.
type Look struct {
	Tick  uint64
	Calls []Call
}
