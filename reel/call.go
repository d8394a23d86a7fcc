package reel

// CallFlags say how a call ended and what is uncertain about it.
type CallFlags uint8

const (
	// Unfinished: the call was open when the thread or the recording ended; End is that time.
	Unfinished CallFlags = 1 << iota
	// Implicit: no exit was recorded; End is the time of the event whose stack
	// pointer shows that the call was over (an exception, a longjmp, an exit
	// that is not probed).
	Implicit
	// AcrossLoss: events were lost while the call was open, so that its entry
	// and its exit may be those of two calls, or calls inside it may be missing.
	AcrossLoss
)

// Call is one call of a function: an entry and its end.
type Call struct {
	Func uint32 // ID
	// Depth is how many calls were open around it on its stack, 0 for the
	// outermost.
	Depth int
	// Stack numbers the stacks of the thread from 0, the one it started on; see
	// Pairer.
	Stack int
	// SP is the low 32 bits of the stack pointer at entry and exit.
	SP uint32
	// Start and End are in ticks, End not before Start. Under ClockExit Start
	// is that of the event before, under ClockNone both are 0.
	Start, End uint64
	// Inside is how many ticks of it were spent in calls that it made on the
	// same stack, or while that waited for another stack of the thread.
	Inside uint64
	Flags  CallFlags
	// States is what the thread did meanwhile, InsideStates what it did in the time that Inside counts, as far as that is known; see
	// [File.PairStates].
	States, InsideStates StateTimes
}

// Duration is the time from entry to end, in ticks.
func (c *Call) Duration() uint64 { return c.End - c.Start }

// Self is the time not spent in calls made or on another stack (a signal
// handler's own, a coroutine's), in ticks.
func (c *Call) Self() uint64 {
	d := c.Duration()
	return d - min(d, c.Inside)
}

// SelfStates splits Self by what the thread did.
func (c *Call) SelfStates() StateTimes { return c.States.Minus(c.InsideStates) }

// Complete reports whether both entry and exit were recorded and nothing
// between was lost: whether the duration can be relied on.
func (c *Call) Complete() bool { return c.Flags == 0 }
