package recorder_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// threadStates is what a reel says of what the scheduler did with a thread.
type threadStates struct {
	reel.Thread
	calls    int
	switches uint64
	time     map[reel.RunState]time.Duration
	waits    []reel.Wait
	sums     reel.SchedSums
	hasSums  bool
	// inCalls is of the function's calls that ended, by its name.
	inCalls map[string]map[reel.RunState]time.Duration
}

// statesOf reads the states of all threads by name.
func statesOf(t *testing.T, file string) (reel.Scheduling, map[string]*threadStates) {
	t.Helper()
	f, err := reel.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if d := f.Damage(); len(d) > 0 {
		t.Fatalf("damaged: %v", d)
	}
	about, said := f.Scheduling()
	if !said {
		t.Fatal("the reel doesn't say how states were learned")
	}
	perTick := 1e9 / float64(f.Header().Clock.TicksPerSecond)
	all := map[string]*threadStates{}
	for _, th := range f.Threads() {
		s := &threadStates{Thread: th, time: map[reel.RunState]time.Duration{}, waits: f.Waits(th.Key), inCalls: map[string]map[reel.RunState]time.Duration{}}
		if all[th.Name] != nil {
			t.Errorf("two threads are called %q", th.Name)
		}
		all[th.Name] = s
		s.sums, s.hasSums = f.SchedSums(th.Key)
		last := uint64(0)
		r := f.States(th.Key)
		for i, ok := r.Next(); ok; i, ok = r.Next() {
			if i.To <= i.From || last != 0 && i.From != last {
				t.Fatalf("%s: the interval %+v does not follow tick %d", th.Name, i, last)
			}
			last = i.To
			s.switches++
			s.time[i.State] += time.Duration(float64(i.To-i.From) * perTick)
		}
		var p reel.Pairer
		f.ReadyPairer(&p, th.Key)
		f.PairStates(&p, th.Key)
		p.OnCall = func(c *reel.Call) {
			s.calls++
			fn, _ := f.Function(c.Func)
			in := s.inCalls[fn.Name]
			if in == nil {
				in = map[reel.RunState]time.Duration{}
				s.inCalls[fn.Name] = in
			}
			in[reel.StateRunning] += time.Duration(float64(c.States.Running) * perTick)
			in[reel.StateReady] += time.Duration(float64(c.States.Ready) * perTick)
			in[reel.StateBlocked] += time.Duration(float64(c.States.Blocked) * perTick)
		}
		f.ReadThread(th.Key, func(events []reel.Event, lost bool) bool {
			p.Push(events)
			return true
		})
		p.Finish(f.EndOf(&th))
	}
	return about, all
}

// wantWordsOfScheduler skips a test where the scheduler's words can't be had, and fails it where the reel has none.
func wantWordsOfScheduler(t *testing.T, about reel.Scheduling) {
	t.Helper()
	if about.Source != "bpf" && about.Source != "perf" {
		realtest.NeedThat(t, "words of the scheduler", errors.New(about.Reason))
	}
}

func TestStatesOfThreadsAreRecorded(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, realtest.Build(t, "states"))
	port := strings.TrimPrefix(p.WaitLine("tcp "), "tcp ")
	s := recordFor(t, "1500ms", append(pidFlag(p), "-f", "does_*")...)
	about, threads := statesOf(t, s.file)
	wantWordsOfScheduler(t, about)
	wantUntouched(t, p.Pid())

	for name, mostly := range map[string]reel.RunState{"sleep": reel.StateBlocked, "pipe": reel.StateBlocked, "unix": reel.StateBlocked, "tcp": reel.StateBlocked,
		"write": reel.StateBlocked, "silent": reel.StateBlocked} {
		th := threads[name]
		if th == nil {
			t.Errorf("thread %q is not in the reel", name)
			continue
		}
		if th.StartTime == 0 || th.EndTick != 0 || th.Process != p.Pid() {
			t.Errorf("%s: %+v", name, th.Thread)
		}
		all := th.time[reel.StateRunning] + th.time[reel.StateReady] + th.time[reel.StateBlocked]
		// Of what is known: a word of the scheduler may get lost on a busy machine. A thread that is woken may wait long for a processor there.
		if th.switches < 100 || all < time.Second || th.time[mostly]+th.time[reel.StateReady] < all/2 || th.time[mostly] == 0 {
			t.Errorf("%s: %d switches, %v", name, th.switches, th.time)
		}
		if calls := th.calls > 0; calls == (name == "silent") {
			t.Errorf("%s: %d calls", name, th.calls)
		}
	}
	in := func(thread, function string) map[reel.RunState]time.Duration {
		return threads[thread].inCalls[function]
	}
	if run := in("run", "does_run"); run[reel.StateBlocked] > run[reel.StateRunning]/10 || run[reel.StateRunning] == 0 {
		t.Errorf("a function that computes: %v", run)
	}
	for thread, function := range map[string]string{"sleep": "does_sleep", "pipe": "does_read"} {
		if c := in(thread, function); c[reel.StateRunning] > c[reel.StateBlocked] || c[reel.StateBlocked] == 0 {
			t.Errorf("%s, which waits: %v", function, c)
		}
	}
	if s.Threads != 8 {
		t.Errorf("%d threads have called, want 8", s.Threads)
	}
	if about.Source != "bpf" {
		t.Skipf("system calls are not told: %s", about.Reason)
	}
	for name, want := range map[string]string{"pipe": "pipe:[", "unix": "unix socket", "tcp": "socket 127.0.0.1:"} {
		waits := threads[name].waits
		named := 0
		for _, w := range waits {
			if strings.HasPrefix(w.Object, want) && (name != "tcp" || strings.Contains(w.Object, ":"+port)) && w.Syscall == unix.SYS_READ {
				named++
			}
		}
		if named < len(waits)/2 || named == 0 {
			t.Errorf("%s: %d of %d waits are for %q: %+v", name, named, len(waits), want, first(waits, 3))
		}
	}
}

func first[T any](list []T, n int) []T { return list[:min(n, len(list))] }

// The kernel's own sums are the judge of those that the reel comes to.
func TestStatesAgreeWithTheKernelsSums(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, realtest.Build(t, "states"))
	s := recordFor(t, "3s", append(pidFlag(p), "-f", "does_*")...)
	about, threads := statesOf(t, s.file)
	wantWordsOfScheduler(t, about)
	for name, th := range threads {
		if !th.hasSums {
			t.Errorf("%s: the kernel's sums are not in the reel", name)
			continue
		}
		ran, ready := time.Duration(th.sums.Running), time.Duration(th.sums.Ready)
		says := fmt.Sprintf("%s: %d intervals, %v; the kernel says %v on a processor, %v ready", name, th.switches, th.time, ran, ready)
		t.Log(says)
		// What is unknown may have been either. The kernel looks at its clock some microseconds before or after it tells of a switch, and it
		// counts up at its own ticks only while a thread runs.
		slack := th.time[reel.StateUnknown] + 8*time.Millisecond + time.Duration(th.switches)*5*time.Microsecond
		if d := (th.time[reel.StateRunning] - ran).Abs(); d > ran/100+slack {
			t.Errorf("%s: off by %v", says, d)
		}
	}
}
