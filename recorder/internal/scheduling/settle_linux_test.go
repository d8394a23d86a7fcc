package scheduling

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/process/sched"
	"github.com/callreel/callreel/recorder/internal/waitcalls"
	"github.com/callreel/callreel/reel"
)

const ms = 1_000_000 // ticks, see newSession

// leaves is a thread that becomes blocked, by a source that says no more.
func leaves(at uint64) sched.Event {
	return sched.Event{Time: at, Kind: sched.Blocked, Syscall: sched.NoSyscall}
}

// tookLong is a call as its exit carries it.
func tookLong(t *testing.T, th *Thread, name string, from, to uint64, args ...uint64) {
	t.Helper()
	call, ok := waitcalls.Of([]string{name})
	if !ok {
		t.Fatalf("%s isn't known", name)
	}
	k := waitcalls.Kept{Call: call, Start: from, End: to}
	copy(k.Args[:], args)
	if err := th.Kept([]waitcalls.Kept{k}); err != nil {
		t.Fatal(err)
	}
}

const lock, condition, mutex = 0x1000, 0x2000, 0x3000

func TestWhatAThreadWaitedForIsTheArgumentOfItsCall(t *testing.T) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(p[0])
	defer unix.Close(p[1])
	in9, out := uint64(p[0]), uint64(p[1])
	type call struct {
		thread   int // 1 is the one that waits
		name     string
		from, to uint64
		args     []uint64
	}
	// It waits from 10 to 20 ms.
	for _, c := range []struct {
		name  string
		calls []call
		lock  uint64
		ender uint32
		at    uint64
		by    reel.WaitEnd
		fd    bool
	}{
		{"a mutex, of several unlocks by the last before it goes on", []call{{1, "pthread_mutex_lock", 9, 21, []uint64{lock}}, {2, "pthread_mutex_unlock", 5, 6, []uint64{lock}},
			{2, "pthread_mutex_unlock", 12, 13, []uint64{lock}}, {3, "__pthread_mutex_unlock_usercnt", 19, 22, []uint64{lock}}, {2, "pthread_mutex_unlock", 23, 24, []uint64{lock}}},
			lock, 3, 19, reel.EndUnlock, false},
		{"another address", []call{{1, "pthread_mutex_lock", 9, 21, []uint64{lock}}, {2, "pthread_mutex_unlock", 19, 22, []uint64{lock + 8}}}, lock, 0, 0, 0, false},
		{"its own", []call{{1, "sem_wait", 9, 21, []uint64{lock}}, {1, "sem_post", 19, 20, []uint64{lock}}}, lock, 0, 0, 0, false},
		{"a condition", []call{{1, "pthread_cond_wait", 9, 21, []uint64{condition, mutex}}, {2, "pthread_cond_signal", 19, 22, []uint64{condition}}, {2, "pthread_mutex_unlock", 19, 22, []uint64{mutex}}},
			condition, 2, 19, reel.EndUnlock, false},
		{"a condition that was signalled before", []call{{1, "pthread_cond_wait", 9, 21, []uint64{condition, mutex}}, {2, "pthread_mutex_unlock", 18, 22, []uint64{mutex}}},
			mutex, 2, 18, reel.EndUnlock, false},
		{"a mutex that a wait for a condition unlocks", []call{{1, "pthread_mutex_lock", 9, 21, []uint64{mutex}}, {2, "pthread_cond_wait", 19, 90, []uint64{condition, mutex}}},
			mutex, 2, 19, reel.EndUnlock, false},
		{"the innermost call", []call{{1, "pthread_mutex_cond_lock", 9, 21, []uint64{lock}}, {1, "pthread_cond_wait", 1, 22, []uint64{condition, mutex}}, {2, "pthread_mutex_unlock", 18, 22, []uint64{lock}}},
			lock, 2, 18, reel.EndUnlock, false},
		{"a pipe", []call{{1, "__libc_read", 9, 21, []uint64{in9}}, {2, "write", 19, 22, []uint64{out}}, {3, "read", 19, 22, []uint64{in9}}}, 0, 2, 19, reel.EndDescriptor, true},
		{"a call that was over before", []call{{1, "pthread_mutex_lock", 1, 9, []uint64{lock}}, {2, "pthread_mutex_unlock", 19, 22, []uint64{lock}}}, 0, 0, 0, 0, false},
	} {
		s := newSession(t)
		var threads []*Thread
		for k := range 3 {
			threads = append(threads, s.call(nobody+k, 1))
		}
		s.words(nobody, in(1), leaves(10*ms), in(20*ms))
		for _, x := range c.calls {
			tookLong(t, threads[x.thread-1], x.name, x.from*ms, x.to*ms, x.args...)
		}
		f := s.read()
		waits := f.Waits(1)
		if c.lock == 0 && !c.fd {
			if len(waits) != 0 {
				t.Errorf("%s: %+v", c.name, waits)
			}
			continue
		}
		if len(waits) != 1 {
			t.Errorf("%s: %+v", c.name, waits)
			continue
		}
		w := waits[0]
		if w.Syscall != -1 || w.Lock != c.lock || w.Ender != c.ender || w.EndedAt != c.at*ms || w.EndedBy != c.by {
			t.Errorf("%s: %+v", c.name, w)
		}
		if c.fd && (w.Args[0] != in9 || len(w.Object) < 6 || w.Object[:6] != "pipe:[") {
			t.Errorf("%s: %+v", c.name, w)
		}
	}
}

// What the target writes may be anything, and as much as it likes.
func TestWhatIsRememberedOfCallsIsBounded(t *testing.T) {
	s := newSession(t)
	th, other := s.call(nobody, 1), s.call(nobody+1, 1)
	for i := range uint64(3 * maxEnders) {
		tookLong(t, th, "pthread_mutex_unlock", i, i+1, i)
		tookLong(t, th, "pthread_mutex_unlock", i, i+1, lock)
		tookLong(t, th, "write", i, i+1, 1<<40)
		tookLong(t, other, "pthread_mutex_lock", i, i+200_000, lock)
	}
	of := s.r.join.enders[os.Getpid()]
	n := 0
	for _, list := range of.byAddress {
		n += len(list)
	}
	if n > maxEnders || n != of.count || len(of.descriptors) > maxEnders || len(other.k.part.calls) > maxCalls {
		t.Error(n, of.count, len(of.descriptors), len(other.k.part.calls))
	}
	for i := range uint64(3 * maxEnded) {
		s.words(nobody, leaves(ms*(2*i+10)), in(ms*(2*i+11)))
	}
	if n := len(th.k.part.ended); n > maxEnded {
		t.Errorf("%d waits are to be settled", n)
	}
	s.read()
}

func socketOf(t *testing.T, local, remote string) (s process.Socket) {
	t.Helper()
	if local == "unix" {
		s.Unix = true
		return s
	}
	s.Local = netip.MustParseAddrPort(local)
	if remote != "" {
		s.Remote = netip.MustParseAddrPort(remote)
	}
	return s
}

func TestEndsOfConnectionsAreJoined(t *testing.T) {
	o := newObjects()
	name := func(inode uint64, local, remote string, other uint64) string {
		s := socketOf(t, local, remote)
		o.sockets[inode] = socketName{ends: s, other: other}
		return fmt.Sprintf("socket:[%d]", inode)
	}
	client, server := name(1, "127.0.0.1:4000", "127.0.0.1:80", 0), name(2, "127.0.0.1:80", "127.0.0.1:4000", 0)
	listens, everywhere := name(3, "127.0.0.1:80", "", 0), name(4, "0.0.0.0:80", "", 0)
	unix1, unix2, alone := name(5, "unix", "", 6), name(6, "unix", "", 5), name(7, "unix", "", 0)
	for _, c := range []struct {
		in, out string
		want    bool
	}{
		{client, server, true}, {server, client, true}, {client, client, false}, {listens, client, true}, {everywhere, client, true}, {client, listens, false},
		{unix1, unix2, true}, {unix2, unix1, true}, {unix1, alone, false}, {alone, alone, false}, {"pipe:[7]", "pipe:[7]", true}, {"pipe:[7]", "pipe:[8]", false},
		{"/a", "/a", false}, {"socket:[99]", client, false}, {"", "", false},
	} {
		if got := o.joined(c.in, c.out); got != c.want {
			t.Errorf("%s and %s: %v", c.in, c.out, got)
		}
	}
}

// What an epoll instance watches is read again when its time is over, and only then.
func TestWhatIsWatchedIsReadAgain(t *testing.T) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(epoll)
	var ends [4]int
	for i := range 2 {
		if err := unix.Pipe2(ends[2*i:2*i+2], unix.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		defer unix.Close(ends[2*i])
		defer unix.Close(ends[2*i+1])
	}
	watch := func(fd int) {
		if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
			t.Fatal(err)
		}
	}
	w := &Watch{objects: newObjects()}
	j := w.newJoining()
	pid := os.Getpid()
	want := func(when string, n int) {
		t.Helper()
		list := j.watchedBy(pid, uint64(epoll))
		if len(list) != n {
			t.Fatalf("%s: %v, want %d", when, list, n)
		}
		for _, x := range list {
			if x.object != w.objects.of(pid, x.fd) || !strings.HasPrefix(x.object, "pipe:[") {
				t.Errorf("%s: %+v", when, x)
			}
		}
	}
	watch(ends[0])
	want("at first", 1)
	until := w.objects.watched[descriptor{pid, int32(epoll)}].until
	watch(ends[2])
	w.objects.round(until.Add(-1))
	want("before its time is over", 1)
	w.objects.round(until)
	want("afterwards", 2)

	j.links = 1 // for the instance itself: what its descriptors are isn't known then
	w.objects.round(time.Now().Add(time.Hour))
	if list := j.watchedBy(pid, uint64(epoll)); len(list) != 2 || list[0].object != "" {
		t.Errorf("without time: %v", list)
	}
	j.links = linksAtOnce
	w.objects.round(time.Now())
	want("in the next round", 2)
}
