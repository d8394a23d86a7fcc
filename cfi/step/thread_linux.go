//go:build amd64 || arm64

package step

import "github.com/callreel/callreel/process"

// thread is one thread of the command and what is known of its calls.
type thread struct {
	tid    int
	guest  bool // a new process in the same memory: it is not followed
	frames []frame
	raw    process.Regs
	regs   registers // as they were when it last stopped

	before registers // as they were when it last went on
	step   bool      // it was told to step
	signal int       // that was delivered when it last went on
	met    uint64    // the breakpoint that it stands at, 0 for none
	lifted uint64    // the breakpoint that it is going over, 0 for none
}

// frame is a call of a chosen function that has not ended.
type frame struct {
	shadow
	function *function
	stack    span // the memory that it is in
	// While something else runs: where the frame is to be gone on with, and the stack pointer there.
	awaiting      bool
	addr, pointer uint64
}

// maxFrames bounds the calls of a thread that are remembered: those of coroutines that never go on, for one.
const maxFrames = 1 << 14

// top returns the innermost frame, nil where there is none.
func (t *thread) top() *frame {
	if len(t.frames) == 0 {
		return nil
	}
	return &t.frames[len(t.frames)-1]
}

// following says whether the thread is in a chosen function itself.
func (t *thread) following() bool {
	f := t.top()
	return f != nil && !f.awaiting
}

// thread returns the thread of that ID, a new one if need be.
func (e *engine) thread(tid int) *thread {
	t := e.threads[tid]
	if t == nil {
		t = &thread{tid: tid}
		e.threads[tid] = t
	}
	return t
}

// end forgets a thread.
func (e *engine) end(t *thread) {
	if t.lifted != 0 {
		e.breaks.putBack(t.lifted)
	}
	e.cut(t, 0)
	delete(e.threads, t.tid)
}

// cut drops the frames from the k-th on.
func (e *engine) cut(t *thread, k int) {
	for n := k; n < len(t.frames); n++ {
		e.arrive(&t.frames[n])
	}
	t.frames = t.frames[:k]
}

// await has a frame gone on with at an address, where the stack pointer is to have a value. An error leaves the thread
// running freely.
func (e *engine) await(f *frame, addr, pointer uint64) {
	f.awaiting, f.addr, f.pointer = true, addr, pointer
	if e.breaks.add(addr) != nil {
		f.addr = 0
	}
}

// arrive ends an await.
func (e *engine) arrive(f *frame) {
	if f.awaiting && f.addr != 0 {
		e.breaks.drop(f.addr)
	}
	f.awaiting = false
}

// push begins to follow a call: the thread stands at the function's entry.
func (e *engine) push(t *thread, fn *function) bool {
	ra, ok := e.returnAddress(t)
	if !ok {
		return false
	}
	im := e.images.at(ra)
	if im == nil || !im.comesFromCall(ra-im.slide) {
		return false // not called: a thread's or program's beginning, a coroutine's
	}
	f := frame{shadow: shadowAt(&t.regs, ra), function: fn}
	e.dropUnwound(t, f.cfa)
	if len(t.frames) >= maxFrames {
		e.cut(t, 0)
	}
	f.stack = e.images.stackAt(f.cfa - 8)
	t.frames = append(t.frames, f)
	fn.followed = true
	e.stepped[t.tid] = true
	e.result.Calls++
	return true
}

// dropUnwound drops frames that a call whose CFA is cfa shows to have been unwound: they are not above it on the same stack.
func (e *engine) dropUnwound(t *thread, cfa uint64) {
	k := len(t.frames)
	for k > 0 && t.frames[k-1].cfa <= cfa && t.frames[k-1].stack.contains(cfa-8) {
		k--
	}
	e.cut(t, k)
}

func (e *engine) readRegs(t *thread) error {
	raw, err := e.t.Regs(t.tid)
	if err != nil {
		return err
	}
	t.raw, t.regs = raw, registers{pc: raw.PC()}
	copy(t.regs.general[:], raw.DWARF())
	return nil
}
