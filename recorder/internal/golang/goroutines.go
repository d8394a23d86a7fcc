package golang

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/callreel/callreel/object"
)

// maxGoroutines bounds how many are looked at, since the process is stopped meanwhile.
const maxGoroutines = 1 << 20

// What may be the matter with a process's goroutines.
var (
	// ErrNoList: the runtime's list of goroutines isn't found. A program that has just begun has none.
	ErrNoList = errors.New("the runtime's list of goroutines isn't found")
	// ErrTooMany: there are more goroutines than can be looked at while the process is stopped.
	ErrTooMany = errors.New("it has more goroutines than can be looked at")
	// ErrUnlisted: a goroutine that runs isn't in the list. It is being made.
	ErrUnlisted = errors.New("a goroutine is being made")
)

// Goroutines finds out where the goroutines of one process are to go on. What it reads may be anything: a process can write over its own
// runtime's data.
type Goroutines struct {
	mem   Memory
	image *object.Image
	slide uint64
	goid  uint64 // where goid is in struct g, in bytes
	frame asyncFrame
	list  uint64 // the address of runtime.allgs, a slice of pointers to all g; 0 until it is found
}

// Goroutines is for a process that runs the program, whose image is loaded at that slide. The process may run meanwhile. The image must stay
// open as long as the result is used.
func (p *Program) Goroutines(mem Memory, o *object.Image, slide uint64) (*Goroutines, error) {
	f, err := p.asyncFrameOf(o, slide)
	if err != nil {
		return nil, err
	}
	gs := &Goroutines{mem: mem, image: o, slide: slide, goid: uint64(p.GoID), frame: f}
	if err := gs.findList(); err != nil && !errors.Is(err, ErrNoList) {
		return nil, err
	}
	return gs, nil
}

// IsPreempting says whether code at pc is what the runtime preempts goroutines with.
func (gs *Goroutines) IsPreempting(pc uint64) bool {
	return gs.frame.code.Start <= pc && pc < gs.frame.code.End
}

// Preempted calls found with each goroutine that was preempted by a signal, by its number, and the PC at which it is to go on. The process
// must be stopped; threads is what ReadThread says of all its threads that the runtime knows. When it fails with ErrUnlisted, found has been
// called for all others.
func (gs *Goroutines) Preempted(threads []Thread, found func(goroutine, pc uint64)) error {
	if len(threads) == 0 { // the runtime hasn't begun
		return nil
	}
	current := map[uint64]bool{}
	for _, t := range threads {
		if g, err := gs.read(t.G); err == nil && g.id != 0 {
			current[t.G] = true
		}
	}
	if gs.list == 0 { // the list may have been being made longer when it was looked for
		if err := gs.findList(); err != nil {
			return err
		}
	}
	ptrs, err := gs.all()
	if err != nil {
		return err
	}
	var buf []byte
	for ; len(ptrs) > 0; ptrs = ptrs[8:] {
		at := binary.LittleEndian.Uint64(ptrs)
		delete(current, at)
		g, err := gs.read(at)
		if err != nil {
			return err
		}
		if g.status == gIdle || g.status == gDead || g.stack.Hi == 0 {
			continue
		}
		if buf, err = gs.frame.pcs(gs.mem, &g, buf, func(pc uint64) { found(g.id, pc) }); err != nil {
			return err
		}
	}
	if len(current) > 0 {
		return ErrUnlisted
	}
	return nil
}

// all reads the list: 8 bytes a pointer.
func (gs *Goroutines) all() ([]byte, error) {
	var b [24]byte
	if _, err := gs.mem.ReadAt(b[:], gs.list); err != nil {
		return nil, err
	}
	list, ok := sliceOf(b[:])
	if !ok || list.n > maxGoroutines {
		return nil, fmt.Errorf("%w: %d", ErrTooMany, list.n)
	}
	ptrs := make([]byte, 8*list.n)
	_, err := gs.mem.ReadAt(ptrs, list.at)
	return ptrs, err
}

// findList looks through the program's data for runtime.allgs: a slice of pointers to g, of which the first is goroutine 1.
func (gs *Goroutines) findList() error {
	const most = 256 << 20 // bytes of one segment
	for _, seg := range gs.image.Segments() {
		if seg.Type != object.SegmentLoad || seg.Perm&object.PermW == 0 || seg.MemSize > most {
			continue
		}
		data := make([]byte, seg.MemSize)
		n := gs.mem.ReadUpTo(data, seg.Addr+gs.slide)
		for off := -seg.Addr & 7; off+24 <= uint64(n); off += 8 {
			if list, ok := sliceOf(data[off:]); ok && gs.isList(list) {
				gs.list = seg.Addr + gs.slide + off
				return nil
			}
		}
	}
	return ErrNoList
}

// slice is a slice of pointers: its address and its length.
type slice struct{ at, n uint64 }

// sliceOf reads a slice header and says whether it can be that of allgs.
func sliceOf(b []byte) (slice, bool) {
	le := binary.LittleEndian
	l := slice{le.Uint64(b), le.Uint64(b[8:])}
	c := le.Uint64(b[16:])
	return l, l.at != 0 && l.at%8 == 0 && l.at < 1<<47 && l.n >= 1 && l.n <= c && c <= 1<<32
}

// isList looks at the first of the list.
func (gs *Goroutines) isList(l slice) bool {
	for i := range min(l.n, 4) {
		at, err := wordAt(gs.mem, l.at+8*i)
		if err != nil || at == 0 || at%8 != 0 {
			return false
		}
		g, err := gs.read(at)
		if err != nil || i == 0 && g.id != 1 || g.stack.Lo > g.stack.Hi || g.status > gStatusMax || g.stack.Hi-g.stack.Lo > 1<<40 {
			return false
		}
	}
	return true
}

// goroutine is what is read of a g.
type goroutine struct {
	stack  Stack
	sp, id uint64
	status uint32
}

// States of a g, without the bit that says that its stack is being scanned (runtime/runtime2.go).
const (
	gIdle      = 0
	gRunning   = 2
	gSyscall   = 3
	gDead      = 6
	gStatusMax = 16
	gScan      = 0x1000
)

// read reads the g at an address.
func (gs *Goroutines) read(at uint64) (goroutine, error) {
	b := make([]byte, gs.goid+8)
	if _, err := gs.mem.ReadAt(b, at); err != nil {
		return goroutine{}, err
	}
	le := binary.LittleEndian
	return goroutine{stack: Stack{le.Uint64(b[StackLo:]), le.Uint64(b[StackHi:])}, sp: le.Uint64(b[gSchedSP:]),
		id: le.Uint64(b[gs.goid:]), status: le.Uint32(b[gs.goid-8:]) &^ gScan}, nil
}
