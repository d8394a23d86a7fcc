package plan

import (
	"cmp"
	"slices"

	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/golang"
)

// What assembly files define may use as it likes the registers that an event takes for dead (see goevent.go), and so may other
// assembly that calls it. So these functions are probed only where a look at all assembly of the program shows that nothing is in those
// registers, nor in the flags, at the entry and at the exits. That needs knowing who comes to them: the Go compiler, by a
// convention that has nothing there, or other assembly, which is looked at. Functions of the runtime may be called by a convention of
// their own (gcWriteBarrier), or change stacks, so of these only some are taken; and of those that are local to a file, too,
// whose address may be in a table.

// goLive are registers that an event of a Go function changes, and liveFlags.
type goLive uint8

const (
	liveR12 goLive = 1 << iota
	liveR13
	liveR15
	liveFlags
	liveAll = liveR12 | liveR13 | liveR15 | liveFlags
)

// liveOf are those of the registers.
func liveOf(mask uint16) (l goLive) {
	for i, r := range [...]amd64.Reg{amd64.R12, amd64.R13, amd64.R15} {
		if mask&r.Mask() != 0 {
			l |= 1 << i
		}
	}
	return l
}

// assemblyFunc is a function in assembly being looked at.
type assemblyFunc struct {
	chunk int
	insts []inst
	live  []goLive // before each instruction
	exit  goLive   // what its callers have there when it returns
	wild  bool     // it goes where isn't known
	table bool     // see golang.IsTableAssembly
}

// assembly is all of it that a program has.
type assembly struct {
	im    *Image
	fns   []*assemblyFunc // sorted by start
	again bool            // something became live
	table goLive          // what is live behind calls by tables: those that take the address at an index
}

// maxAssembly is how many bytes of assembly are looked at, all functions together, each of which takes some hundred bytes of memory.
// The standard library has half a megabyte.
const maxAssembly = 2 << 20

// takeAssembly finds the functions in assembly that can be probed like those of the Go compiler.
func (im *Image) takeAssembly() {
	a := &assembly{im: im}
	budget := uint64(maxAssembly)
	for i := range im.chunks {
		if c := &im.chunks[i]; c.assembly && c.badAt == 0 && c.end-c.start <= budget {
			budget -= c.end - c.start
			f := &assemblyFunc{chunk: i, insts: im.instsOf(c), table: golang.IsTableAssembly(im.name(c))}
			f.live = make([]goLive, len(f.insts)+1)
			f.live[len(f.insts)] = liveAll // nothing should run out of it
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
		if golang.IsPlainAssembly(im.name(c)) && !f.wild && f.exit == 0 && f.live[behindStackCheck(f.insts)] == 0 && a.goesWhereNothingIsLive(f) {
			c.plain = true
		}
	}
}

// instsOf decodes a chunk.
func (im *Image) instsOf(c *chunk) []inst {
	var insts []inst
	t := im.textAt(c.start)
	for pc := c.start; pc < c.end; {
		in := inst{addr: pc}
		if !t.decode(&in.Inst, pc, c.end) {
			break
		}
		pc += uint64(in.Len)
		insts = append(insts, in)
	}
	return insts
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
	if k, found = slices.BinarySearchFunc(f.insts, addr, func(in inst, addr uint64) int { return cmp.Compare(in.addr, addr) }); !found {
		k = -1
	}
	return f, k
}

// liveAt is what is live where control goes to. In what the Go compiler has made it is nothing, at a function's start.
func (a *assembly) liveAt(addr uint64) goLive {
	if f, k := a.at(addr); f != nil {
		if k < 0 {
			return liveAll
		}
		return f.live[k]
	}
	if k := a.im.chunkAt(addr); k >= 0 && a.im.chunks[k].start == addr && !a.im.chunks[k].assembly {
		return 0
	}
	return liveAll
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
	for k := len(f.insts) - 1; k >= 0; k-- {
		in := &f.insts[k]
		live := f.live[k+1]
		if in.Ends() {
			live = 0
		}
		to, direct := in.Target(in.addr)
		switch in.Kind {
		case amd64.Return:
			live = f.exit
		case amd64.Call:
			if direct { // nobody relies on a callee's writing them
				a.returnsTo(to, live)
				live |= a.liveAt(to)
			}
		case amd64.IndirectCall:
			if in.HasMem && in.Index != amd64.NoReg && live&^a.table != 0 {
				a.table |= live
				a.again = true
			}
		case amd64.Jump, amd64.CondJump, amd64.ShortLoop:
			live |= a.liveAt(to)
			if g, _ := a.at(to); g != f {
				a.returnsTo(to, f.exit)
			}
		case amd64.IndirectJump:
			if to, known := f.ledTo(k); known {
				live = a.liveAt(to)
				a.returnsTo(to, f.exit)
			} else {
				live, f.wild = liveAll, true
			}
		}
		if live = before(in, live); live&^f.live[k] != 0 {
			f.live[k] |= live
			a.again = true
		}
	}
}

// before is what is live before an instruction that has that live behind it.
func before(in *inst, live goLive) goLive {
	switch in.Kind {
	case amd64.Syscall, amd64.Breakpoint, amd64.Undefined:
		// The kernel, or a handler, gets all registers and flags, but does not go by these.
		return live
	}
	live = live&^liveOf(in.GPRWritten()) | liveOf(in.GPRRead())
	if in.FlagsWritten() {
		live &^= liveFlags
	}
	if in.FlagsRead() {
		live |= liveFlags
	}
	return live
}

// ledTo is where an indirect jump goes whose register was given a function's address just before.
func (f *assemblyFunc) ledTo(k int) (uint64, bool) {
	in := &f.insts[k]
	if k == 0 || in.HasMem {
		return 0, false
	}
	before := &f.insts[k-1]
	to, ok := before.MemTarget(before.addr)
	lea := before.Map == amd64.MapPrimary && before.Opcode == 0x8D && before.Reg == in.RM
	return to, ok && lea && before.RIPRelative
}

// goesWhereNothingIsLive says whether that is so of all jumps that leave the function, before which there is to be an exit's event.
func (a *assembly) goesWhereNothingIsLive(f *assemblyFunc) bool {
	for k := range f.insts {
		in := &f.insts[k]
		to, leaves := in.Target(in.addr)
		if in.Kind == amd64.IndirectJump {
			to, leaves = f.ledTo(k)
		}
		if !leaves || in.Kind == amd64.Call {
			continue
		}
		if g, _ := a.at(to); g != f && a.liveAt(to) != 0 {
			return false
		}
	}
	return true
}
