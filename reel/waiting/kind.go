package waiting

import (
	"strings"

	"github.com/callreel/callreel/demangle"
	"github.com/callreel/callreel/reel"
)

// Kind is what a thread waited for.
type Kind uint8

// The kinds. Futex is one of the others of which neither the call nor the system call says which.
const (
	Other Kind = iota
	Mutex
	ReadWriteLock
	Condition
	Semaphore
	Barrier
	ThreadEnd
	Futex
)

// String returns the kind as reports spell it, "" for Other.
func (k Kind) String() string {
	return [...]string{"", "mutex", "rwlock", "condition", "semaphore", "barrier", "join", "futex"}[min(k, Futex)]
}

// rank is 0 for locks, 1 for what may be one, and 2 for what is none.
func (k Kind) rank() int {
	switch {
	case k == Futex:
		return 1
	case k.IsLock():
		return 0
	}
	return 2
}

// IsLock says whether who lets the thread go on has had what it waited for until then.
func (k Kind) IsLock() bool { return k == Mutex || k == ReadWriteLock || k == Futex }

// futexCall is the system call's number; -1 if it isn't known.
func futexCall(arch string) int32 {
	switch arch {
	case "amd64":
		return 202
	case "arm64", "riscv64", "loong64":
		return 98
	case "386", "arm":
		return 240
	case "s390x":
		return 238
	case "ppc64", "ppc64le":
		return 221
	}
	return -1
}

// Futex operations (linux/futex.h), without the flags for private ones and for the clock.
const (
	futexOp            = 0x7f
	futexWait          = 0
	futexLockPI        = 6
	futexWaitBitset    = 9
	futexWaitRequeuePI = 11
	futexLockPI2       = 13
	// A mutex that others wait for has this value, in all libraries that follow Drepper, "Futexes Are Tricky": glibc's, musl's inner
	// ones, Go's, Rust's.
	contended = 2
)

// futexKind says what a futex call waits for, as far as its arguments tell.
func futexKind(args [3]uint64) (Kind, bool) {
	switch op := args[1] & futexOp; op {
	case futexLockPI, futexLockPI2:
		return Mutex, true
	case futexWaitRequeuePI:
		return Condition, true
	case futexWait, futexWaitBitset:
		if op == futexWait && uint32(args[2]) == contended {
			return Mutex, true
		}
		return Futex, true
	}
	return Other, false
}

// role is what a function's name says it does.
type role struct {
	wait   Kind // for what it waits
	unlock bool
	skip   bool // it merely locks, unlocks, waits or wakes for its caller
}

// begins are beginnings of names, without leading underscores, and what such functions do.
var begins = []struct {
	name string
	role role
}{
	{"pthread_mutex_unlock", role{unlock: true}},
	{"pthread_mutex_", role{wait: Mutex}},
	{"pthread_rwlock_unlock", role{unlock: true}},
	{"pthread_rwlock_", role{wait: ReadWriteLock}},
	{"pthread_cond_wait", role{wait: Condition}},
	{"pthread_cond_timedwait", role{wait: Condition}},
	{"pthread_cond_clockwait", role{wait: Condition}},
	{"pthread_cond_", role{}},
	{"pthread_barrier_wait", role{wait: Barrier}},
	{"pthread_join", role{wait: ThreadEnd}},
	{"pthread_timedjoin_np", role{wait: ThreadEnd}},
	{"pthread_clockjoin_", role{wait: ThreadEnd}},
	{"pthread_spin_", role{}},
	{"sem_post", role{}},
	{"sem_wait", role{wait: Semaphore}},
	{"sem_timedwait", role{wait: Semaphore}},
	{"sem_clockwait", role{wait: Semaphore}},
	{"new_sem_post", role{}},
	{"new_sem_wait", role{wait: Semaphore}},
	{"lll_lock_", role{wait: Mutex}},
	{"lll_", role{}},
	{"GI_pthread_mutex_unlock", role{unlock: true}},
	{"GI___pthread_mutex_unlock", role{unlock: true}},
	{"mtx_unlock", role{unlock: true}},
	{"mtx_lock", role{wait: Mutex}},
	{"mtx_timedlock", role{wait: Mutex}},
	{"cnd_wait", role{wait: Condition}},
	{"cnd_timedwait", role{wait: Condition}},
	{"cnd_", role{}},
	{"gthread_mutex_", role{}},
	{"gthread_cond_", role{}},
	{"futex_", role{}},
	{"GI_", role{}},
	{"g_mutex_unlock", role{unlock: true}},
	{"g_mutex_lock", role{wait: Mutex}},
	{"g_cond_wait", role{wait: Condition}},
	{"g_cond_", role{}},
	{"std::mutex::unlock", role{unlock: true}},
	{"std::mutex::", role{wait: Mutex}},
	{"std::recursive_mutex::", role{}},
	{"std::timed_mutex::", role{}},
	{"std::shared_mutex::", role{}},
	{"std::shared_timed_mutex::", role{}},
	{"std::shared_lock", role{}},
	{"std::unique_lock", role{}},
	{"std::lock_guard", role{}},
	{"std::scoped_lock", role{}},
	{"std::condition_variable::wait", role{wait: Condition}},
	{"std::condition_variable", role{}},
	{"std::thread::join", role{wait: ThreadEnd}},
	{"std::sys::sync::mutex::", role{}},
	{"std::sys::sync::condvar::", role{}},
	{"std::sys::sync::rwlock::", role{}},
	{"std::sys::futex", role{}},
	{"std::sync::mutex::", role{}},
	{"std::sync::poison::mutex::", role{}},
	{"core::ptr::drop_in_place<std::sync::", role{}},
	{"parking_lot", role{}},
	{"sync.(*Mutex).", role{}},
	{"sync.(*RWMutex).", role{}},
	{"sync.(*Cond).", role{}},
	{"internal/sync.(*Mutex).", role{}},
	{"runtime.lock", role{}},
	{"runtime.unlock", role{}},
	{"runtime.futex", role{}},
	{"runtime.note", role{}},
	{"runtime.sema", role{}},
	{"runtime.ready", role{}},
	{"runtime.goready", role{}},
}

// whole are whole names of functions that merely wake or wait.
var whole = map[string]role{
	"syscall": {}, "futex": {}, "lock": {}, "unlock": {}, "Lock": {}, "Unlock": {}, "clone": {}, "wake": {}, "notify_one": {}, "notify_all": {},
}

// roleOf says what a function does by its name.
func roleOf(name string) (role, bool) {
	name = demangle.Short(name)
	if at := strings.IndexByte(name, '@'); at > 0 { // a version
		name = name[:at]
	}
	name = strings.TrimLeft(name, "_")
	if r, ok := whole[name]; ok {
		r.skip = true
		return r, true
	}
	for i := range begins {
		if strings.HasPrefix(name, begins[i].name) {
			r := begins[i].role
			r.skip = true
			return r, true
		}
	}
	return role{}, false
}

// names knows what functions of a reel do.
type names struct {
	futex int32
	roles map[uint32]role
	// address is, of functions that lock or unlock what an argument of theirs points at, which argument that is.
	address map[uint32]int
}

func newNames(f *reel.File) *names {
	n := &names{futex: futexCall(f.Header().Arch), roles: map[uint32]role{}, address: map[uint32]int{}}
	for id, fn := range f.Functions {
		r, ok := roleOf(fn.Name)
		if !ok {
			continue
		}
		n.roles[id] = r
		if r.wait != Mutex && r.wait != ReadWriteLock && !r.unlock {
			continue
		}
		for i, a := range f.Arguments(id, false) {
			if a.Kind == reel.ArgumentPointer || a.Kind == reel.ArgumentUint {
				n.address[id] = i
				break
			}
		}
	}
	return n
}

// classify says what a stretch is of, by its call and its system call. open are the open calls, locked the argument of the one of them that
// locks something.
func (n *names) classify(s *Stretch, open []frame, locked uint64) {
	kind, isFutex := Other, false
	if s.HasWait && s.Wait.Syscall >= 0 && s.Wait.Syscall == n.futex {
		if kind, isFutex = futexKind(s.Wait.Args); isFutex {
			s.Address = s.Wait.Args[0]
		}
	}
	if isFutex || !s.HasWait || s.Wait.Syscall < 0 {
		if _, wait := n.waitsIn(open); wait != Other {
			kind = wait
			if s.Address == 0 {
				s.Address = locked
			}
		}
	}
	if s.HasWait && s.Wait.Lock != 0 {
		if outer := n.outerWait(open); outer != Futex || kind == Other {
			kind = outer
		}
	}
	switch lock := s.Wait.Lock; {
	case s.HasWait && lock != 0 && kind != Other:
		if s.Address = lock; kind == Condition && lock == s.Wait.Mutex {
			kind = Mutex // it has been signalled already
		}
	case kind == Condition:
		s.Address &^= 7 // glibc's have two words side by side, which take turns
	}
	s.Kind = kind
}

// maxWithin is how many calls a library's function may have open within it that waits.
const maxWithin = 6

// outerWait is what one of the innermost calls waits for, Futex if none of them says so: it is known that one of them does.
func (n *names) outerWait(open []frame) Kind {
	for i := len(open) - 1; i >= max(0, len(open)-maxWithin); i-- {
		if wait := n.roles[open[i].function].wait; wait != Other {
			return wait
		}
	}
	return Futex
}

// waitsIn finds the innermost call whose function says what it waits for, below which there are only such as merely wait for it.
func (n *names) waitsIn(open []frame) (*frame, Kind) {
	for i := len(open) - 1; i >= 0; i-- {
		r := n.roles[open[i].function]
		if r.wait != Other {
			return &open[i], r.wait
		}
		if !r.skip {
			break
		}
	}
	return nil, Other
}
