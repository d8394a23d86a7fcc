package scheduling

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/process/sched"
	"github.com/callreel/callreel/recorder/internal/waitcalls"
	"github.com/callreel/callreel/reel"
)

// dumped writes a window of the moments into a reel, with one thread that has called, and reads it.
func dumped(t *testing.T, m *Moments, from, to uint64, tid int, since uint64) (f *reel.File, called uint32) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dump.reel")
	w, err := reel.Create(path, reel.Header{Clock: reel.Clock{Mode: reel.ClockFull, TicksPerSecond: 1e8}}, reel.Options{})
	if err != nil {
		t.Fatal(err)
	}
	th, err := w.Thread(reel.Thread{TID: tid, Process: os.Getpid(), Name: "caller"})
	if err != nil {
		t.Fatal(err)
	}
	for k, s := range m.spans(from, to, []Called{{PID: os.Getpid(), TID: tid, Since: since, Writer: th}}) {
		if err := m.write(w, k, s); err != nil {
			t.Fatal(err)
		}
	}
	w.SchedKnown(to)
	if err := w.ClockPair(to, 1); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if f, err = reel.Open(path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f, th.Key()
}

func newMoments(words int) *Moments {
	m := &Moments{Watch: newWatch()}
	m.words.most, m.waits.most, m.leastWait = words, words, 100
	m.keep = m
	return m
}

func intervals(f *reel.File, key uint32) (list []reel.StateInterval) {
	r := f.States(key)
	for i, ok := r.Next(); ok; i, ok = r.Next() {
		list = append(list, i)
	}
	return list
}

// A dump says what each thread was doing when its window began, however long it had done so.
func TestADumpSaysWhatThreadsWereDoingBefore(t *testing.T) {
	m := newMoments(8)
	take := func(tid int, words ...sched.Event) {
		for _, e := range words {
			m.take(tid, os.Getpid(), e)
		}
	}
	take(nobody, blocked(1000))       // for the whole time, and its word is kept no more
	take(nobody+1, in(2000))          // until the window has begun
	take(nobody+2, in(10), ended(20)) // before
	for at := uint64(3000); at < 6000; at += 500 {
		take(nobody+3, in(at), blocked(at+200))
	}
	take(nobody+1, blocked(6500))
	f, called := dumped(t, m, 5000, 7000, nobody+1, 4000)
	if got := intervals(f, called); len(got) != 2 || got[0].From != 4000 || got[0].To != 6500 || got[0].State != reel.StateRunning ||
		got[1].State != reel.StateBlocked {
		t.Errorf("the thread that has called since before the window: %+v", got)
	}
	if len(f.Threads()) != 3 {
		t.Errorf("%d threads, want 3: %+v", len(f.Threads()), f.Threads())
	}
	for _, th := range f.Threads() {
		got, waits := intervals(f, th.Key), f.Waits(th.Key)
		switch th.TID {
		case nobody:
			if len(got) != 1 || got[0].From != 5000 || got[0].State != reel.StateBlocked {
				t.Errorf("the thread that waits for long: %+v", got)
			}
			if len(waits) != 1 || waits[0].Time != 5000 || waits[0].Syscall != 202 {
				t.Errorf("it waits for %+v", waits)
			}
		case nobody + 3:
			if len(got) < 3 || got[0].From != 5000 {
				t.Errorf("the thread that runs and waits: %+v", got)
			}
			for _, x := range waits {
				if x.Time < 5000 {
					t.Errorf("a wait from before the window: %+v", x)
				}
			}
		}
	}
	if m.lives.forget(m.lives.over[0].noted.Add(2*endedTime), m.forget); m.lives.latest(who{os.Getpid(), nobody + 2}) != nil {
		t.Error("a thread that has ended, and of which nothing is kept, is not forgotten")
	}
}

func TestQueuesKeepWhatIsNewest(t *testing.T) {
	q := queue[int]{most: 3}
	for i := range 5 {
		if old, full := q.push(i); full != (i >= 3) || full && old != i-3 {
			t.Errorf("%d made %d go: %v", i, old, full)
		}
	}
	var got []int
	q.each(func(x *int) { got = append(got, *x) })
	if len(got) != 3 || got[0] != 2 || got[2] != 4 {
		t.Errorf("%v", got)
	}
}

// A dump's calls are in rings, thread by thread. Who ended a wait is known however long ago that was, and however many calls there were since.
func TestADumpKnowsWhoEndedWaitsOfLongAgo(t *testing.T) {
	var pipes [2][2]int
	for i := range pipes {
		if err := unix.Pipe2(pipes[i][:], unix.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		defer unix.Close(pipes[i][0])
		defer unix.Close(pipes[i][1])
	}
	const rounds = 3 * maxEnders
	m := newMoments(rounds)
	m.waits.most = 4 * rounds
	kept := func(name string, from, to uint64, arg uint64) waitcalls.Kept {
		call, ok := waitcalls.Of([]string{name})
		if !ok {
			t.Fatalf("%s isn't known", name)
		}
		return waitcalls.Kept{Call: call, Start: from, End: to, Args: [2]uint64{arg}}
	}
	// Of each kind a thread waits in each round, and the next one ends that.
	path := filepath.Join(t.TempDir(), "dump.reel")
	w, err := reel.Create(path, reel.Header{Clock: reel.Clock{Mode: reel.ClockFull, TicksPerSecond: 1e9}}, reel.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	threads := make([]Called, 6)
	lives := make([]*life, len(threads))
	for i := range threads {
		tid := nobody + i
		m.take(tid, os.Getpid(), in(1))
		th, err := w.Thread(reel.Thread{TID: tid, Process: os.Getpid()})
		if err != nil {
			t.Fatal(err)
		}
		threads[i], lives[i] = Called{PID: os.Getpid(), TID: tid, Writer: th}, m.lives.latest(who{os.Getpid(), tid})
	}
	for n := range uint64(rounds) {
		at := (n + 1) * ms
		for i, name := range [][2]string{{"read", "write"}, {"pthread_mutex_lock", "pthread_mutex_unlock"}, {"read", "write"}} {
			in, out := uint64(lock), uint64(lock)
			if p := pipes[i/2]; name[0] == "read" {
				in, out = uint64(p[0]), uint64(p[1])
			}
			threads[2*i].Kept = append(threads[2*i].Kept, kept(name[0], at, at+ms/2+2000, in))
			threads[2*i+1].Kept = append(threads[2*i+1].Kept, kept(name[1], at+ms/2, at+ms/2+1000, out))
			m.waited(lives[2*i], reel.Wait{Time: at + 1000, Syscall: sched.NoSyscall}, at+ms/2+1500)
		}
	}
	spans := m.spans(0, (rounds+1)*ms, threads)
	for i := range threads {
		waits, want := spans[lives[i]].waits, 0
		if i%2 == 0 {
			want = rounds
		}
		if len(waits) != want {
			t.Errorf("thread %d has waited %d times, want %d", i, len(waits), want)
		}
		for n, x := range waits {
			if x.Ender != threads[i+1].Writer.Key() || x.EndedAt != uint64(n+1)*ms+ms/2 {
				t.Fatalf("wait %d of thread %d: %+v", n, i, x)
			}
		}
	}
}

// What a word of a kind doesn't tell isn't kept.
func TestWordsAreKeptAsTheyCame(t *testing.T) {
	for _, e := range []reel.SchedEvent{
		{Time: 1<<timeBits - 1, Kind: reel.SchedIn, CPU: 1023}, {Time: 7, Kind: reel.SchedIn, CPU: -1}, {Time: 8, Kind: reel.SchedPreempted, CPU: -1},
		{Time: 9, Kind: reel.SchedWoken, Waker: 4194304, CPU: -1}, {Time: 9, Kind: reel.SchedWoken, Waker: reel.WakerKernel, CPU: -1},
		{Time: 10, Kind: reel.SchedMajorFault, Address: 1<<64 - 1, CPU: -1}, {Time: 11, Kind: reel.SchedEnded, CPU: -1},
	} {
		m := newMoment(nil, &e)
		if got := m.event(); got != e {
			t.Errorf("%+v became %+v", e, got)
		}
	}
}
