package waitcalls

import "strings"

// Call is what a function does, by its first argument.
type Call struct {
	// Descriptor says that the argument is a file's descriptor, else it is an address in memory.
	Descriptor bool
	// Waits says that threads wait in it, Ends that it may let others go on: it unlocks the address, signals or posts it, or reads from the
	// descriptor, writes to it, connects or closes it.
	Waits, Ends bool
	// Out says of a descriptor that something goes out by it, or that it comes to be connected, or no more; else something comes in.
	Out bool
	// Second says that the second argument is the address of a mutex that is unlocked as the call begins.
	Second bool
}

// Kept is a call that took long, and what it was about. Times are in ticks.
type Kept struct {
	Call
	Start, End uint64
	Args       [2]uint64
}

var (
	locks     = Call{Waits: true}
	unlocks   = Call{Ends: true}
	condition = Call{Waits: true, Second: true}
	comesIn   = Call{Descriptor: true, Waits: true, Ends: true}
	goesOut   = Call{Descriptor: true, Waits: true, Ends: true, Out: true}
	closes    = Call{Descriptor: true, Ends: true, Out: true}
	stores    = Call{Descriptor: true, Waits: true}
)

// calls are those of glibc and musl by their names, without what is before them.
var calls = map[string]Call{
	"pthread_mutex_lock": locks, "pthread_mutex_timedlock": locks, "pthread_mutex_clocklock": locks, "pthread_mutex_cond_lock": locks,
	"pthread_mutex_unlock": unlocks, "pthread_mutex_unlock_usercnt": unlocks,
	"pthread_rwlock_rdlock": locks, "pthread_rwlock_timedrdlock": locks, "pthread_rwlock_clockrdlock": locks,
	"pthread_rwlock_wrlock": locks, "pthread_rwlock_timedwrlock": locks, "pthread_rwlock_clockwrlock": locks, "pthread_rwlock_unlock": unlocks,
	"pthread_cond_wait": condition, "pthread_cond_timedwait": condition, "pthread_cond_clockwait": condition,
	"pthread_cond_signal": unlocks, "pthread_cond_broadcast": unlocks, "private_cond_signal": unlocks,
	"sem_wait": locks, "sem_timedwait": locks, "sem_clockwait": locks, "sem_post": unlocks, "new_sem_wait": locks, "new_sem_post": unlocks,
	"pthread_barrier_wait": {Waits: true, Ends: true},
	"mtx_lock":             locks, "mtx_timedlock": locks, "mtx_unlock": unlocks,
	"cnd_wait": condition, "cnd_timedwait": condition, "cnd_signal": unlocks, "cnd_broadcast": unlocks,

	"read": comesIn, "readv": comesIn, "pread": stores, "pread64": stores, "recv": comesIn, "recvfrom": comesIn, "recvmsg": comesIn,
	"recvmmsg": comesIn, "accept": comesIn, "accept4": comesIn, "epoll_wait": stores, "epoll_pwait": stores, "epoll_pwait2": stores,
	"write": goesOut, "writev": goesOut, "pwrite": stores, "pwrite64": stores, "send": goesOut, "sendto": goesOut, "sendmsg": goesOut,
	"sendmmsg": goesOut, "connect": goesOut, "close": closes, "shutdown": closes,
	"fsync": stores, "fdatasync": stores, "flock": stores, "fcntl": stores, "fcntl64": stores, "ftruncate": stores, "ftruncate64": stores,
	"fallocate": stores, "fallocate64": stores, "sync_file_range": stores, "syncfs": stores, "ioctl": stores,
}

// library are names of functions of which a C library has one; see Set.Plan.
var library = map[string]bool{"pthread_mutex_lock": true, "__pthread_mutex_lock": true, "__libc_start_main": true}

// Of says what a function does that has one of these names; false if none is known.
func Of(names []string) (Call, bool) {
	for _, n := range names {
		if c, ok := calls[plain(n)]; ok {
			return c, true
		}
	}
	return Call{}, false
}

// plain is a name without its version, and without what the library's own names for it have more.
func plain(name string) string {
	if at := strings.IndexByte(name, '@'); at > 0 {
		name = name[:at]
	}
	if !strings.HasPrefix(name, "_") {
		return name
	}
	name = strings.TrimLeft(name, "_")
	for _, before := range []string{"GI_", "libc_", "syscall_"} {
		if rest, has := strings.CutPrefix(name, before); has {
			name = strings.TrimLeft(rest, "_")
		}
	}
	return strings.TrimSuffix(name, "_nocancel")
}

// isLibrary says whether a function of these names makes the image that has it a C library.
func isLibrary(names []string) bool {
	for _, n := range names {
		if library[n] {
			return true
		}
	}
	return false
}
