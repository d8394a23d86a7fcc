package plan

import (
	"cmp"
	"slices"

	"github.com/callreel/callreel/recorder/internal/golang"
)

// What assembly files define may use as it likes the registers that an event takes for dead (see goevent.go), and so may other
// assembly that calls it. So these functions are probed only where a look at all assembly of the program shows that nothing is in those
// registers, nor in the flags, at the entry and at the exits. That needs knowing who comes to them: the Go compiler, by a
// convention that has nothing there, or other assembly, which is looked at. Functions of the runtime may be called by a convention of
// their own (gcWriteBarrier), or change stacks, so of these only some are taken; and of those that are local to a file, too,
// whose address may be in a table.

// goLive are registers that an event of a Go function changes, by their masks in the processor's decoder, and liveFlags.
type goLive uint32

const liveFlags goLive = 1 << 31

// stepKind is where an instruction of assembly leads.
type stepKind uint8

const (
	stepOn      stepKind = iota // to the next one
	stepEnds                    // to none: a handler gets it
	stepReturn                  // to the caller
	stepCall                    // to a function and back
	stepTable                   // to one whose address may be in a table, and back
	stepThrough                 // to one that isn't known, and back
	stepJump                    // to another instruction, or maybe
	stepWild                    // where isn't known
)

// step is an instruction of assembly, as far as the look at it goes.
type step struct {
	addr, to     uint64
	read, writes goLive // writes: surely
	kind         stepKind
	on           bool // maybe to the next one
}

// assemblyCode is what a processor says of assembly.
type assemblyCode struct {
	all goLive // the registers, and the flags
	// steps gives those of a chunk, and the index of the first one behind the check of the stack.
	steps func(im *Image, c *chunk) (steps []step, behindCheck int)
}

// assemblyFunc is a function in assembly being looked at.
type assemblyFunc struct {
	chunk int
	steps []step
	first int      // behind the check of the stack
	live  []goLive // before each instruction
	exit  goLive   // what its callers have there when it returns
	wild  bool     // it goes where isn't known
	table bool     // see golang.IsTableAssembly
}

// assembly is all of it that a program has.
type assembly struct {
	im    *Image
	all   goLive
	fns   []*assemblyFunc // sorted by start
	again bool            // something became live
	table goLive          // what is live behind calls by tables: those that take the address at an index
}

// maxAssembly is how many bytes of assembly are looked at, all functions together, each of which takes some hundred bytes of memory.
// The standard library has half a megabyte.
const maxAssembly = 2 << 20

// takeAssembly finds the functions in assembly that can be probed like those of the Go compiler.
func (im *Image) takeAssembly(code assemblyCode) {
	a := &assembly{im: im, all: code.all}
	budget := uint64(maxAssembly)
	for i := range im.chunks {
		if c := &im.chunks[i]; c.assembly && c.badAt == 0 && c.end-c.start <= budget {
			budget -= c.end - c.start
			f := &assemblyFunc{chunk: i, table: golang.IsTableAssembly(im.name(c))}
			f.steps, f.first = code.steps(im, c)
			f.live = make([]goLive, len(f.steps)+1)
			f.live[len(f.steps)] = a.all // nothing should run out of it
			a.fns = append(a.fns, f)
		}
	}
	for a.again = true; a.again; { // live only ever grows
		a.again = false
		for _, f := range a.fns {
			if f.table && a.table&^f.exit != 0 {
				f.exit |= a.table
				a.again = true
			}
			a.flow(f)
		}
	}
	for _, f := range a.fns {
		c := &im.chunks[f.chunk]
		if golang.IsPlainAssembly(im.name(c)) && !f.wild && f.exit == 0 && f.live[f.first] == 0 && a.goesWhereNothingIsLive(f) {
			c.plain = true
		}
	}
}

// at returns the function that holds addr, nil if it isn't in assembly, and the index of the instruction there, -1 if none begins there.
func (a *assembly) at(addr uint64) (f *assemblyFunc, k int) {
	i, found := slices.BinarySearchFunc(a.fns, addr, func(f *assemblyFunc, addr uint64) int { return cmp.Compare(a.im.chunks[f.chunk].start, addr) })
	if !found {
		i--
	}
	if i < 0 || addr >= a.im.chunks[a.fns[i].chunk].end {
		return nil, -1
	}
	f = a.fns[i]
	if k, found = slices.BinarySearchFunc(f.steps, addr, func(s step, addr uint64) int { return cmp.Compare(s.addr, addr) }); !found {
		k = -1
	}
	return f, k
}

// liveAt is what is live where control goes to. In what the Go compiler has made it is nothing, at a function's start.
func (a *assembly) liveAt(addr uint64) goLive {
	if f, k := a.at(addr); f != nil {
		if k < 0 {
			return a.all
		}
		return f.live[k]
	}
	if k := a.im.chunkAt(addr); k >= 0 && a.im.chunks[k].start == addr && !a.im.chunks[k].assembly {
		return 0
	}
	return a.all
}

// returnsTo notes what is live when the function that control goes to, by a call or a jump, returns.
func (a *assembly) returnsTo(addr uint64, live goLive) {
	if f, _ := a.at(addr); f != nil && live&^f.exit != 0 {
		f.exit |= live
		a.again = true
	}
}

// flow goes through a function from its end to its start, once.
func (a *assembly) flow(f *assemblyFunc) {
	for k := len(f.steps) - 1; k >= 0; k-- {
		s := &f.steps[k]
		live := goLive(0)
		if s.on {
			live = f.live[k+1]
		}
		switch s.kind {
		case stepReturn:
			live = f.exit
		case stepCall: // nobody relies on a callee's writing them
			a.returnsTo(s.to, live)
			live |= a.liveAt(s.to)
		case stepTable:
			if live&^a.table != 0 {
				a.table |= live
				a.again = true
			}
		case stepJump:
			live |= a.liveAt(s.to)
			if g, _ := a.at(s.to); g != f {
				a.returnsTo(s.to, f.exit)
			}
		case stepWild:
			live, f.wild = a.all, true
		}
		if live = live&^s.writes | s.read; live&^f.live[k] != 0 {
			f.live[k] |= live
			a.again = true
		}
	}
}

// goesWhereNothingIsLive says whether that is so of all jumps that leave the function, before which there is to be an exit's event. It comes behind
// a condition, if there is one, and before what the target is read from.
func (a *assembly) goesWhereNothingIsLive(f *assemblyFunc) bool {
	for k := range f.steps {
		s := &f.steps[k]
		if s.kind != stepJump {
			continue
		}
		if g, _ := a.at(s.to); g != f && (a.liveAt(s.to) != 0 || !s.on && s.read != 0) {
			return false
		}
	}
	return true
}
