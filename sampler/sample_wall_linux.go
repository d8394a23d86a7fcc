package sampler

import (
	"context"
	"errors"
	"time"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/unwind"
)

// wallSampling samples all threads of a process, whether they run or wait. Those that run
// are stopped, one after the other. A thread that waits is not, as far as that can be
// helped: a stop makes some calls wait for their whole timeout again, so that a server
// which is stopped oftener than its timer goes off would never get on.
type wallSampling struct {
	*sampling
	l       *live
	waiting map[int]*waitingThread // by thread ID
	round   uint64
	seen    []int32 // stacks of this round
	traced  bool    // somebody else has stopped the process, which was said
}

// waitingThread is a thread that waited when it was last looked at.
type waitingThread struct {
	at      process.Waiting
	blocked uint64 // process.Process.Blocked
	stopped bool   // for its stack: two more waits are our doing
	stack   int32  // -1 before it is known
	round   uint64
}

// wall samples until the process, ctx or the time ends.
func (s *sampling) wall(ctx context.Context) error {
	w := &wallSampling{sampling: s, waiting: map[int]*waitingThread{}}
	w.l = &live{p: s.p, o: Options{NoNames: true, MaxFrames: s.opt.MaxFrames, Memory: s.files.memory}, buf: make([]byte, unknownStack+4096)}
	if err := w.l.refresh(); err != nil {
		return err
	}
	defer func() {
		s.table.name(w.l.space.jit)
		s.profile.closers = append(s.profile.closers, w.l.space.close)
		s.profile.Problems = append(s.profile.Problems, w.l.space.problems()...)
	}()
	clock := time.NewTicker(time.Second / time.Duration(s.opt.Rate))
	defer clock.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-clock.C:
		}
		err := w.once(ctx)
		switch {
		case !s.p.Alive():
			s.profile.Ended = true
			return nil
		case errors.Is(err, process.ErrExec):
			err = w.reopen()
		case errors.Is(err, process.ErrTraced) && s.profile.Samples > 0:
			if !w.traced {
				s.opt.Notice("%v; there are no samples as long as that goes on", err)
			}
			w.traced, err = true, nil
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		s.progress()
	}
}

// reopen goes on with the program that has replaced another one, whose memory is open.
func (w *wallSampling) reopen() error {
	p, err := process.Open(w.p.Pid())
	if err != nil {
		return err
	}
	w.table.name(w.l.space.jit)
	w.profile.closers = append(w.profile.closers, p.Close, w.l.space.close)
	w.p, w.l.p, w.l.space, w.l.walker = p, p, nil, nil
	clear(w.waiting)
	return w.l.refresh()
}

// once takes the stack of each thread. It counts none when it cannot look at all.
func (w *wallSampling) once(ctx context.Context) error {
	infos, err := w.p.Threads()
	if err != nil {
		return err
	}
	w.round++
	w.seen = w.seen[:0]
	w.l.threads, w.l.outdated = w.l.threads[:0], false
	name := w.p.Comm()
	stop := infos[:0]
	for _, info := range infos {
		switch {
		case info.Worker || info.State == 'Z' || info.State == 'X':
		case (info.State == 'S' || info.State == 'D') && w.waits(name, info):
			w.tids[uint32(info.TID)] = struct{}{}
		default:
			stop = append(stop, info)
		}
	}
	if err := w.l.take(ctx, stop); err != nil {
		return err
	}
	for k := range w.l.threads {
		t := &w.l.threads[k]
		if len(t.Frames) == 0 { // it has ended
			continue
		}
		w.tids[uint32(t.TID)] = struct{}{}
		at := w.table.find(name, false, t.End.Reason, w.frames(t.Frames))
		w.seen = append(w.seen, at)
		if wait := w.waiting[t.TID]; wait != nil && wait.round == w.round && t.Frames[0].SP == wait.at.SP {
			wait.stack, wait.stopped = at, true
		}
	}
	for tid, wait := range w.waiting {
		if wait.round != w.round {
			delete(w.waiting, tid)
		}
	}
	for _, at := range w.seen {
		w.profile.Samples++
		w.table.count(at)
	}
	return nil
}

// waits takes the stack of a thread that waits without stopping it. It returns false when
// the thread has to be stopped: it runs after all, or its stack is not whole without the
// registers that only a stop tells, and a stop does no harm. One is enough for each wait.
func (w *wallSampling) waits(name string, info process.ThreadInfo) bool {
	at, err := w.p.WaitingAt(info.TID)
	if err != nil {
		return false
	}
	blocked, err := w.p.Blocked(info.TID)
	if err != nil {
		return false
	}
	wait := w.waiting[info.TID]
	if wait == nil {
		wait = &waitingThread{stack: -1}
		w.waiting[info.TID] = wait
	}
	wait.round = w.round
	if wait.still(&at, blocked) {
		w.seen = append(w.seen, wait.stack)
		return true
	}
	*wait = waitingThread{at: at, blocked: blocked, stack: -1, round: w.round}
	end, same := w.l.walkWait(info.TID, &at, blocked)
	if !same {
		return false
	}
	if len(w.l.frames) == 0 || !end.Complete() && info.State == 'S' && !at.StartsOver() {
		return false
	}
	wait.stack = w.table.find(name, false, end.Reason, w.frames(w.l.space.frames(w.l.frames, &w.l.o)))
	w.seen = append(w.seen, wait.stack)
	return true
}

// still says whether a thread waits as it did when its stack was taken.
func (t *waitingThread) still(at *process.Waiting, blocked uint64) bool {
	if t.stack < 0 {
		return false
	}
	if !t.stopped {
		return t.at == *at && t.blocked == blocked
	}
	return at.InSyscall && t.at.SP == at.SP && t.at.PC == at.PC && blocked-t.blocked <= switchesOfStop
}

// frames are a thread's frames as locations.
func (w *wallSampling) frames(frames []Frame) []int32 {
	t := w.table
	ids := t.ids[:0]
	for k := range frames {
		f := &frames[k]
		addr := codeAddr(&unwind.Frame{PC: f.Address, Flags: f.Flags})
		if f.Image == nil || !f.Image.ready() {
			ids = append(ids, t.made(w.l.space.jit, f.Image, addr))
		} else {
			ids = append(ids, t.location(f.Image, addr-f.Image.Slide(), addr))
		}
		if t.full() {
			break
		}
	}
	t.ids = ids
	return ids
}
