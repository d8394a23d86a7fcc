package target

import (
	"errors"

	"github.com/callreel/callreel/process"
)

// language is how a process is recorded by what its program is made of: native code, whose threads are the C library's or the kernel's, or
// Go, whose runtime runs goroutines on threads of its own. stub/amd64 has the same for the code of stubs.
type language struct {
	traits
	threads
}

// threads is what must be known of a process's threads, besides what the kernel says of them.
type threads interface {
	// identify finds out how stubs tell threads apart, and notes it in Runtime. It fails where they can't.
	identify(s *Target, st *process.Stopped) error
	// prepare is done before recording begins, while the process runs.
	prepare(s *Target) error
	// suspended makes sure that nothing will go on inside a site that isn't on a thread now. It fails with errInTheWay if that may change
	// soon, and with a preemptedError if it may not.
	suspended(s *Target, st *process.Stopped, maps []process.Mapping, inside func(pc uint64) bool) error
}

// traits are what is true of all programs of a language. They are known of processes, too, whose recorder is dead.
type traits struct {
	handlers handlers
	// golang is noted in the recovery record, from which another recorder gets all of this.
	golang bool
	// codeInFile says that arenas are in a file, if there can be one.
	codeInFile bool
	// loadsLibraries says that a dynamic loader may load more code while the process runs.
	loadsLibraries bool
	// threadsNamed says that threads give themselves names.
	threadsNamed bool
	// unwound says that unwinders in the process are told of the arenas' code.
	unwound bool
	// ownsStack is process.StopOptions.OwnsStack; nil where the C library's stacks are all.
	ownsStack func(p *process.Process, t *process.Thread, base uint64) bool
}

// stopOptions are those with which the process is stopped.
func (t *traits) stopOptions() process.StopOptions {
	return process.StopOptions{OwnsStack: t.ownsStack}
}

// handlers tells where on a thread's stack frames of signal handlers may be.
type handlers interface {
	// within returns how many bytes from the stack pointer up are to be looked through for such frames, 0 if no handler runs there.
	within(p *process.Process, t *process.Thread, sp uint64) (uint64, error)
	// elsewhere says whether a handler may have interrupted another one, on another stack.
	elsewhere() bool
}

// traitsOf are a Go program's or a native one's.
func traitsOf(golang bool) traits {
	if golang {
		return traits{handlers: goHandlers{}, golang: true, ownsStack: goStacks()}
	}
	return traits{handlers: nativeHandlers{}, codeInFile: true, loadsLibraries: true, threadsNamed: true, unwound: true}
}

// native is the language of all programs but Go's.
func native() language { return language{traitsOf(false), nativeThreads{}} }

// nativeThreads are the C library's, or the kernel's in a program without one. What doesn't run has its PC in its registers, or in a
// signal handler's frame.
type nativeThreads struct{}

func (nativeThreads) prepare(*Target) error { return nil }

func (nativeThreads) suspended(*Target, *process.Stopped, []process.Mapping, func(uint64) bool) error {
	return nil
}

func (nativeThreads) identify(s *Target, st *process.Stopped) (err error) {
	s.Runtime.TIDOffset, err = st.TIDOffset()
	if s.Runtime.NoTLS = errors.Is(err, process.ErrNoThreadID); s.Runtime.NoTLS {
		s.FirstStack, err = st.FirstStack()
		described, err2 := st.DescribesThreads()
		if s.Runtime.DescriptorAt, s.Runtime.DescriptorID = 0, 0; described {
			s.Runtime.DescriptorAt, s.Runtime.DescriptorID = process.DescriptorAt, process.DescriptorID
		}
		err = errors.Join(err, err2)
	}
	return err
}

// nativeHandlers run on the interrupted stack or on any other (sigaltstack).
type nativeHandlers struct{}

func (nativeHandlers) elsewhere() bool { return true }

func (nativeHandlers) within(*process.Process, *process.Thread, uint64) (uint64, error) {
	return 8 << 20, nil // a stack's default limit: frames of handlers are near the top
}
