package scheduling

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/callreel/callreel/process/sched"
	"github.com/callreel/callreel/reel"
)

// A session is a reel that gets words and calls, of this process, which is told to have threads that it hasn't.
type session struct {
	t    *testing.T
	w    *reel.Writer
	r    *Reel
	path string
}

func newSession(t *testing.T, globs ...string) *session {
	t.Helper()
	s := &session{t: t, path: filepath.Join(t.TempDir(), "a.reel")}
	var err error
	if s.w, err = reel.Create(s.path, reel.Header{Clock: reel.Clock{Mode: reel.ClockFull, TicksPerSecond: 1e8}}, reel.Options{}); err != nil {
		t.Fatal(err)
	}
	w := newWatch()
	w.leastWait = 100_000
	s.r = w.newReel(s.w, globs, os.Getpid())
	w.keep = s.r
	return s
}

func (s *session) words(tid int, words ...sched.Event) {
	for _, e := range words {
		s.r.take(tid, os.Getpid(), e)
	}
}

func (s *session) drained(after time.Duration) {
	s.t.Helper()
	if err := s.r.drained(time.Now().Add(after), 1<<40); err != nil {
		s.t.Fatal(err)
	}
}

func (s *session) call(tid int, ticks ...uint64) *Thread {
	s.t.Helper()
	th, err := s.r.Thread(reel.Thread{TID: tid, Process: os.Getpid(), Name: "caller"})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, at := range ticks {
		if err := th.Append([]reel.Event{reel.Entry(at, 1000, 1)}); err != nil {
			s.t.Fatal(err)
		}
	}
	return th
}

// read closes the reel and reads it.
func (s *session) read() *reel.File {
	s.t.Helper()
	if err := s.r.finish(1 << 40); err != nil {
		s.t.Fatal(err)
	}
	if err := s.w.Close(); err != nil {
		s.t.Fatal(err)
	}
	f, err := reel.Open(s.path)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { f.Close() })
	return f
}

func states(f *reel.File, key uint32) (n int, first uint64) {
	r := f.States(key)
	for i, ok := r.Next(); ok; i, ok = r.Next() {
		if n++; n == 1 {
			first = i.From
		}
	}
	return n, first
}

func in(at uint64) sched.Event {
	return sched.Event{Time: at, Kind: sched.In, Syscall: sched.NoSyscall}
}
func blocked(at uint64) sched.Event {
	return sched.Event{Time: at, Kind: sched.Blocked, Syscall: 202, Args: [3]uint64{7, 8, 9}}
}
func ended(at uint64) sched.Event {
	return sched.Event{Time: at, Kind: sched.Ended, Syscall: sched.NoSyscall}
}

// Thread IDs beyond what the kernel gives: nobody has them.
const nobody = 1 << 23

// Whether the scheduler or the rings tell of a thread first, it is one thread of the reel.
func TestAThreadIsOneWhoeverTellsOfItFirst(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(s *session)
	}{
		{"the scheduler", func(s *session) {
			s.words(nobody, in(1000), blocked(2000))
			s.drained(0)
			s.call(nobody, 1500)
		}},
		{"the scheduler, long before", func(s *session) {
			s.words(nobody, in(1000), blocked(2000))
			s.drained(2 * silentTime)
			s.call(nobody, 1500)
		}},
		{"the rings", func(s *session) {
			s.call(nobody, 1500)
			s.words(nobody, in(1000), blocked(2000))
			s.drained(0)
		}},
		{"the rings, when it has ended", func(s *session) {
			s.words(nobody, in(1000), blocked(2000), in(3000), ended(4000))
			s.drained(2 * silentTime)
			s.call(nobody, 1500)
		}},
		{"the rings say that it has ended, and words follow", func(s *session) {
			th := s.call(nobody, 1500)
			if err := th.End(1600); err != nil {
				s.t.Fatal(err)
			}
			s.words(nobody, in(1000), blocked(2000), in(3000), ended(4000))
			s.drained(2 * silentTime)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSession(t)
			c.do(s)
			f := s.read()
			threads := f.Threads()
			if len(threads) != 1 || threads[0].TID != nobody || threads[0].Name != "caller" {
				t.Fatalf("%+v", threads)
			}
			if n, first := states(f, threads[0].Key); n == 0 || first != 1000 {
				t.Errorf("%d intervals from %d on", n, first)
			}
		})
	}
}

func TestThreadsWithOneIDAreToldApart(t *testing.T) {
	s := newSession(t)
	s.words(nobody, in(1000), ended(2000), in(3000), ended(4000), in(5000))
	s.drained(0)
	late, early := s.call(nobody, 3500), s.call(nobody, 1500)
	if late.Key() == early.Key() {
		t.Error("calls of two threads are one's")
	}
	f := s.read()
	if len(f.Threads()) != 3 {
		t.Fatalf("%d threads, want 3: %+v", len(f.Threads()), f.Threads())
	}
	for key, want := range map[uint32]uint64{early.Key(): 1000, late.Key(): 3000} {
		if _, first := states(f, key); first != want {
			t.Errorf("thread %d: intervals from %d on, want %d", key, first, want)
		}
	}
}

// A thread that has nothing but words is in the reel for these, if it is wanted.
func TestThreadsWithoutCallsAreInTheReel(t *testing.T) {
	for _, c := range []struct {
		globs []string
		want  int
	}{{nil, 2}, {[]string{"no such thread"}, 0}} {
		s := newSession(t, c.globs...)
		s.words(os.Getpid(), in(1000), blocked(2000), in(300_000))
		s.words(nobody, in(1000), blocked(2000), in(300_000), ended(400_000))
		s.drained(0)
		s.words(nobody + 1) // has none
		s.drained(2 * silentTime)
		f := s.read()
		threads := f.Threads()
		if len(threads) != c.want {
			t.Fatalf("%d threads, want %d", len(threads), c.want)
		}
		for _, th := range threads {
			waits := f.Waits(th.Key)
			if len(waits) != 1 || waits[0].Time != 2000 || waits[0].Syscall != 202 || waits[0].Args != [3]uint64{7, 8, 9} {
				t.Errorf("thread %d has waited for %+v", th.TID, waits)
			}
			switch {
			case th.TID == os.Getpid() && (th.StartTime == 0 || th.EndTick != 0 || th.Name == ""):
				t.Errorf("this thread is %+v", th)
			case th.TID == nobody && th.EndTick != 400_000:
				t.Errorf("the thread that has ended is %+v", th)
			}
		}
	}
}

// The target may start as many threads as it likes.
func TestWhatIsKeptOfThreadsIsBounded(t *testing.T) {
	s := newSession(t, "no such thread")
	for tid := range 100 {
		for at := range uint64(2 * maxPending) {
			s.words(nobody+tid, in(1000+at))
		}
		s.drained(0)
	}
	if s.r.pending > maxAllPending {
		t.Errorf("%d words are kept", s.r.pending)
	}
	for i := range 20 {
		s.drained(time.Duration(i) * time.Second)
	}
	if s.r.pending > 100 {
		t.Errorf("%d words are kept of threads that aren't wanted", s.r.pending)
	}
	for tid := range 100 {
		s.words(nobody+tid, ended(1<<30))
	}
	s.drained(time.Hour)
	s.r.lives.forget(time.Now().Add(time.Hour), s.r.forget)
	if len(s.r.lives.by) != 0 || len(s.r.silent) != 0 || s.r.pending != 0 {
		t.Errorf("%d threads are known, %d wait, with %d words, when all have ended", len(s.r.lives.by), len(s.r.silent), s.r.pending)
	}
}
