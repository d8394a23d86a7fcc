package probe

import (
	"debug/buildinfo"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/object/pclntab"
)

// A Go program's functions stand in its pclntab, which the runtime needs and stripping leaves (runtime/symtab.go). Its runtime goes
// by PCs, moves stacks and gives a function little room below the stack pointer, so its stubs are of their own kind: see goevent.go.

// GoImage is what is known of a Go program.
type GoImage struct {
	Version string // as go1.26.1
	// GoID is where goid stands in the runtime's struct g.
	GoID int32
	// AsyncPreempt is the range of runtime.asyncPreempt, on whose frames PCs stand at which goroutines were preempted.
	AsyncPreempt object.Range
	// Unsupported is why its functions can't be probed, nil if they can, and Reason is that in a word.
	Unsupported error
	Reason      Reason

	funcs       []goFunc
	deferReturn uint64 // address of that function, 0 if there is none
}

// goFunc is one function of a pclntab.
type goFunc struct {
	start, end uint64
	name       string
	assembly   bool
	// resumes is where a function goes on that has recovered from a panic, 0 if it doesn't.
	resumes uint64
}

// errGo is in the chain of GoImage.Unsupported.
var errGo = errors.New("callreel: Go program")

// goRefusal is a reason with its explanation.
type goRefusal struct {
	Reason
	text string
}

func (r *goRefusal) Error() string { return r.text }

// ReadGo returns what is known of a Go program, nil if the image is none. It refers to the image's bytes.
func ReadGo(o *object.Image) *GoImage {
	tab := pclntab.Section(o)
	if tab == nil && o.Section(".go.buildinfo") == nil {
		return nil
	}
	g := &GoImage{}
	if err := g.read(o, tab); err != nil {
		g.funcs, g.Unsupported, g.Reason = nil, fmt.Errorf("%w: %w", errGo, err), ReasonGo
		if r := (*goRefusal)(nil); errors.As(err, &r) {
			g.Reason = r.Reason
		}
	}
	return g
}

func (g *GoImage) read(o *object.Image, tab *object.Section) error {
	info, err := buildinfo.Read(o)
	if err != nil {
		return err
	}
	g.Version = info.GoVersion
	if g.GoID, err = goidOffset(info.GoVersion); err != nil {
		return &goRefusal{ReasonGoVersion, err.Error()}
	}
	// A position-independent program has a loader, but needs no library. Threads' storage is the runtime's own there, too.
	if o.Type != object.Executable && o.Interp() == "" {
		return errors.New("it is no program, but a library or a plugin")
	}
	if libraries := o.Dependencies(); len(libraries) > 0 {
		return &goRefusal{ReasonCgo, fmt.Sprintf("it is linked with C code (%s); build it with CGO_ENABLED=0", libraries[0])}
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
	if g.funcs, err = goFunctions(o, t); err != nil {
		return err
	}
	if n := len(g.funcs); n > 0 && g.funcs[n-1].end > text.Addr+text.Size {
		return fmt.Errorf("section %s: its last function ends behind the text", tab.Name)
	}
	for i := range g.funcs {
		f := &g.funcs[i]
		switch {
		case f.name == "runtime.asyncPreempt" || f.name == "runtime.asyncPreempt.abi0":
			g.AsyncPreempt = object.Range{Name: f.name, Start: f.start, End: f.end}
		case strings.HasPrefix(f.name, "runtime/cgo.") || strings.HasPrefix(f.name, "runtime/race."):
			return &goRefusal{ReasonCgo, "it has C code in it; build it with CGO_ENABLED=0"}
		}
	}
	if g.AsyncPreempt.Start == 0 {
		return errors.New("it has no runtime.asyncPreempt")
	}
	return nil
}

// goidOffset is the offset of goid in struct g (runtime/runtime2.go) of a version.
func goidOffset(version string) (int32, error) {
	rest, ok := strings.CutPrefix(version, "go1.")
	n := 0
	for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
		n++
	}
	minor, err := strconv.Atoi(rest[:n])
	switch {
	case !ok || err != nil || strings.Contains(version, "X:"):
		return 0, fmt.Errorf("its version %.40q isn't known", version)
	case minor < 22:
		return 0, fmt.Errorf("it was built by %.40s, and what is older than go1.22 isn't known", version)
	case minor == 22, minor == 25, minor == 26:
		return 152, nil
	case minor == 23, minor == 24: // syscallbp has come, and gobuf.ret has not gone yet
		return 160, nil
	}
	return 0, fmt.Errorf("it was built by %.40s, and what is newer than go1.26 isn't known", version)
}

// goFunctions lists the functions of a table.
func goFunctions(o *object.Image, t *pclntab.Table) ([]goFunc, error) {
	n := t.Len()
	if err := o.Take(uint64(n)*planCost, "a plan of so many functions"); err != nil {
		return nil, err
	}
	list := make([]goFunc, 0, n)
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
		list = append(list, goFunc{start: f.Start, end: f.End, name: string(name), assembly: f.Flags&pclntab.Assembly != 0, resumes: f.DeferReturn})
	}
	return list, nil
}

// deferReturn is what a function calls that goes on behind a panic which it has recovered from. It may have several places for that,
// of which its entry in pclntab names one; nothing in the code leads there.
const deferReturn = "runtime.deferreturn"

// findGoChunks makes the chunks of a Go program.
func (im *Image) findGoChunks() {
	for i := range im.Go.funcs {
		f := &im.Go.funcs[i]
		t := im.textAt(f.start)
		if t == nil || f.end > t.end || f.end == f.start {
			continue
		}
		if f.resumes != 0 {
			im.markTarget(f.resumes)
		}
		im.markTarget(f.start)
		if f.name == deferReturn {
			im.Go.deferReturn = f.start
		}
		im.chunks = append(im.chunks, chunk{start: f.start, end: t.withoutPadding(f.start, f.end),
			names: names{uint32(len(im.names)), 1}, assembly: f.assembly})
		im.names = append(im.names, f.name)
	}
	for i := range im.chunks {
		im.chunks[i].owner = int32(i)
	}
}

// withoutPadding returns where what fills up a function begins.
func (t *text) withoutPadding(start, end uint64) uint64 {
	last := end
	for pc := start; pc < end; {
		in, err := amd64.Decode(t.data[pc-t.start : end-t.start])
		if err != nil {
			return end
		}
		pc += uint64(in.Len)
		if in.Kind != amd64.Breakpoint {
			last = pc
		}
	}
	return last
}

// stackCheck returns the index of the first instruction behind the check whether the stack is large enough
// (cmd/internal/obj/x86, stacksplit), 0 if the function has none. Those that grow the stack come to the check once more.
func stackCheck(insts []inst) int {
	const most = 7
	for k := 0; k+1 < len(insts) && k < most; k++ {
		in, next := &insts[k], &insts[k+1]
		if in.Map == amd64.MapPrimary && in.Opcode == 0x3B && in.HasMem && in.Base == int8(amd64.R14) && in.Index == amd64.NoReg &&
			(in.Disp == 16 || in.Disp == 24) && (in.Reg == uint8(amd64.RSP) || in.Reg == uint8(amd64.R12)) &&
			next.Kind == amd64.CondJump && next.Opcode&15 == uint8(amd64.CondBE) && k+2 < len(insts) {
			return k + 2
		}
		if in.Ends() || in.Kind == amd64.Call || in.Kind == amd64.IndirectCall || in.GPRWritten()&^(amd64.R12.Mask()|amd64.R14.Mask()) != 0 {
			return 0
		}
	}
	return 0
}

// movable says whether the instruction can run in the stub.
func (p *planner) movable(in *inst) bool {
	return in.movable() && (p.im.Go == nil || !p.mayPanic(in))
}

// mayPanic says whether a Go function's instruction may fault, where the runtime makes a panic of that by the PC. From a PC that
// isn't Go code it can only do so when the return address is on top of the stack: it takes the fault for one of the caller's then
// (runtime/signal_unix.go, shouldPushSigpanic).
func (p *planner) mayPanic(in *inst) bool {
	if p.frameless || !in.MayFault() {
		return false
	}
	if in.HasMem && in.Index == amd64.NoReg {
		switch in.Base {
		case int8(amd64.RSP), int8(amd64.RBP), int8(amd64.R14): // the frame and g are there
			return in.Disp < 0 && in.Base == int8(amd64.RSP)
		}
		if in.RIPRelative {
			return false
		}
	}
	return true
}

// isFrameless says whether the return address is on top of the stack in all of the function.
func (p *planner) isFrameless() bool {
	for k := range p.insts {
		in := &p.insts[k]
		if d, known := in.StackDelta(); in.Kind != amd64.Return && (!known || d != 0 || in.Kind == amd64.Call || in.Kind == amd64.IndirectCall) {
			return false
		}
	}
	return true
}

// goIndirect finds out whether an indirect jump of a Go function is an exit. There are but two kinds: those by a table of a
// switch, whose words are found in data, and tail calls.
func (p *planner) goIndirect(in *inst) refusal {
	if in.HasMem && in.Index != amd64.NoReg {
		return refusal{}
	}
	if in.HasMem && in.Base == int8(amd64.RSP) || in.GPRRead()&(goScratch|amd64.RSP.Mask()) != 0 {
		return refusal{ReasonInstruction, in.addr}
	}
	in.role = roleExit
	return refusal{}
}
