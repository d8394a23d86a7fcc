package waiting

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/callreel/callreel/internal/madereel"
	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

const (
	begin = 1 << 30
	top   = 0x7fff0000
	us    = 1000
)

// The functions of the made-up program.
const (
	fnWorker = iota + 1
	fnCritical
	fnRebuild
	fnCollide
	fnLock
	fnUnlock
	fnUnlockWrapper
	fnCondWait
	fnSignal
	fnProduce
	fnRead
)

var functions = []string{"worker", "critical", "cache_rebuild", "hash_collide", "pthread_mutex_lock", "pthread_mutex_unlock", "my_unlock", "pthread_cond_wait", "pthread_cond_signal", "produce", "read_request"}

// program makes the events and states of one thread.
type program struct {
	events []reel.Event
	words  []reel.SchedEvent
	waits  []reel.Wait
	values []reel.ValueSet
	open   []uint32
}

func at(t uint64) uint64 { return begin + t*us }

func (p *program) enter(t uint64, fn uint32) {
	p.events = append(p.events, reel.Entry(at(t), top-64*uint32(len(p.open)), fn))
	p.open = append(p.open, fn)
}

// enterWith is enter with the call's argument.
func (p *program) enterWith(t uint64, fn uint32, address uint64) {
	p.values = append(p.values, reel.ValueSet{Number: uint64(len(p.events)), Values: []reel.Value{{Bits: address}}})
	p.enter(t, fn)
}

func (p *program) leave(t uint64) {
	n := len(p.open) - 1
	p.events = append(p.events, reel.Exit(at(t), top-64*uint32(n), p.open[n]))
	p.open = p.open[:n]
}

func (p *program) sched(t uint64, kind reel.SchedKind, waker int32) {
	p.words = append(p.words, reel.SchedEvent{Time: at(t), Kind: kind, Waker: waker})
}

// futex blocks the thread in a futex call until it is woken.
func (p *program) futex(from, to uint64, address, op, val uint64, waker int32) {
	p.sched(from, reel.SchedBlocked, 0)
	p.waits = append(p.waits, reel.Wait{Time: at(from), Syscall: 202, Args: [3]uint64{address, op, val}})
	if waker != 0 {
		p.sched(to, reel.SchedWoken, waker)
		to += 5
	}
	p.sched(to, reel.SchedIn, 0)
}

// write writes the programs' threads, whose IDs are from 100 on, all of one process.
func write(t testing.TB, h reel.Header, wakeUps, arguments bool, threads ...*program) *reel.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "waits.reel")
	h.Clock, h.Arch = madereel.Nanoseconds(begin), "amd64"
	w := madereel.Create(t, path, h, reel.Image{Path: "/bin/prog", Base: 0x400000, End: 0x500000, Slide: 0x400000}, functions...)
	realtest.Must(t, w.Scheduling(reel.Scheduling{Source: "bpf", WakeUps: wakeUps}))
	if arguments {
		args := []reel.Argument{{Name: "mutex", Kind: reel.ArgumentPointer}}
		realtest.Must(t, w.AddArguments(fnLock, false, args))
		realtest.Must(t, w.AddArguments(fnUnlock, false, args))
	}
	for i, p := range threads {
		tw := madereel.Thread(t, w, reel.Thread{TID: 100 + i, Process: 100, Name: "t"})
		if !arguments {
			p.values = nil
		}
		realtest.Must(t, tw.AppendWith(p.events, p.values))
		realtest.Must(t, tw.Sched(p.words))
		realtest.Must(t, tw.Waits(p.waits))
	}
	w.SchedKnown(at(10_000))
	realtest.Must(t, w.Close())
	f, err := reel.Open(path)
	realtest.Must(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

const mutex = 0x401040

// contended is a thread that waits for a mutex from 200 to 1000 µs while another one rebuilds a cache.
func contendedPrograms(wakeUps bool, unlock func(p *program, t uint64)) (waiter, holder *program) {
	waiter, holder = &program{}, &program{}
	waker := int32(0)
	if wakeUps {
		waker = 101
	}
	waiter.sched(0, reel.SchedIn, 0)
	waiter.enter(10, fnWorker)
	waiter.enter(100, fnCritical)
	waiter.enterWith(110, fnLock, mutex)
	waiter.futex(200, 1000, mutex, 128, 2, waker)
	waiter.leave(1020)
	waiter.leave(1100)
	waiter.leave(1200)

	holder.sched(0, reel.SchedIn, 0)
	holder.enter(10, fnWorker)
	holder.enter(100, fnCritical)
	holder.enterWith(101, fnLock, mutex)
	holder.leave(102)
	holder.enter(150, fnRebuild)
	for t := uint64(160); t < 940; t += 60 {
		holder.enter(t, fnCollide)
		holder.leave(t + 59)
	}
	holder.leave(985)
	unlock(holder, 990)
	holder.leave(1010)
	holder.leave(1500)
	return waiter, holder
}

func plainUnlock(p *program, t uint64) {
	p.enterWith(t, fnUnlock, mutex)
	p.leave(t + 15)
}

func TestAMutexIsHeldByWhoCalledTheUnlock(t *testing.T) {
	for _, c := range []struct {
		name    string
		wakeUps bool
		unlock  func(p *program, t uint64)
	}{
		{"woken", true, plainUnlock},
		{"unlocked", false, plainUnlock},
		{"by a function that merely unlocks", true, func(p *program, t uint64) {
			p.enter(t, fnUnlockWrapper)
			p.enterWith(t+1, fnUnlock, mutex)
			p.leave(t + 14)
			p.leave(t + 15)
		}},
	} {
		waiter, holder := contendedPrograms(c.wakeUps, c.unlock)
		f := write(t, reel.Header{}, c.wakeUps, true, waiter, holder)
		locks, left := Locks(f, Options{})
		if len(locks) != 1 || left != 0 {
			t.Fatalf("%s: %+v", c.name, locks)
		}
		l := locks[0]
		if l.Address != mutex || l.Kind != Mutex || l.Waits != 1 || l.Threads != 1 || l.Process != 100 || l.Worst != l.Waited || l.Waited < 790*us || l.Waited > 810*us {
			t.Errorf("%s: %+v", c.name, l)
		}
		if len(l.Holders) != 1 || l.Holders[0].Function != fnCritical || l.Holders[0].Time < 785*us || l.Holders[0].Time > l.Waited {
			t.Errorf("%s: held by %+v", c.name, l.Holders)
		} else if !slices.Equal(l.Holders[0].In, []uint32{fnRebuild, fnCollide}) {
			t.Errorf("%s: %v went on meanwhile", c.name, l.Holders[0].In)
		}
		if place, ok := Place(f, l.Address); !ok || place != "prog+0x1040" {
			t.Errorf("%s: at %q", c.name, place)
		}
	}
}

func TestAConvoyIsSplitAmongThoseThatHadTheLock(t *testing.T) {
	// The last waits from 200 on; the second has waited since 150, gets the lock at 500 and gives it on at 1000.
	waiter, _ := contendedPrograms(true, plainUnlock)
	second, holder := &program{}, &program{}
	holder.sched(0, reel.SchedIn, 0)
	holder.enter(50, fnWorker)
	holder.enter(101, fnRebuild)
	holder.enter(495, fnUnlock)
	holder.leave(510)
	holder.leave(515)
	holder.leave(900)
	second.sched(0, reel.SchedIn, 0)
	second.enter(100, fnCritical)
	second.enterWith(140, fnLock, mutex)
	second.futex(150, 500, mutex, 128, 2, 102)
	second.leave(510)
	second.enterWith(990, fnUnlock, mutex)
	second.leave(1004)
	second.leave(1010)
	f := write(t, reel.Header{}, true, true, waiter, second, holder)
	list, _ := Find(f, Options{Threads: []uint32{1}})
	if len(list) != 1 || list[0].Waker != 2 || list[0].By != ByWakeUp {
		t.Fatalf("%+v", list)
	}
	list, _ = Find(f, Options{})
	if len(list) != 2 || len(list[0].Holders) != 2 {
		t.Fatalf("%+v", list)
	}
	h := list[0].Holders
	if h[0].Thread != 2 || h[0].Function() != fnCritical || h[0].Held < 495*us || h[0].Held > 505*us {
		t.Errorf("at last %+v", h[0])
	}
	if h[1].Thread != 3 || h[1].Function() != fnRebuild || h[1].Held < 295*us || h[1].Held > 305*us {
		t.Errorf("before %+v", h[1])
	}
}

func TestConditionsAreToldFromMutexes(t *testing.T) {
	waiter, producer := &program{}, &program{}
	waiter.sched(0, reel.SchedIn, 0)
	waiter.enter(10, fnWorker)
	waiter.enter(20, fnCondWait)
	waiter.futex(30, 5000, 0x7f0000001000, 137, 0, 101)
	waiter.leave(5100)
	waiter.enter(5200, fnRead)
	waiter.sched(5300, reel.SchedBlocked, 0)
	waiter.sched(5400, reel.SchedWoken, reel.WakerKernel)
	waiter.sched(5410, reel.SchedIn, 0)
	waiter.leave(5500)
	producer.sched(0, reel.SchedIn, 0)
	producer.enter(10, fnProduce)
	producer.enter(4990, fnSignal)
	producer.leave(5010)
	producer.leave(6000)
	f := write(t, reel.Header{}, true, false, waiter, producer)
	locks, _ := Locks(f, Options{})
	if len(locks) != 1 || locks[0].Kind != Condition || locks[0].Kind.IsLock() || len(locks[0].Holders) != 1 || locks[0].Holders[0].Function != fnProduce {
		t.Errorf("%+v", locks)
	}
	all, _ := Find(f, Options{})
	if len(all) != 2 || all[1].Kind != Other || all[1].Function != fnRead || all[1].By != ByKernel {
		t.Errorf("%+v", all)
	}
	if few, left := Find(f, Options{Most: 1}); len(few) != 1 || left != 1 || few[0].Kind != Condition {
		t.Errorf("%+v, %d left", few, left)
	}
	if some, _ := Find(f, Options{From: at(5200), Least: 50 * us}); len(some) != 1 || some[0].Function != fnRead {
		t.Errorf("%+v", some)
	}
}

func TestNamesThatMerelyLockOrWake(t *testing.T) {
	for name, want := range map[string]role{
		"__pthread_mutex_lock":            {wait: Mutex, skip: true},
		"___pthread_mutex_lock@GLIBC_2.2": {wait: Mutex, skip: true},
		"pthread_mutex_unlock":            {unlock: true, skip: true},
		"__lll_lock_wait":                 {wait: Mutex, skip: true},
		"pthread_cond_wait":               {wait: Condition, skip: true},
		"pthread_cond_broadcast":          {skip: true},
		"_ZNSt5mutex6unlockEv":            {unlock: true, skip: true},
		"runtime.futexwakeup":             {skip: true},
		"critical":                        {},
		"pthread_create_worker":           {},
	} {
		if got, _ := roleOf(name); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

// known blocks the thread until another one, by its key, ends that, as a library's calls tell.
func (p *program) known(from, to uint64, w reel.Wait) {
	p.sched(from, reel.SchedBlocked, 0)
	w.Time, w.Syscall = at(from), -1
	if w.Ender != 0 {
		w.EndedAt = at(to - 1)
	}
	p.waits = append(p.waits, w)
	p.sched(to, reel.SchedIn, 0)
}

// explained are a thread that waits, for a mutex, a condition and its mutex, and a pipe, and one that ends all that.
func explained() (waiter, other *program) {
	waiter, other = &program{}, &program{}
	waiter.sched(0, reel.SchedIn, 0)
	waiter.enter(10, fnWorker)
	waiter.enter(100, fnLock)
	waiter.known(200, 1000, reel.Wait{Lock: mutex, Ender: 2, EndedBy: reel.EndUnlock})
	waiter.leave(1010)
	waiter.enter(1100, fnCondWait)
	waiter.known(1200, 2000, reel.Wait{Lock: mutex + 64, Mutex: mutex, Ender: 2, EndedBy: reel.EndUnlock})
	waiter.known(2100, 3000, reel.Wait{Lock: mutex, Mutex: mutex, Ender: 2, EndedBy: reel.EndUnlock})
	waiter.leave(3010)
	waiter.enter(3100, fnRead)
	waiter.known(3200, 4000, reel.Wait{Args: [3]uint64{5}, Object: "pipe:[7]", Ender: 2, EndedBy: reel.EndDescriptor})
	waiter.leave(4010)
	waiter.enter(4100, fnLock)
	waiter.known(4200, 5000, reel.Wait{Lock: mutex})
	waiter.leave(5010)
	other.sched(0, reel.SchedIn, 0)
	other.enter(10, fnProduce)
	other.enter(4300, fnCondWait)
	other.known(4400, 5500, reel.Wait{Lock: mutex + 64, Mutex: mutex, Ender: 1, EndedBy: reel.EndUnlock})
	other.leave(5600)
	other.leave(6000)
	return waiter, other
}

func TestWhatLibraryCallsTellIsTaken(t *testing.T) {
	waiter, other := explained()
	list, _ := Find(write(t, reel.Header{}, false, false, waiter, other), Options{Threads: []uint32{1}})
	want := []struct {
		kind    Kind
		address uint64
		by      Source
	}{{Mutex, mutex, ByUnlock}, {Condition, mutex + 64, ByUnlock}, {Mutex, mutex, ByUnlock}, {Other, 0, ByDescriptor}, {Mutex, mutex, NotKnown}}
	if len(list) != len(want) {
		t.Fatalf("%+v", list)
	}
	for i, w := range want {
		s := &list[i]
		if s.Kind != w.kind || s.Address != w.address || s.By != w.by || (s.Waker == 2) != (w.by != NotKnown) {
			t.Errorf("%d: %+v", i, *s)
		}
	}
	// The last mutex was unlocked as the other one began to wait for a condition.
	list, _ = Find(write(t, reel.Header{}, false, false, waiter, other), Options{})
	if s := &list[4]; s.By != ByUnlock || s.Waker != 2 || s.WokenAt != at(4300) {
		t.Errorf("%+v", *s)
	}
}
