package plan

import (
	"slices"
	"strings"

	"github.com/callreel/callreel/object"
)

// Hook is a function of the C library, or of the dynamic loader, at whose entry a stub does more than to write an event.
type Hook uint8

// The functions with one, by what is done there.
const (
	HookNone       Hook = iota
	HookPrctl           // prctl(option, mode, filter): threads name themselves by it, and restrict their system calls (seccomp(2))
	HookSyscall         // syscall(number, …), which may be either of prctl and seccomp
	HookSeccomp         // seccomp(operation, flags, filter), where a C library has it
	HookExec            // replaces the program; where children are followed
	HookFindObject      // _dl_find_object: unwinders ask it what a PC belongs to, those in arenas too
	HookLoader          // what a dynamic loader calls for debuggers when libraries come and go (r_brk of struct r_debug, <link.h>)
	HookPause           // by which a Go program pauses its own recording, see package mark
	HookResume          // by which it goes on
)

// hookOf is the one of a function of this name.
func hookOf(name string) Hook {
	name, _, _ = strings.Cut(name, "@") // its version
	switch name {
	case "prctl", "__prctl":
		return HookPrctl
	case "syscall":
		return HookSyscall
	case "seccomp":
		return HookSeccomp
	case "_dl_find_object":
		return HookFindObject
	}
	if rest, own := strings.CutPrefix(name, goMarks); own {
		switch rest {
		case "Pause":
			return HookPause
		case "Resume":
			return HookResume
		}
	}
	if isLoaderState(name) {
		return HookLoader
	}
	if isExec(name) {
		return HookExec
	}
	return HookNone
}

// goMarks is what the functions of package mark are called in a Go program.
const goMarks = "github.com/callreel/callreel/mark."

// OfGo says whether it is one that Go programs have, and only those.
func (g Hook) OfGo() bool { return g == HookPause || g == HookResume }

// HasHooks says whether the image defines a function with one; exec counts those by which programs are replaced.
func HasHooks(o *object.Image, exec bool) (bool, error) {
	found := false
	err := o.VisitSymbols(func(s *object.Symbol) bool {
		g := HookNone
		if s.IsFunc() {
			g = hookOf(s.Name)
		}
		found = g != HookNone && (exec || g != HookExec)
		return !found
	})
	return found, err
}

// hook places the entry site of a function that has no tier, for a look at its arguments; none when that can't be done
// either.
func (p *planner) hook(i int) []Site {
	p.begin(i)
	p.ofLoader = p.im.entryOf(p.f).hook == HookLoader
	p.held = p.im.marksOf[i]
	defer func() { p.ofLoader, p.held = false, nil }()
	if r := p.enter(); r.why != ReasonNone {
		p.unclaim()
		return nil
	}
	return slices.Clone(p.sites[:1])
}

// Restricts says whether a process may restrict its own system calls by it.
func (g Hook) Restricts() bool {
	switch g {
	case HookPrctl, HookSyscall, HookSeccomp:
		return true
	}
	return false
}

// isLoaderState says whether the function of this name is what a loader calls for debuggers: glibc and musl call it so.
func isLoaderState(name string) bool { return name == "_dl_debug_state" }

// isExec says whether the function of this name is one by which a C library's programs are replaced.
func isExec(name string) bool {
	switch name {
	case "execve", "__execve", "execveat", "fexecve":
		return true
	}
	return false
}

// Names says whether threads may name themselves by it.
func (g Hook) Names() bool { return g == HookPrctl || g == HookSyscall }
