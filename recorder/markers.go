package recorder

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/callreel/callreel/internal/glob"
	"github.com/callreel/callreel/mark/sdt"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/recorder/internal/choose"
	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/markers"
	"github.com/callreel/callreel/recorder/internal/plan"
)

// MarkerError says that a marker can't be recorded as it was asked for. Flag is the option, Text what it was given, and Err, which it wraps,
// says why.
type MarkerError = markers.Error

// MarkerSite is one place of a marker that a program has compiled in (SDT, USDT), and whether it can be recorded.
type MarkerSite struct {
	sdt.Note
	sdt.Meaning
	Module  string
	Address uint64 // link address for a file, load address for a process
	// Function is the name of the function that it is in, "" where none is known.
	Function string
	// Reason is why it can't be recorded, "" if it can. WithFunctions is the same where its function is recorded as well.
	Reason, WithFunctions string
	// Joined says that the stub of the function's site writes the marker's event where both are recorded; Single that its own site is written by a
	// single store.
	Joined, Single bool
	// Values are how each of the arguments is read.
	Values []MarkerValue
	// Count is what the semaphore was, -1 where there is none, or no process.
	Count int
	// Go says that it is no note, which Go programs don't have, but a function of package mark.
	Go bool
}

// MarkerValue is how an argument of a marker is read: "constant", "register", "memory" with no system call, or "read" by one. Reason is why
// it can't be, else "". Variable and Type are what the source has there, "" without debug information.
type MarkerValue struct{ How, Reason, Variable, Type string }

// MarkersOf lists the markers of an ELF file on disk, on any machine; with the error, which may be about notes that are damaged, those that
// can be read.
func MarkersOf(ctx context.Context, path string, globs []string, c Choice) ([]MarkerSite, error) {
	o, err := object.Opener{Memory: object.NewAllowance(c.Memory)}.Open(path)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	notes, err := mapped.Notes(o)
	if len(notes) == 0 {
		if isGo, _ := GoProgram(path); isGo && err == nil {
			err = fmt.Errorf("callreel: %s: %w", path, errGoMarkers)
		}
		return nil, err
	}
	im, perr := plan.NewImage(o, filepath.Base(path))
	if perr != nil {
		return nil, perr
	}
	im.Loader, im.NoSearch = mapped.IsLoader(o), c.NoFound
	for i := range notes {
		im.Marks = append(im.Marks, notes[i].Addr)
	}
	fns, perr := im.Plan(ctx)
	if perr != nil {
		return nil, perr
	}
	mapped.NameByDebugFile(c.debugFiles(), o, im.Module, fns)
	l := markerList{globs: globs, hit: make([]bool, len(globs))}
	l.add(ctx, o, c.debugFiles(), im.Module, 0, notes, im.Marked, fns)
	if err == nil {
		err = l.check()
	}
	return l.sites, err
}

// errGoMarkers says that there are none, of either kind.
var errGoMarkers = errors.New("a Go program has no SDT notes, and this one calls nothing of package github.com/callreel/callreel/mark")

// isGoWithoutMarkers says whether a file is a Go program, and has none. What can't be read is none.
func isGoWithoutMarkers(path string) bool {
	if isGo, err := GoProgram(path); err != nil || !isGo {
		return false
	}
	o, err := object.Open(path)
	if err != nil {
		return false
	}
	defer o.Close()
	notes, _ := mapped.Notes(o) // only whether there are any
	return len(notes) == 0
}

// markerList gathers sites.
type markerList struct {
	globs []string
	hit   []bool
	names []string
	sites []MarkerSite
}

// add adds an image's.
func (l *markerList) add(ctx context.Context, o *object.Image, files DebugFiles, module string, slide uint64, notes []sdt.Note, marks []plan.Mark, fns []plan.Function) {
	byAddr := map[uint64]*plan.Function{}
	for i := range fns {
		byAddr[fns[i].Addr] = &fns[i]
	}
	meanings := sdt.Meanings(notes, nil)
	values := markers.HowRead(ctx, o, files, slide, notes)
	for i := range notes {
		n, m := &notes[i], &marks[i]
		names := []string{n.Provider + ":" + n.Name, n.Name}
		l.names = append(l.names, names[0])
		if len(l.globs) > 0 && !glob.Any(l.globs, l.hit, names) {
			continue
		}
		s := MarkerSite{Note: *n, Meaning: meanings[i], Module: module, Address: n.Addr + slide, Reason: m.Alone.Reason.String(), Single: m.Single(), Count: -1,
			Go: o.Section(sdt.Section) == nil}
		if m.Alone.Reason != plan.ReasonNone {
			s.Single = false
		}
		s.WithFunctions = s.Reason
		if f := byAddr[m.Host]; f != nil && m.Host != 0 {
			s.Function = f.Name
			if f.Tier != plan.TierNone {
				s.Joined = m.With == plan.MarkJoined
				s.WithFunctions = m.ReasonWith().String()
			}
		}
		for _, v := range values[i] {
			s.Values = append(s.Values, MarkerValue(v))
		}
		l.sites = append(l.sites, s)
	}
}

func (l *markerList) check() error {
	for i, g := range l.globs {
		if !l.hit[i] {
			return glob.NoMatch("--name", g, l.names)
		}
	}
	return nil
}

// chooseModules says which modules a choice takes.
func chooseModules(c Choice) *choose.Chooser { return choose.New(c.rules()) }
