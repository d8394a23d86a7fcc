package target

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/golang"
	"github.com/callreel/callreel/recorder/internal/refusal"
)

// A goroutine that the runtime has preempted by a signal goes on, some time, at the instruction at which it was: that PC stands on its
// stack, above the frame of runtime.asyncPreempt. It may be one that a site is to be written over, so all goroutines are looked at
// before that is done. Theirs can't be changed as a thread's PC can: the runtime knows no code in the arena when it walks the stack.

// asyncFrame says how to find PCs of preempted goroutines.
type asyncFrame struct {
	ret    uint64 // the return address of asyncPreempt's call of asyncPreempt2
	above  uint64 // from where that stands on the stack to where the PC stands, in bytes
	code   object.Range
	allgs  uint64 // address of runtime.allgs, a slice of pointers to all g
	goidAt uint64
}

// findAsyncFrame reads asyncPreempt's code: up to its first call it only pushes.
func findAsyncFrame(o *object.Image, g *golang.Program, slide uint64) (*asyncFrame, error) {
	f := &asyncFrame{code: g.AsyncPreempt, goidAt: uint64(g.GoID), above: 8}
	code, err := o.ReadAddr(f.code.Start, f.code.End-f.code.Start)
	if err != nil {
		return nil, err
	}
	for pc := f.code.Start; pc < f.code.End; {
		in, err := amd64.Decode(code[pc-f.code.Start:])
		if err != nil {
			break
		}
		pc += uint64(in.Len)
		if in.Kind == amd64.Call {
			f.ret = pc + slide
			f.code.Start, f.code.End = f.code.Start+slide, f.code.End+slide
			return f, nil
		}
		d, known := in.StackDelta()
		if !known || d > 0 {
			break
		}
		f.above += uint64(-d)
	}
	return nil, fmt.Errorf("callreel: %s: runtime.asyncPreempt isn't as expected", o.Name())
}

// maxGoroutines bounds how many are looked at, since the process stands meanwhile.
const maxGoroutines = 1 << 20

var errNoAllgs = errors.New("the runtime's list of goroutines isn't found")

// findAllgs looks through the program's data for runtime.allgs: a slice of pointers to g, of which the first is goroutine 1. A
// program that has not come so far has none, and no goroutine either.
func (s *Target) findAllgs(o *object.Image, f *asyncFrame, slide uint64) error {
	const most = 256 << 20
	for _, seg := range o.Segments() {
		if seg.Type != object.SegmentLoad || seg.Perm&object.PermW == 0 || seg.MemSize > most {
			continue
		}
		data := make([]byte, seg.MemSize)
		n := s.Process.ReadUpTo(data, seg.Addr+slide)
		for off := -seg.Addr & 7; off+24 <= uint64(n); off += 8 {
			if list, ok := sliceOf(data[off:]); ok && s.isAllgs(list, f) {
				f.allgs = seg.Addr + slide + off
				return nil
			}
		}
	}
	return errNoAllgs
}

type goSlice struct{ at, n uint64 }

// sliceOf reads a slice header and says whether it can be that of allgs.
func sliceOf(b []byte) (goSlice, bool) {
	le := binary.LittleEndian
	l := goSlice{le.Uint64(b), le.Uint64(b[8:])}
	c := le.Uint64(b[16:])
	return l, l.at != 0 && l.at%8 == 0 && l.at < 1<<47 && l.n >= 1 && l.n <= c && c <= 1<<32
}

// isAllgs looks at the first of the list.
func (s *Target) isAllgs(l goSlice, f *asyncFrame) bool {
	for i := range min(l.n, 4) {
		at, err := wordAt(s.Process, l.at+8*i)
		if err != nil || at == 0 || at%8 != 0 {
			return false
		}
		g, err := s.readG(at, f)
		if err != nil || i == 0 && g.id != 1 || g.lo > g.hi || g.status > gStatusMax || g.hi-g.lo > 1<<40 {
			return false
		}
	}
	return true
}

// goroutine is what is read of a g.
type goroutine struct {
	lo, hi, sp, id uint64
	status         uint32
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

func (s *Target) readG(at uint64, f *asyncFrame) (goroutine, error) {
	b := make([]byte, f.goidAt+8)
	if _, err := s.Process.ReadAt(b, at); err != nil {
		return goroutine{}, err
	}
	le := binary.LittleEndian
	return goroutine{lo: le.Uint64(b), hi: le.Uint64(b[8:]), sp: le.Uint64(b[gSchedSP:]), id: le.Uint64(b[f.goidAt:]),
		status: le.Uint32(b[f.goidAt-8:]) &^ gScan}, nil
}

// preempted makes sure that no goroutine will go on inside a site.
func (s *Target) preempted(st *process.Stopped, maps []process.Mapping, inside func(pc uint64) bool) error {
	f := s.async
	// A handler may have read the PC and not have written yet where the goroutine is to go on.
	frames, err := interruptedPCs(st, maps, s.restorers, true, func(pc uint64) bool { return inside(pc) || f.code.Start <= pc && pc < f.code.End })
	if err != nil {
		return err
	}
	if len(frames) > 0 {
		return fmt.Errorf("callreel: process %d, thread %d in a handler above %#x: %w", s.Process.Pid(), frames[0].tid, frames[0].pc, errInTheWay)
	}
	current := map[uint64]bool{}
	user := false // there are goroutines
	for _, t := range st.Threads() {
		regs, err := t.Regs()
		if err != nil {
			return err
		}
		if regs.PC() >= f.code.Start && regs.PC() < f.code.End {
			return fmt.Errorf("callreel: process %d, thread %d is being preempted: %w", s.Process.Pid(), t.TID, errInTheWay)
		}
		gt, ok, err := goThreadOf(s.Process, t)
		if err != nil {
			return err
		}
		if ok {
			user = true
			if g, err := s.readG(gt.g, f); err == nil && g.id != 0 {
				current[gt.g] = true
			}
		}
	}
	if !user {
		return nil
	}
	if f.allgs == 0 { // the list may have been being made longer when it was looked for
		im := s.Arenas[0].Images[0]
		if err := s.findAllgs(im.Object, f, im.Slide); err != nil {
			return fmt.Errorf("callreel: process %d: %w: %w", s.Process.Pid(), refusal.Err, err)
		}
	}
	var b [24]byte
	if _, err := s.Process.ReadAt(b[:], f.allgs); err != nil {
		return err
	}
	list, ok := sliceOf(b[:])
	if !ok || list.n > maxGoroutines {
		return fmt.Errorf("callreel: process %d: %w: it has %d goroutines, more than can be looked at", s.Process.Pid(), refusal.Err, list.n)
	}
	ptrs := make([]byte, 8*list.n)
	if _, err := s.Process.ReadAt(ptrs, list.at); err != nil {
		return err
	}
	var buf []byte
	pe := &preemptedError{pid: s.Process.Pid()}
	for ; len(ptrs) > 0; ptrs = ptrs[8:] {
		at := binary.LittleEndian.Uint64(ptrs)
		delete(current, at)
		g, err := s.readG(at, f)
		if err != nil {
			return err
		}
		if g.status == gIdle || g.status == gDead || g.hi == 0 {
			continue
		}
		buf, err = s.preemptedAt(&g, f, buf, func(pc uint64) {
			if inside(pc) {
				pe.add(g.id, pc, s.Arenas)
			}
		})
		if err != nil {
			return err
		}
	}
	if len(pe.ids) > 0 {
		return pe
	}
	if len(current) > 0 { // a goroutine that runs isn't among them: it is being made
		return fmt.Errorf("callreel: process %d: %w", s.Process.Pid(), errInTheWay)
	}
	return nil
}

// preemptedError says in which functions goroutines are to go on inside a site.
type preemptedError struct {
	pid       int
	goroutine uint64 // one of them
	pc        uint64
	ids       []uint32
}

func (e *preemptedError) Error() string {
	return fmt.Sprintf("callreel: process %d: goroutine %d was preempted at %#x, inside a site, and so others: %d functions in all", e.pid, e.goroutine, e.pc, len(e.ids))
}

func (e *preemptedError) add(goroutine, pc uint64, arenas []*Arena) {
	e.goroutine, e.pc = goroutine, pc
	for _, a := range arenas {
		if id, in := a.Code.InsideOf(pc); in && !slices.Contains(e.ids, id) {
			e.ids = append(e.ids, id)
		}
	}
}

// asyncDepth is how far above a goroutine's stack pointer the frame of asyncPreempt begins at most: only a few small ones are below.
const asyncDepth = 4096

// preemptedAt looks at one goroutine. Of one that runs the stack pointer isn't known here, so its whole stack is looked through; what it
// has left there is met as well, and at worst a function is skipped in vain.
func (s *Target) preemptedAt(g *goroutine, f *asyncFrame, buf []byte, found func(pc uint64)) ([]byte, error) {
	const mostStack = 16 << 20
	from, to := g.sp, min(g.hi, g.sp+asyncDepth)
	if g.status == gRunning || g.status == gSyscall {
		from, to = g.lo, min(g.hi, g.lo+mostStack)
	}
	if from < g.lo || from >= to {
		return buf, nil
	}
	to = min(g.hi, to+f.above+8)
	buf = slices.Grow(buf[:0], int(to-from))[:to-from]
	if _, err := s.Process.ReadAt(buf, from); err != nil {
		return buf, fmt.Errorf("callreel: process %d: stack of goroutine %d: %w", s.Process.Pid(), g.id, err)
	}
	le := binary.LittleEndian
	for off := -from & 7; off+f.above+8 <= uint64(len(buf)); off += 8 {
		if le.Uint64(buf[off:]) == f.ret {
			found(le.Uint64(buf[off+f.above:]))
		}
	}
	return buf, nil
}
