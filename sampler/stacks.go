package sampler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/unwind"
)

// What is read of a stack while its thread is stopped. Where a stack's end is not
// known, as in a heap that coroutines live in, it is a guess that holds most of them.
const (
	maxStack     = 1 << 20
	unknownStack = 128 << 10
)

// Stacks takes the stack of every thread of a running process, which must be closed.
// Each thread is stopped by itself, for tens of microseconds. Threads that end
// meanwhile are listed with an End that says so; one that does not stop within a second
// and is blocked in the kernel, or within ten, is walked as far as the kernel tells where
// it is.
//
// The errors are those of process.Open and process.Process.EachThread.
func Stacks(ctx context.Context, pid int, o Options) (*Capture, error) {
	p, err := process.Open(pid)
	if err != nil {
		return nil, err
	}
	defer p.Close() // only read from
	o.allow()
	p.LimitMemory(o.Memory.Limit())
	// Memory that is there before a thread is stopped costs it nothing.
	l := &live{p: p, o: o, buf: make([]byte, unknownStack+4096), budget: maxFrames}
	clear(l.buf)
	if err := l.refreshPrepared(ctx); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, errors.Join(context.Cause(ctx), l.space.close())
	}
	infos, err := p.Threads()
	if err != nil {
		return nil, err
	}
	if err := l.take(ctx, infos); err != nil {
		return nil, errors.Join(err, l.space.close())
	}
	c := &Capture{
		PID: pid, Name: p.Comm(), Arch: unwind.Host().String(), Images: l.space.images, Threads: l.threads, space: l.space,
	}
	for _, im := range c.Images {
		im.ready() // once the process is gone, so is the way to its files
	}
	c.Problems = l.space.problems()
	return c, nil
}

// live is one process whose stacks are taken.
type live struct {
	p       *process.Process
	o       Options
	space   *space
	walker  *unwind.Walker
	threads []Thread

	mainStackEnd uint64

	buf      []byte
	regs     process.Regs
	from     uint64 // address of the stack that was read
	stack    []byte
	frames   []unwind.Frame
	outdated bool // the maps were read anew for a walk that failed
	budget   int  // frames that may still be kept
}

// refreshPrepared is refresh when the Symbolizer has got what it needs.
func (l *live) refreshPrepared(ctx context.Context) error {
	if err := l.refresh(); err != nil {
		return err
	}
	if !l.o.prepare(ctx, l.space.images) {
		return nil
	}
	if err := l.refresh(); err != nil {
		return errors.Join(err, l.space.close())
	}
	return nil
}

// refresh reads what is mapped where.
func (l *live) refresh() error {
	maps, err := l.p.Maps()
	if err != nil {
		return err
	}
	for _, m := range maps {
		if m.Special == "[stack]" {
			l.mainStackEnd = m.End
		}
	}
	l.space = newSpace(regionsOf(maps), l.open, l.space)
	if l.space.jit == nil {
		l.space.jit = &jitNames{p: l.p}
	}
	if l.walker == nil {
		l.walker = l.o.walker(unwind.Host(), l.space)
	} else {
		l.walker.SetImages(l.space.code())
	}
	return nil
}

// open opens an image's file: by a way that leads to the very file that is mapped, else
// from memory.
func (l *live) open(im *Image) (*object.Image, error) {
	r := im.regions[0]
	if r.special != "" {
		return imageFromMemory(im, memory{l.p}, l.o.Memory)
	}
	path, err := l.p.ExeFile(process.Mapping{
		Start: r.start, End: r.end, Offset: r.offset, Inode: r.inode, Dev: r.dev, Path: r.path, Deleted: r.deleted,
	})
	if err == nil {
		file, openErr := object.Opener{Memory: l.o.Memory}.Open(path)
		if openErr == nil {
			return file, nil
		}
		err = openErr
	}
	if file, memoryErr := imageFromMemory(im, memory{l.p}, l.o.Memory); memoryErr == nil {
		return file, nil
	}
	return nil, err
}

// take stops and walks the threads.
func (l *live) take(ctx context.Context, infos []process.ThreadInfo) error {
	var tids []int
	place := map[int]int{}
	for _, info := range infos {
		t := Thread{TID: info.TID, Name: info.Name, State: stateName(info.State)}
		switch {
		case info.Worker:
			continue // runs in the kernel only
		case info.State == 'Z' || info.State == 'X':
			t.End = unwind.End{Reason: unwind.ThreadGone}
		default:
			tids = append(tids, info.TID)
		}
		place[info.TID] = len(l.threads)
		l.threads = append(l.threads, t)
	}
	late, err := l.inTurn(ctx, stopTimeout, tids, place)
	if err != nil || len(late) == 0 {
		return err
	}
	// On a busy machine a thread may need long to be let run, and so to stop. Only one
	// that the kernel does not wake is not waited for.
	tids = tids[:0]
	for tid, blocked := range l.blocked(late) {
		if t := &l.threads[place[tid]]; blocked {
			l.unstopped(t)
		} else {
			tids = append(tids, tid)
		}
	}
	late, err = l.inTurn(ctx, lateTimeout, tids, place)
	for _, tid := range late {
		l.unstopped(&l.threads[place[tid]])
	}
	return err
}

// How long a thread may take to stop, at first and at last.
const (
	stopTimeout = time.Second
	lateTimeout = 10 * time.Second
)

// inTurn stops and walks one thread after the other, and returns those that did not stop in
// time.
func (l *live) inTurn(ctx context.Context, timeout time.Duration, tids []int, place map[int]int) (late []int, err error) {
	var stopped error
	err = l.p.EachThread(ctx, process.StopOptions{Timeout: timeout}, tids,
		func(t *process.Thread, err error) error {
			if stopped = err; err == nil {
				stopped = l.read(t)
			}
			return nil
		},
		func(tid int, took time.Duration) {
			t := &l.threads[place[tid]]
			t.Stopped, t.End = took, unwind.End{Reason: unwind.ThreadGone}
			switch {
			case stopped == nil:
				l.walk(t)
			case errors.Is(stopped, process.ErrStopTimeout):
				t.End.Reason = unwind.NotStopped
				late = append(late, tid)
			}
		})
	return late, err
}

// blocked says which of some threads wait in the kernel for something that no signal ends.
func (l *live) blocked(tids []int) map[int]bool {
	states := map[int]bool{}
	for _, tid := range tids {
		states[tid] = false
	}
	infos, err := l.p.Threads()
	if err != nil {
		return states
	}
	for _, info := range infos {
		if _, ok := states[info.TID]; ok {
			states[info.TID] = info.State == 'D'
		}
	}
	return states
}

// unstopped walks a thread that does not stop since it waits in the kernel, from the
// registers that are known of it. All of its frames are late.
func (l *live) unstopped(t *Thread) {
	t.End = unwind.End{Reason: unwind.NotStopped}
	waiting, err := l.p.WaitingAt(t.TID)
	if err != nil {
		return
	}
	l.frames, t.End = within(&l.budget, l.frames, l.walkWaiting(&waiting))
	t.Frames = l.space.frames(l.frames, &l.o)
}

// walkWaiting walks a thread that waits in the kernel, without stopping it.
func (l *live) walkWaiting(waiting *process.Waiting) (end unwind.End) {
	snapshot := unwind.Snapshot{Memory: memory{l.p}}
	snapshot.Regs.PC = waiting.PC
	snapshot.Regs.Set(unwind.Host().SP(), waiting.SP)
	if waiting.InSyscall { // the C library's vfork keeps its return address in rdi
		for k, reg := range unwind.Host().SyscallArgs() {
			snapshot.Regs.Set(reg, waiting.Args[k])
		}
	}
	l.frames, end = l.walker.Walk(&snapshot, l.frames[:0])
	for k := range l.frames {
		l.frames[k].Flags |= unwind.Late
	}
	return end
}

// read reads all that is wanted of a thread while it is stopped.
func (l *live) read(t *process.Thread) error {
	regs, err := t.Regs()
	if err != nil {
		return err
	}
	l.regs = *regs
	l.from = regs.SP() - min(regs.SP(), unwind.Host().RedZone())
	size := l.stackSize(regs.SP(), regs.ThreadPointer())
	if uint64(cap(l.buf)) < size {
		l.buf = make([]byte, size)
	}
	l.stack = l.buf[:size]
	l.stack = l.stack[:l.p.ReadUpTo(l.stack, l.from)]
	return nil
}

// stackSize is how much to read from the red zone on: to the end of the mapping, but
// not beyond the thread's control block, which C libraries keep on top of its stack.
func (l *live) stackSize(sp, tls uint64) uint64 {
	m, ok := l.space.mapped.Mapping(sp)
	if !ok {
		return unknownStack
	}
	const controlBlock = 4096 // glibc's has 2,304 bytes
	red := sp - l.from
	size := m.End - sp
	if tls > sp && tls < m.End {
		size = min(size, tls-sp+controlBlock)
	} else if size > unknownStack && m.End != l.mainStackEnd {
		size = unknownStack
	}
	return min(size, maxStack) + red
}

// walk walks what was read. When that fails since something was mapped after the maps
// were read, they are read again.
func (l *live) walk(t *Thread) {
	snapshot := unwind.Snapshot{Regs: registers(&l.regs), Stack: l.stack, Addr: l.from, Memory: memory{l.p}}
	l.frames, t.End = l.walker.Walk(&snapshot, l.frames[:0])
	if !t.End.Complete() && l.changed() {
		l.frames, t.End = l.walker.Walk(&snapshot, l.frames[:0])
	}
	l.frames, t.End = within(&l.budget, l.frames, t.End)
	t.Frames = l.space.frames(l.frames, &l.o)
}

// changed reads the maps again, once, and says whether they differ.
func (l *live) changed() bool {
	if l.outdated {
		return false
	}
	l.outdated = true
	before := l.space.regions
	if l.refresh() != nil {
		return false
	}
	if len(before) != len(l.space.regions) {
		return true
	}
	for k := range before {
		if before[k] != l.space.regions[k] {
			return true
		}
	}
	return false
}

// memory is a live process as unwind sees it.
type memory struct{ p *process.Process }

// ReadMemory implements unwind.Memory.
func (m memory) ReadMemory(addr uint64, buf []byte) (int, error) {
	n := m.p.ReadUpTo(buf, addr)
	if n < len(buf) {
		return n, fmt.Errorf("%w: at %#x", process.ErrNoMapping, addr+uint64(n))
	}
	return n, nil
}

// registers turns ptrace's registers into DWARF's.
func registers(r *process.Regs) unwind.Registers {
	var out unwind.Registers
	for k, v := range r.DWARF() {
		out.Set(k, v)
	}
	out.PC = r.PC()
	return out
}
