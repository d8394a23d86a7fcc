package mark

// The functions below are empty, and the compiler is kept from leaving their calls out: a recorder finds them by their names, also in programs
// without symbols, and reads their arguments where Go's calling convention has them. So a call costs about a nanosecond when nobody records.
//
// Names had best be constants: of those that a program makes the first 64 bytes are read by a system call. What is dear to make ready
// belongs behind Recording.

// Begin begins a span of the goroutine. Spans nest.
//
//go:noinline
func Begin(name string) {}

// BeginInt is Begin with a value.
//
//go:noinline
func BeginInt(name string, value int64) {}

// BeginText is Begin with a text, of which the first 64 bytes are recorded.
//
//go:noinline
func BeginText(name, text string) {}

// End ends the innermost span of the goroutine.
//
//go:noinline
func End() {}

// EndOf ends the goroutine's innermost span of that name.
//
//go:noinline
func EndOf(name string) {}

// Span is a span that has begun. The zero value is one without a name.
type Span struct{ name string }

// Start begins a span, for defer mark.Start("parse").End().
func Start(name string) Span {
	Begin(name)
	return Span{name}
}

// End ends the span, also with others of other names inside that haven't ended.
func (s Span) End() { EndOf(s.name) }

// AsyncBegin begins a span that no goroutine has: it may go on and end in another one. Name and ID say which it is.
//
//go:noinline
func AsyncBegin(name string, id uint64) {}

// AsyncStep says that a span that AsyncBegin has begun comes to something.
//
//go:noinline
func AsyncStep(name string, id uint64) {}

// AsyncEnd ends a span that AsyncBegin has begun.
//
//go:noinline
func AsyncEnd(name string, id uint64) {}

// FlowOut says that what is done here is the cause of what is done at the FlowIn of the same name and ID.
//
//go:noinline
func FlowOut(name string, id uint64) {}

// FlowIn says that what is done here was caused at a FlowOut.
//
//go:noinline
func FlowIn(name string, id uint64) {}

// Counter says what a value is from now on.
//
//go:noinline
func Counter(name string, value int64) {}

// CounterFloat is Counter for what isn't whole.
//
//go:noinline
func CounterFloat(name string, value float64) {}

// Instant says that something happened.
//
//go:noinline
func Instant(name string) {}

// InstantInt is Instant with a value.
//
//go:noinline
func InstantInt(name string, value int64) {}

// InstantText is Instant with a text, of which the first 64 bytes are recorded.
//
//go:noinline
func InstantText(name, text string) {}

// Pause pauses the recording of this process: of what this goroutine does from here on nothing is recorded, and others follow with their next
// call. A recorder that records no function of this package obeys, too.
//
//go:noinline
func Pause() {}

// Resume ends all of the process's own pauses: every call from here on is recorded, unless somebody else has paused the recorder.
//
//go:noinline
func Resume() {}

// GoroutineName gives the goroutine a name, of which the first 64 bytes are recorded.
//
//go:noinline
func GoroutineName(name string) {}

// semaphores[0] isn't 0 while somebody records: a recorder counts it up and down, as it does the semaphores of SDT markers, and finds it by the
// code of Recording. Nothing here writes it. What is behind it isn't 0, so that the linker puts both where the file has bytes of its own: a
// recorder counts nothing elsewhere.
var semaphores = [2]uint16{0, 0xCA11}

// Recording says whether somebody records these functions as markers, for what is dear to make ready.
//
//go:noinline
func Recording() bool { return semaphores[0] != 0 }
