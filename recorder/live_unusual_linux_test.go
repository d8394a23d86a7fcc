package recorder_test

import (
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/internal/realtest"
)

// Probes read the time-stamp counter, which kills a process that has forbidden
// itself that.
func TestAProcessWithoutTheTimeStampCounterIsRefused(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, realtest.Build(t, "unusual"), "notsc")
	refuse(t, p.Pid(), 3, []string{"time-stamp counter", "PR_SET_TSC"})
	wantUntouched(t, p.Pid())
	p.Finish()
}

// The ring memory of a process that locks all its memory is not locked, nor
// filled while it stands.
func TestAProcessThatLocksItsMemoryDoesNotLockTheRings(t *testing.T) {
	needLive(t)
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 && limit.Cur != unix.RLIM_INFINITY {
		t.Skipf("this user lacks permission to lock more than %d bytes (ulimit -l)", limit.Cur)
	}
	p := realtest.Start(t, realtest.Build(t, "unusual"), "locked")
	locked := func() int {
		kib, err := strconv.Atoi(statusField(t, p.Pid(), "VmLck"))
		if err != nil {
			t.Fatal(err)
		}
		return kib
	}
	const ring = 32 << 10 // KiB
	before := locked()
	if before == 0 {
		t.Fatal("nothing is locked: this test tests nothing")
	}
	r := realtest.StartRecording(t, append(pidFlag(p), "-f", "leaf", "--ring", strconv.Itoa(ring>>10)+"M")...)
	time.Sleep(50 * time.Millisecond)
	// The stubs are locked with the rest of the code, which is right.
	if during := locked(); during-before > ring/8 {
		t.Errorf("%d KiB are locked while it is recorded, %d before; the ring has %d", during, before, ring)
	}
	if s := stop(t, r); s.Calls == 0 {
		t.Error("no calls")
	}
	wantUntouched(t, p.Pid())
	if after := locked(); after != before {
		t.Errorf("%d KiB are locked afterwards, %d before", after, before)
	}
	p.Finish()
}

// Without randomised addresses the stack stands at the very top, and what is
// above it is no place for stubs.
func TestAProcessAtFixedAddressesIsRecorded(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, realtest.Build(t, "unusual"), "fixed")
	const addrNoRandomize = 0x40000 // personality(2)
	text, err := os.ReadFile("/proc/" + strconv.Itoa(p.Pid()) + "/personality")
	if err != nil {
		t.Fatal(err)
	}
	if now, err := strconv.ParseUint(string(text[:len(text)-1]), 16, 64); err != nil || now&addrNoRandomize == 0 {
		t.Fatalf("its personality is %s, %v: this test tests nothing", text, err)
	}
	if s := cycle(t, p.Pid()); s.Calls == 0 || s.Threads == 0 {
		t.Errorf("%+v", s)
	}
	p.Finish()
}

// The main thread of a process may end long before the others.
func TestAProcessWithoutItsMainThreadIsRecorded(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, realtest.Build(t, "unusual"), "leaderless")
	waitState(t, p.Pid(), 'Z')
	tid := anotherThread(t, p.Pid())
	r := realtest.StartRecording(t, pidFlag(p)...)
	wantProbed(t, tid)
	time.Sleep(50 * time.Millisecond)
	if s := stop(t, r); s.Calls == 0 || s.Ended || s.Threads == 0 {
		t.Errorf("%+v", s)
	}
	wantUntouched(t, tid)
	// And when its recorder dies.
	r = realtest.StartRecording(t, append(pidFlag(p), "-f", "leaf")...)
	r.Signal(os.Kill)
	r.Wait()
	realtest.MustCallreel(t, append([]string{"detach"}, pidFlag(p)...)...)
	wantUntouched(t, tid)
	p.Finish()
}

// anotherThread returns a thread of a process that is not its main one. The main
// thread's files in /proc are empty once it has ended.
func anotherThread(t *testing.T, pid int) int {
	t.Helper()
	tasks, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(tasks, func(e os.DirEntry) bool { return e.Name() != strconv.Itoa(pid) })
	if i < 0 {
		t.Fatalf("process %d has no other thread", pid)
	}
	tid, err := strconv.Atoi(tasks[i].Name())
	if err != nil {
		t.Fatal(err)
	}
	return tid
}

// A thread that is cancelled unwinds from a system call, or from next to it: no
// destructor is missed.
func TestThreadsMayBeCancelledWhileTheyAreRecorded(t *testing.T) {
	needLive(t, realtest.GXX)
	p := realtest.Start(t, realtest.Build(t, "cancel"))
	r := realtest.StartRecording(t, pidFlag(p)...)
	time.Sleep(700 * time.Millisecond)
	s := stop(t, r)
	if s.Functions.Refused["cancellation"] == 0 {
		t.Logf("no function was refused for cancellation: %v", s.Functions.Refused)
	}
	wantUntouched(t, p.Pid())
	if counts := p.Finish(); counts["cancelled"] == 0 {
		t.Errorf("%v", counts)
	}
}
