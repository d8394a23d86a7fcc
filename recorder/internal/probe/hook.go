package probe

import (
	"slices"
	"strings"

	"github.com/callreel/callreel/object"
)

// Guard is a function of the C library, or of the dynamic loader, at whose entry a stub does more than to write an event.
type Guard uint8

// The functions with one, by what is done there.
const (
	GuardNone    Guard = iota
	GuardPrctl         // prctl(option, mode, filter): threads name themselves by it, and restrict their system calls (seccomp(2))
	GuardSyscall       // syscall(number, …), which may be either of prctl and seccomp
	GuardSeccomp       // seccomp(operation, flags, filter), where a C library has it
	GuardExec          // replaces the program; where children are followed
	GuardFrames        // _dl_find_object: unwinders ask it what a PC belongs to, those in arenas too
	GuardLoader        // what a dynamic loader calls for debuggers when libraries come and go (r_brk of struct r_debug, <link.h>)
)

// guardOf is the one of a function of this name.
func guardOf(name string) Guard {
	name, _, _ = strings.Cut(name, "@") // its version
	switch name {
	case "prctl", "__prctl":
		return GuardPrctl
	case "syscall":
		return GuardSyscall
	case "seccomp":
		return GuardSeccomp
	case "_dl_find_object":
		return GuardFrames
	}
	if isLoaderState(name) {
		return GuardLoader
	}
	if isExec(name) {
		return GuardExec
	}
	return GuardNone
}

// HasGuards says whether the image defines a function with one; exec counts those by which programs are replaced.
func HasGuards(o *object.Image, exec bool) (bool, error) {
	found := false
	err := o.VisitSymbols(func(s *object.Symbol) bool {
		g := GuardNone
		if s.IsFunc() {
			g = guardOf(s.Name)
		}
		found = g != GuardNone && (exec || g != GuardExec)
		return !found
	})
	return found, err
}

// guard places the entry site of a function that has no tier, for a look at its arguments; none when that can't be done
// either.
func (p *planner) guard(i int) []Site {
	p.begin(i)
	p.ofLoader = p.im.entryOf(p.f).guard == GuardLoader
	defer func() { p.ofLoader = false }()
	if r := p.enter(); r.why != ReasonNone {
		p.unclaim()
		return nil
	}
	return slices.Clone(p.sites[:1])
}

// Restricts says whether a process may restrict its own system calls by it.
func (g Guard) Restricts() bool {
	switch g {
	case GuardPrctl, GuardSyscall, GuardSeccomp:
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
func (g Guard) Names() bool { return g == GuardPrctl || g == GuardSyscall }
