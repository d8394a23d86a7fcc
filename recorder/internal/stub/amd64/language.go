package amd64

import (
	"github.com/callreel/callreel/recorder/internal/golang"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// language is how stubs work in a program, by what its threads are made for: those of the C library, or those that goroutines change on.
type language struct {
	eventWriter
	// handlersWrite says that signal handlers write events: so signals are blocked while a thread's slot changes.
	handlersWrite bool
	// callsStay says that a call ends on the thread that it began on.
	callsStay bool
	// threadsNamed says that threads have names of their own.
	threadsNamed bool
	// shared says that events may be written by shared routines.
	shared bool
	// switched says that events have their switches. They begin with the one instruction then that switches exchange.
	switched bool
	// unwound says that unwinders in the process are told of the arena's code.
	unwound bool
}

// eventWriter is the code of events, which keeps all registers and flags that may be alive where they are.
type eventWriter interface {
	// event appends an event. The stack pointer is spDelta bytes below its value at the function's entry.
	event(c *coder, id uint32, exit bool, spDelta int32)
	// captured appends an event of a function that has captures, with a payload if capture isn't nil.
	captured(c *coder, id uint32, exit bool, spDelta int32, capture *stub.Capture)
	// predicates appends the test of a function's predicates, behind an event.
	predicates(c *coder, p stub.Predicates, id uint32, exit bool, spDelta int32)
	// mark appends the event of a marker. The stack pointer is pushed bytes below what it is at the marker; if it isn't, the red zone is alive.
	mark(c *coder, id uint32, pushed int32)
	// routines appends what such events call besides, and payloadRoutines what those with a payload do.
	routines(c *coder)
	payloadRoutines(c *coder)
}

// languageOf is the one of what is asked.
func languageOf(cfg *stub.Config) language {
	if cfg.Go != nil {
		return goLanguage(*cfg.Go)
	}
	return cLanguage()
}

// cLanguage is of programs whose threads are the C library's, or the kernel's.
func cLanguage() language {
	return language{eventWriter: cEvents{}, handlersWrite: true, callsStay: true, threadsNamed: true, shared: true, switched: true, unwound: true}
}

// goLanguage is of Go programs. Their signal handlers write no events, see goevent.go; their runtime walks stacks by tables of its own.
func goLanguage(r golang.Runtime) language { return language{eventWriter: goEvents{r}} }

// cEvents are events that save registers below the stack pointer.
type cEvents struct{}

func (cEvents) routines(*coder)        {}
func (cEvents) payloadRoutines(*coder) {}

// goEvents are events that use registers in which nothing is alive.
type goEvents struct{ golang.Runtime }

func (g goEvents) routines(c *coder) {
	c.routines.goroutine.slow = g.emitSlow(c, false)
	if c.cfg.Predicates != 0 {
		g.emitPredicates(c)
	}
}

func (g goEvents) payloadRoutines(c *coder) { c.routines.captures.enter = g.emitSlow(c, true) }
