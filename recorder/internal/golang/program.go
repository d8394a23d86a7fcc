package golang

import (
	"debug/buildinfo"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/object/pclntab"
)

// A Go program's functions are in its pclntab, which the runtime needs and stripping leaves (runtime/symtab.go). Its runtime goes
// by PCs, moves stacks and gives a function little space below the stack pointer, so its stubs are of their own kind: see goevent.go in stub/amd64 and stub/arm64.

// Program is what is known of a Go program.
type Program struct {
	Version string // as go1.26.1
	// GoID is where goid is in the runtime's struct g, and ProcID, on arm64, where the thread's ID is in struct m.
	GoID, ProcID int32
	// AsyncPreempt is the range of runtime.asyncPreempt, above whose frames the PCs are at which goroutines were preempted.
	AsyncPreempt object.Range
	// Unsupported is why its functions can't be probed, nil if they can, and Cause is that in a word.
	Unsupported error
	Cause       Cause
	// Functions are all of it, by address. The names refer to the image's bytes.
	Functions []Function
	// DeferReturn is the address of what a function calls that goes on behind a panic which it has recovered from, 0 if there is none. A
	// function may have several places for that, of which its entry in pclntab names one; nothing in the code leads there.
	DeferReturn uint64
}

// Cause is why a program isn't supported.
type Cause uint8

// The causes.
const (
	CauseNone       Cause = iota
	CauseUnexpected       // it isn't as Go programs are
	CauseVersion          // its version's runtime isn't known
	CauseC                // it has C code in it, whose threads and stacks are not the Go runtime's alone
)

// Function is one function of a pclntab. All addresses are link addresses.
type Function struct {
	Start, End uint64
	Name       string
	Assembly   bool // not made by the Go compiler
	// Resumes is where a function goes on that has recovered from a panic, 0 if it doesn't.
	Resumes uint64
}

// errProgram is in the chain of Program.Unsupported.
var errProgram = errors.New("callreel: Go program")

// refusal is a cause with its explanation.
type refusal struct {
	cause Cause
	text  string
}

func (r *refusal) Error() string { return r.text }

// Read returns what is known of a Go program, nil if the image is none. It refers to the image's bytes.
func Read(o *object.Image) *Program {
	tab := pclntab.Section(o)
	if tab == nil && o.Section(".go.buildinfo") == nil {
		return nil
	}
	g := &Program{}
	if err := g.read(o, tab); err != nil {
		g.Functions, g.Unsupported, g.Cause = nil, fmt.Errorf("%w: %w", errProgram, err), CauseUnexpected
		if r := (*refusal)(nil); errors.As(err, &r) {
			g.Cause = r.cause
		}
	}
	return g
}

func (g *Program) read(o *object.Image, tab *object.Section) error {
	info, err := buildinfo.Read(o)
	if err != nil {
		return err
	}
	g.Version = info.GoVersion
	if g.GoID, g.ProcID, err = offsets(info.GoVersion); err != nil {
		return &refusal{CauseVersion, err.Error()}
	}
	// A position-independent program has a loader, but needs no library. Threads' storage is the runtime's own there, too.
	if o.Type != object.Executable && o.Interp() == "" {
		return errors.New("it is no program, but a library or a plugin")
	}
	if libraries := o.Dependencies(); len(libraries) > 0 {
		return &refusal{CauseC, fmt.Sprintf("it is linked with C code (%s); build it with CGO_ENABLED=0", libraries[0])}
	}
	text := o.Section(".text")
	if text == nil || tab == nil {
		return errors.New("it has no section .text, or no .gopclntab")
	}
	t, err := pclntab.Open(o)
	if err != nil {
		return err
	}
	if t.Text() != text.Addr {
		return fmt.Errorf("its text begins at %#x, the section at %#x", t.Text(), text.Addr)
	}
	if g.Functions, err = functions(o, t); err != nil {
		return err
	}
	if n := len(g.Functions); n > 0 && g.Functions[n-1].End > text.Addr+text.Size {
		return fmt.Errorf("section %s: its last function ends behind the text", tab.Name)
	}
	for i := range g.Functions {
		f := &g.Functions[i]
		switch {
		case f.Name == deferReturn:
			g.DeferReturn = f.Start
		case f.Name == "runtime.asyncPreempt" || f.Name == "runtime.asyncPreempt.abi0":
			g.AsyncPreempt = object.Range{Name: f.Name, Start: f.Start, End: f.End}
		case strings.HasPrefix(f.Name, "runtime/cgo.") || strings.HasPrefix(f.Name, "runtime/race."):
			return &refusal{CauseC, "it has C code in it; build it with CGO_ENABLED=0"}
		}
	}
	if g.AsyncPreempt.Start == 0 {
		return errors.New("it has no runtime.asyncPreempt")
	}
	return nil
}

// offsets are those of goid in struct g and of procid in struct m (runtime/runtime2.go) of a version.
func offsets(version string) (goid, procid int32, err error) {
	rest, ok := strings.CutPrefix(version, "go1.")
	n := 0
	for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
		n++
	}
	minor, err := strconv.Atoi(rest[:n])
	switch {
	case !ok || err != nil || strings.Contains(version, "X:"):
		return 0, 0, fmt.Errorf("its version %.40q isn't known", version)
	case minor < 22:
		return 0, 0, fmt.Errorf("it was built by %.40s, and what is older than go1.22 isn't known", version)
	case minor == 22, minor == 25, minor == 26:
		return 152, procIDOffset(minor), nil
	case minor == 23, minor == 24: // syscallbp has come, and gobuf.ret has not gone yet
		return 160, procIDOffset(minor), nil
	}
	return 0, 0, fmt.Errorf("it was built by %.40s, and what is newer than go1.26 isn't known", version)
}

// functionCost is what each function is counted for, in bytes: what is here, and what is planned of it.
const functionCost = 512

// deferReturn is the name of Program.DeferReturn.
const deferReturn = "runtime.deferreturn"

// functions lists the functions of a table.
func functions(o *object.Image, t *pclntab.Table) ([]Function, error) {
	n := t.Len()
	if err := o.Take(uint64(n)*functionCost, "a plan of so many functions"); err != nil {
		return nil, err
	}
	list := make([]Function, 0, n)
	for k := range n {
		f, err := t.Func(k)
		if err != nil {
			return nil, err
		}
		name := t.Name(f.Name)
		// Functions of a made-up table may share a name, of which each has a copy.
		if err := o.Take(uint64(len(name)), "the functions' names"); err != nil {
			return nil, err
		}
		list = append(list, Function{Start: f.Start, End: f.End, Name: string(name), Assembly: f.Flags&pclntab.Assembly != 0, Resumes: f.DeferReturn})
	}
	return list, nil
}
