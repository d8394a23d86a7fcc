package golang

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/object"
)

// asyncFrame is the frame of runtime.asyncPreempt, which the runtime makes a goroutine call that it preempts by a signal. The PC at which
// the goroutine was, and at which it goes on, is above it on the stack.
type asyncFrame struct {
	ret   uint64       // the return address of asyncPreempt's call of asyncPreempt2, on top of the frame
	above uint64       // from there to the PC, in bytes
	code  object.Range // of asyncPreempt, as loaded
}

// asyncFrameOf reads asyncPreempt's code: up to its first call it only pushes.
func (p *Program) asyncFrameOf(o *object.Image, slide uint64) (asyncFrame, error) {
	from, to := p.AsyncPreempt.Start, p.AsyncPreempt.End
	f := asyncFrame{code: object.Range{Start: from + slide, End: to + slide}, above: 8}
	code, err := o.ReadAddr(from, to-from)
	if err != nil {
		return asyncFrame{}, err
	}
	for pc := from; pc < to; {
		in, err := amd64.Decode(code[pc-from:])
		if err != nil {
			break
		}
		pc += uint64(in.Len)
		if in.Kind == amd64.Call {
			f.ret = pc + slide
			return f, nil
		}
		d, known := in.StackDelta()
		if !known || d > 0 {
			break
		}
		f.above += uint64(-d)
	}
	return asyncFrame{}, fmt.Errorf("callreel: %s: runtime.asyncPreempt isn't as expected", o.Name())
}

// asyncDepth is how far above a goroutine's stack pointer the frame of asyncPreempt begins at most: only a few small ones are below.
const asyncDepth = 4096

// mostStack bounds how much of one stack is looked through, in bytes.
const mostStack = 16 << 20

// pcs calls found with the PCs at which a goroutine was preempted. Of one that runs the stack pointer isn't known here, so its whole stack
// is looked through; old frames on it are found as well, and at worst a function is skipped in vain. It returns buf, or a larger one.
func (f *asyncFrame) pcs(mem Memory, g *goroutine, buf []byte, found func(pc uint64)) ([]byte, error) {
	from, to := g.sp, min(g.stack.Hi, g.sp+asyncDepth)
	if g.status == gRunning || g.status == gSyscall {
		from, to = g.stack.Lo, min(g.stack.Hi, g.stack.Lo+mostStack)
	}
	if from < g.stack.Lo || from >= to {
		return buf, nil
	}
	to = min(g.stack.Hi, to+f.above+8)
	buf = slices.Grow(buf[:0], int(to-from))[:to-from]
	if _, err := mem.ReadAt(buf, from); err != nil {
		return buf, fmt.Errorf("stack of goroutine %d: %w", g.id, err)
	}
	le := binary.LittleEndian
	for off := -from & 7; off+f.above+8 <= uint64(len(buf)); off += 8 {
		if le.Uint64(buf[off:]) == f.ret {
			found(le.Uint64(buf[off+f.above:]))
		}
	}
	return buf, nil
}
