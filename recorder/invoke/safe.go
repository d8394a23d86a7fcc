package invoke

import (
	"fmt"
	"strings"
)

// A place is one function that a thread is in, as far as it matters for locks.
type place struct {
	image  string // base name of its file, "" when the code is in none
	name   string // as the symbol table has it, "" when not known
	signal bool   // the kernel's frame of a signal that is handled
}

// A standing is where a thread stands: the places of its stack, innermost first, to their end.
type standing struct {
	places []place
	waits  bool   // it waits in a system call
	end    string // why the stack could not be walked to its end, "" if it was
}

// unsafe says why a function must not be called where a thread stands, "" if nothing speaks against it.
//
// The thread must hold no lock of the C library: what it is to call may want the same one, and would wait for it for ever. Locks that
// other threads hold do no harm, for those run on. Which locks a thread holds can't be seen; so it is by where it stands: in the C
// library it may be only in functions that are known to hold none. That is a list, and what isn't on it is refused, since most of the
// library's inner functions have no names.
func (s standing) unsafe() string {
	if s.end != "" {
		return "its stack can't be walked to its end: " + s.end
	}
	if len(s.places) == 0 {
		return "its stack can't be walked"
	}
	if s.places[0].image == "" {
		return "it runs code that is in no file: a JIT compiler's, or a recorder's"
	}
	for _, p := range s.places {
		if why := p.unsafe(); why != "" {
			return why
		}
	}
	if !s.waits {
		for _, p := range s.places {
			if p.name == "" && !isCLibrary(p.image) {
				return fmt.Sprintf("it runs, and is within a function of %s that has no name, which may hold a lock", p.image)
			}
		}
	}
	return s.inCLibrary()
}

// unsafe says what speaks against any call below a place.
func (p place) unsafe() string {
	name := plainName(p.name)
	switch {
	case p.signal:
		return "it handles a signal"
	case isAllocator(p.image):
		return "it is within an allocator: " + p.image
	case allocates(name):
		return "it is within an allocator: " + p.name
	case isUnwinder(p.image) || strings.HasPrefix(name, "Unwind_") || strings.HasPrefix(name, "cxa_"):
		return "it is within the C++ runtime: " + p.text()
	}
	return ""
}

func (p place) text() string {
	if p.name == "" {
		return "a function of " + p.image
	}
	return p.name
}

// inCLibrary looks at each way of the program's into the C library: what it has called there, and whether it is still there or was
// called back.
func (s standing) inCLibrary() string {
	for from := 0; from < len(s.places); {
		if !isCLibrary(s.places[from].image) {
			from++
			continue
		}
		to := from
		for to+1 < len(s.places) && isCLibrary(s.places[to+1].image) {
			to++
		}
		if why := s.called(s.places[from:to+1], from == 0, to == len(s.places)-1); why != "" {
			return why
		}
		from = to + 1
	}
	return ""
}

// called judges one call of the C library: the functions that it led to, the last of which is what was called. innermost: the thread is
// still there. outermost: nobody has called it, as where threads start.
func (s standing) called(run []place, innermost, outermost bool) string {
	if innermost && outermost {
		return "it is within the C library alone"
	}
	known := func(name string) bool { return callsBack[name] }
	switch {
	case innermost && s.waits:
		known = func(name string) bool { return waits[name] }
	case innermost:
		known = isPlain
	}
	why := "it is within the C library, which may hold a lock: "
	if !innermost {
		why = "it was called by the C library, which may hold a lock: "
	}
	for k, p := range run {
		// What the C library calls within itself often has no name; what a program calls has one.
		last := k == len(run)-1
		if p.name == "" && (!last || outermost) || known(plainName(p.name)) || last && outermost && startsThreads[plainName(p.name)] {
			continue
		}
		if c := run[len(run)-1]; c.name != "" && !last {
			return why + p.text() + ", within " + c.name // which is what the program knows
		}
		return why + p.text()
	}
	return ""
}

// plainName leaves out what C libraries put around the name of a function: underscores, and how wide its offsets are.
func plainName(name string) string {
	name, _, _ = strings.Cut(name, "@")
	name = strings.TrimLeft(name, "_")
	name = strings.TrimPrefix(name, "libc_")
	return strings.TrimSuffix(name, "64")
}
