package process

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// A Stopped is a process all of whose threads are stopped. It is valid only
// inside the function given to Stop or Launch, and only on that function's
// goroutine.
type Stopped struct {
	Since time.Time // when the first thread was told to stop

	p        *Process
	opts     StopOptions
	ctx      context.Context
	threads  []*Thread
	byTID    map[int]*Thread
	tried    map[int]bool     // threads that seizeNew has met
	sighted  map[int]sighting // threads as they were before the stop
	patience *patience        // while the threads are being stopped by Stop
	execed   bool
	until    time.Time // how long what sleeps uninterruptibly is waited for to be let go, see letGoLate
	leftover bool      // something only the tracer's end can let go
	maps     []Mapping // as they were when first needed in this stop
	release  bool
}

// Stop stops every thread of the process, those born meanwhile too, runs fn,
// and lets all go, also when fn panics or the timeout strikes. The time from
// the first order to stop until the last thread was let go is returned. Threads
// that the kernel has made for its own work (ThreadInfo.Worker) are left alone.
//
// A thread that sleeps uninterruptibly, as in vfork(2), cannot stop: it is waited
// for while all run. One that does not stop soon after the others has all let go,
// and the attempt is repeated, so that the process never stands for long in vain.
// The time returned is the sum over all attempts. fn runs once, when all stand.
//
// fn runs on a goroutine of its own, tied to one OS thread; the Stopped must
// not leave it. A process stopped by SIGSTOP can be stopped in this sense too
// and is left as it was. Signals that arrive meanwhile are delivered once the
// threads go on. System calls in progress are restarted; those that the kernel
// would end with EINTR though no signal came (epoll_wait and its like) start
// over with their full timeout.
//
// The errors are fn's own, ctx's, ErrStopTimeout, ErrTraced, ErrNotPermitted,
// ErrNoProcess, ErrExec and ErrMemoryShared.
func (p *Process) Stop(ctx context.Context, opts StopOptions, fn func(*Stopped) error) (time.Duration, error) {
	p.stopping.Lock()
	defer p.stopping.Unlock()
	return p.stop(ctx, opts, fn)
}

func newStopped(p *Process, opts StopOptions, ctx context.Context) *Stopped {
	return &Stopped{p: p, opts: opts, ctx: ctx, byTID: map[int]*Thread{}, tried: map[int]bool{}, Since: time.Now()}
}

// onTracerThread runs fn on an OS thread that nothing else uses meanwhile:
// ptrace belongs to a thread. When fn says that the thread can't be used again,
// it ends, and the kernel lets go of whatever it still traced: that works even
// for threads that cannot be stopped. A panic goes on in the caller.
func onTracerThread(fn func() (reusable bool, err error)) error { return onThread(isMainThread, fn) }

// isMainThread says whether it is the process's main thread, which Go cannot end.
func isMainThread() bool { return unix.Gettid() == unix.Getpid() }

// onThread is onTracerThread on a thread that is not unfit.
func onThread(unfit func() bool, fn func() (reusable bool, err error)) error {
	if err := arch.supported(); err != nil {
		return err
	}
	type outcome struct {
		err      error
		panicked any
		finished bool
	}
	var tracer int
	done := make(chan outcome, 1)
	ended := make(chan struct{})
	var start func()
	start = func() {
		runtime.LockOSThread()
		if unfit() {
			// Holding on to it here makes the next goroutine take another one.
			go start()
			<-ended
			runtime.UnlockOSThread()
			return
		}
		tracer = unix.Gettid()
		var o outcome
		reusable := false
		defer func() {
			if !o.finished {
				o.panicked = recover()
			}
			if reusable {
				runtime.UnlockOSThread()
				tracer = 0
			}
			close(ended)
			done <- o
		}()
		defer quietStops()()
		reusable, o.err = fn()
		o.finished = true
	}
	go start()
	o := <-done
	awaitEnd(tracer)
	switch {
	case o.panicked != nil:
		panic(o.panicked)
	case !o.finished: // runtime.Goexit, as by testing.T.FailNow
		runtime.Goexit()
	}
	return o.err
}

// awaitEnd waits until a thread of ours, if any is named, has let go of what it
// traced; that takes it microseconds.
func awaitEnd(tid int) {
	for tries := 0; tid != 0 && tries < 1000 && unix.Tgkill(unix.Getpid(), tid, 0) == nil; tries++ {
		pause(tries)
	}
}

// stopAll seizes and stops threads until a look at the list shows no new one.
func (s *Stopped) stopAll(deadline time.Time) error {
	defer func() { s.patience = nil }()
	for {
		fresh, err := s.seizeNew(deadline)
		if err != nil {
			return err
		}
		if err := s.settleAll(deadline); err != nil {
			return err
		}
		if s.execed {
			return fmt.Errorf("process %d: %w while it was being stopped; try again", s.p.pid, ErrExec)
		}
		if !fresh {
			break
		}
	}
	for i := 0; i < len(s.threads); i++ { // an orphan may make others
		if t := s.threads[i]; t.stopped {
			if err := t.finishOrphan(); err != nil {
				return err
			}
		}
	}
	s.threads = slices.DeleteFunc(s.threads, func(t *Thread) bool { return t.ended })
	if len(s.threads) == 0 {
		return fmt.Errorf("process %d: %w: it ended while it was being stopped", s.p.pid, ErrNoProcess)
	}
	if s.execed {
		return fmt.Errorf("process %d: %w while it was being stopped; try again", s.p.pid, ErrExec)
	}
	if err := s.checkUnshared(); err != nil {
		return err
	}
	s.rememberRestarts()
	return nil
}

// settleAll waits for every thread that is on its way to its stop, those born
// meanwhile too.
func (s *Stopped) settleAll(deadline time.Time) error {
	for i := 0; i < len(s.threads); i++ { // settle may add threads
		t := s.threads[i]
		if t.stopped || t.ended {
			continue
		}
		if err := s.settle(t, deadline); err != nil {
			return err
		}
		s.patience.renew()
		if t.ended {
			continue
		}
		err := t.keepRestartable()
		if errors.Is(err, ErrReleased) { // it was killed meanwhile
			err = s.settle(t, deadline)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// seizeNew seizes all threads not yet known and then tells them to stop, in two
// rounds, since they run on while others are seized. It says whether there were any.
func (s *Stopped) seizeNew(deadline time.Time) (bool, error) {
	tids, err := taskIDs(s.p.pid)
	if err != nil {
		return false, err
	}
	first, fresh := len(s.threads) == 0, false
	var orders []int
	defer s.letExecsEnd()()
	for _, tid := range tids {
		if t := s.byTID[tid]; t != nil && !t.ended || s.sighted[tid].worker {
			continue
		}
		if err := s.ctx.Err(); err != nil {
			return false, fmt.Errorf("process %d: stop: %w", s.p.pid, err)
		}
		if time.Now().After(deadline) {
			return false, s.timeoutError(tid)
		}
		seized, err := s.seizeOne(tid)
		if err != nil {
			return false, err
		}
		if seized {
			orders = append(orders, tid)
		}
		// One that has ended since the list was made may have made others before.
		if !s.tried[tid] || s.byTID[tid] != nil && !s.byTID[tid].ended {
			s.tried[tid], fresh = true, true
		}
	}
	// What was seized keeps its ID from now on; before, the process may have ended, and another one have got its own.
	if !s.p.Alive() {
		return false, fmt.Errorf("process %d: %w: it ended while it was being stopped", s.p.pid, ErrNoProcess)
	}
	s.patience.renew()
	if first {
		s.Since = time.Now()
	}
	for _, tid := range orders {
		s.byTID[tid].order()
	}
	return fresh, nil
}

// seizeOne adds a thread if it can be stopped, and says whether it is still to be
// told to.
func (s *Stopped) seizeOne(tid int) (bool, error) {
	if _, before := s.sighted[tid]; !before || s.byTID[tid] != nil {
		st, err := readStat(s.p.pid, tid)
		// A thread that has ended stays in the list until somebody has waited for it.
		if err != nil || st.ended() || st.worker() {
			return false, nil
		}
	}
	err := s.seizeAgain(tid, attachOptions)
	if err == nil {
		s.add(tid)
		return true, nil
	}
	switch {
	case errors.Is(err, unix.ESRCH):
		return false, nil
	case errors.Is(err, ErrTraced):
		return false, err
	}
	status, statusErr := readStatus(s.p.pid, tid)
	if statusErr != nil {
		return false, nil // it has ended meanwhile
	}
	switch {
	case status.TracerPID == unix.Gettid():
		// Born to a seized thread, so the kernel has seized and stopped it.
		s.add(tid).ordered = true
		return false, nil
	case status.TracerPID != 0:
		return false, checkTracer(s.p.pid, status)
	}
	if st, err := readStat(s.p.pid, tid); err != nil || st.ended() || st.worker() {
		return false, nil // ended, or runs in the kernel only
	}
	if errors.Is(err, unix.EPERM) {
		return false, notPermitted(s.p.pid, status, err)
	}
	return false, fmt.Errorf("process %d: seize thread %d: %w", s.p.pid, tid, err)
}

// seizeAgain seizes a thread. The kernel says EPERM of one that is traced, and its tracer may have gone when it is looked for. The error is
// ErrTraced if one was seen that isn't this thread.
func (s *Stopped) seizeAgain(tid, options int) error {
	const tries = 20
	for try := 0; ; try++ {
		err := seize(tid, options)
		if !errors.Is(err, unix.EPERM) || try == tries {
			return err
		}
		status, e := readStatus(s.p.pid, tid)
		switch {
		case e != nil || status.TracerPID == unix.Gettid():
			return err
		case status.TracerPID != 0:
			return checkTracer(s.p.pid, status)
		}
		time.Sleep(50 * time.Microsecond)
	}
}

func (s *Stopped) add(tid int) *Thread {
	t := &Thread{TID: tid, s: s}
	s.threads = append(s.threads, t)
	s.byTID[tid] = t
	return t
}

// Process returns the process that is stopped.
func (s *Stopped) Process() *Process { return s.p }

// Threads returns the threads that are stopped. The leader is not among them
// when it has ended before the others.
func (s *Stopped) Threads() []*Thread {
	return slices.DeleteFunc(slices.Clone(s.threads), func(t *Thread) bool { return !t.stopped })
}

// Thread returns the thread with that ID as seen from here, or nil.
func (s *Stopped) Thread(tid int) *Thread {
	if t := s.byTID[tid]; t != nil && t.stopped {
		return t
	}
	return nil
}

// letGo detaches every thread. What cannot be detached, since it never stopped
// or since its exit status is another's to read, is left to the tracer's end.
func (s *Stopped) letGo(took *time.Duration) {
	s.release = true
	for _, t := range s.threads {
		if !t.anew && !t.ordered {
			t.letGo()
		}
	}
	*took = time.Since(s.Since)
	for _, t := range s.threads {
		if t.anew {
			t.reenter()
		}
	}
	s.letGoLate()
}

func (t *Thread) letGo() {
	switch {
	case t.ended:
	case !t.stopped:
		t.s.leftover = true
	default:
		t.endIfDue()
		if detach(t.TID, 0) != nil {
			// It was killed, and may not be ready to be reaped yet.
			t.ended, t.s.leftover = true, true
		}
		t.stopped = false
	}
}

// markEnded notes that a thread was killed. The leader's exit status may be
// ours to wait for as its parent too, so it isn't consumed here.
func (t *Thread) markEnded() {
	t.stopped, t.ended = false, true
	if t.TID == t.s.p.pid {
		t.s.leftover = true
		return
	}
	reap(t.TID)
}
