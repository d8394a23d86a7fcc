package follow

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/recovery"
	"github.com/callreel/callreel/recorder/internal/target"
)

// sharedFile makes a memfd of two pages more than an arena takes.
func sharedFile(t testing.TB, name string) (f *os.File, dev, inode uint64) {
	t.Helper()
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	f = os.NewFile(uintptr(fd), name)
	t.Cleanup(func() { f.Close() })
	if err := f.Truncate(16 * target.PageSize); err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		t.Fatal(err)
	}
	return f, uint64(unix.Major(st.Dev))<<32 | uint64(unix.Minor(st.Dev)), st.Ino
}

// A process is of the family if it has mapped all that a forked child has, where and how a child has it, and not for having the
// descriptors, or for mapping them as servers do.
func TestDescriptorsDoNotMakeKin(t *testing.T) {
	realtest.Need(t, realtest.GCC, realtest.LivePtrace, realtest.Superuser)
	const (
		ringAt, undoAt, codeAt, lateAt = 0x600000000000, 0x610000000000, 0x620000000000, 0x620000100000
		other                          = 0x630000000000
	)
	rings, ringDev, ringIno := sharedFile(t, "callreel")
	undo, undoDev, undoIno := sharedFile(t, "callreel-undo")
	code, codeDev, codeIno := sharedFile(t, "callreel-code")
	forged, _, _ := sharedFile(t, "callreel-code")
	since, err := process.TicksSinceBoot()
	if err != nil {
		t.Fatal(err)
	}
	const rx, rw, ro = process.PermRead | process.PermExec | process.PermShared, process.PermRead | process.PermWrite | process.PermShared, process.PermRead | process.PermShared
	family := func() *kin {
		return &kin{since: since, uids: [4]int{realtest.Stranger, realtest.Stranger, realtest.Stranger, realtest.Stranger}, refused: map[int]uint64{},
			code: []mappedAs{{recovery.Span{Base: codeAt, Size: 2 * target.PageSize}, rx, codeDev, codeIno, 0}, {recovery.Span{Base: lateAt, Size: target.PageSize}, rx, codeDev, codeIno, 2 * target.PageSize}},
			data: []mappedAs{{recovery.Span{Base: undoAt, Size: target.PageSize}, ro, undoDev, undoIno, 0}, {recovery.Span{Base: ringAt, Size: 4 * target.PageSize}, rw, ringDev, ringIno, 0}}}
	}
	const ringFD, undoFD, codeFD, forgedFD = 3, 4, 5, 6
	m := func(at, size int, perm string, fd, off int) string {
		return fmt.Sprintf("%x:%x:%s:%d:%x", at, size*target.PageSize, perm, fd, off*target.PageSize)
	}
	gate := func(at int) string { return m(at, 1, "rw-p", -1, 0) }
	ring, records := m(ringAt, 4, "rw-s", ringFD, 0), m(undoAt, 1, "r--s", undoFD, 0)
	first, second := m(codeAt, 2, "r-xs", codeFD, 0), m(lateAt, 1, "r-xs", codeFD, 2)
	firstGate, secondGate := gate(codeAt+2*target.PageSize), gate(lateAt+target.PageSize)
	child := []string{ring, records, first, firstGate, second, secondGate}
	but := func(i int, by ...string) []string {
		return append(append(append([]string{}, child[:i]...), by...), child[i+1:]...)
	}
	for _, c := range []struct {
		name string
		maps []string
		root bool // whose it is
		want bool
		with func(k *kin)
	}{
		{name: "a child", maps: child, want: true},
		{name: "a child of root's that has changed its user", maps: child, want: true, with: func(k *kin) { k.uids = [4]int{} }},
		{name: "another user's", maps: child, root: true},
		{name: "one that was there before", maps: child, with: func(k *kin) { k.since += 1 << 30 }},
		{name: "a server that maps the rings", maps: []string{m(other, 4, "rw-s", ringFD, 0)}},
		{name: "a server that maps them at their address", maps: []string{ring}},
		{name: "a server that maps all that it is sent", maps: []string{ring, records, m(codeAt, 2, "r--s", codeFD, 0), firstGate, m(lateAt, 1, "r--s", codeFD, 2), secondGate}},
		{name: "code elsewhere", maps: but(2, m(other, 2, "r-xs", codeFD, 0))},
		{name: "a copy of the code", maps: but(2, m(codeAt, 2, "r-xp", codeFD, 0))},
		{name: "code of another file", maps: but(2, m(codeAt, 2, "r-xs", forgedFD, 0))},
		{name: "code of no file", maps: but(2, m(codeAt, 2, "r-xp", -1, 0))},
		{name: "other code of the file", maps: but(4, m(lateAt, 1, "r-xs", codeFD, 1))},
		{name: "half the code", maps: but(2, m(codeAt, 1, "r-xs", codeFD, 0))},
		{name: "one arena", maps: child[:4]},
		{name: "no gate", maps: but(5)},
		{name: "a shared gate", maps: but(5, m(lateAt+target.PageSize, 1, "rw-s", ringFD, 8))},
		{name: "no rings", maps: but(0)},
		{name: "part of the rings", maps: but(0, m(ringAt, 2, "rw-s", ringFD, 0))},
		{name: "no recovery memory", maps: but(1)},
		{name: "nothing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			program := realtest.Build(t, "maps")
			cmd := exec.Command("/proc/self/fd/7", c.maps...)
			file, err := os.Open(program)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			cmd.ExtraFiles = []*os.File{rings, undo, code, forged, file}
			if !c.root {
				realtest.BeStranger(cmd)
			}
			p := realtest.StartCommand(t, cmd)
			p.WaitLine("ready")
			k := family()
			if c.with != nil {
				c.with(k)
			}
			nobody := func(int) holder { return nil }
			who, v := k.judge(p.Pid(), nobody)
			if got := v == related; got != c.want || who != nil != got {
				t.Errorf("of the family: %v, want %v", got, c.want)
			}
			who.Close()
			if _, again := k.judge(p.Pid(), nobody); (again == related) != c.want {
				t.Errorf("the second time it is %v", again)
			}
			p.Finish()
			if _, v := k.judge(p.Pid(), nobody); v == related {
				t.Error("of the family, though it has ended")
			}
		})
	}
}

// shell is a process with a child, and a grandchild.
func shell(t testing.TB) (p *realtest.Proc, child, grandchild int) {
	t.Helper()
	p = realtest.StartCommand(t, exec.Command("sh", "-c", "sh -c 'sleep 1000 & echo grandchild $!; echo child $$; wait' & read line; exit"))
	number := func(prefix string) int {
		n, err := strconv.Atoi(strings.TrimPrefix(p.WaitLine(prefix), prefix))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Kill(n, unix.SIGKILL) }) // it may have ended
		return n
	}
	return p, number("child "), number("grandchild ")
}

// The kernel says whose children processes are, as long as their parents are there.
func TestDescendantsAreKin(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace)
	for range 20 {
		p, child, grandchild := shell(t)
		root, err := process.Open(p.Pid())
		if err != nil {
			t.Fatal(err)
		}
		anchor := func(pid int) holder {
			if pid == root.Pid() {
				return root
			}
			return nil
		}
		judge := func(pid int) verdict {
			k := &kin{since: 1 << 62, refused: map[int]uint64{}}
			who, v := k.judge(pid, anchor)
			who.Close()
			return v
		}
		for _, pid := range []int{child, grandchild} {
			if v := judge(pid); v != related {
				t.Fatalf("process %d, below %d, is %v", pid, root.Pid(), v)
			}
		}
		for _, pid := range []int{1, 2, os.Getpid(), os.Getppid()} {
			if v := judge(pid); v == related {
				t.Errorf("process %d is below %d", pid, root.Pid())
			}
		}
		if v := judge(1 << 22); v != ended {
			t.Errorf("a process that there can't be is %v", v)
		}
		// Its parent ends, and it is nobody's child any more.
		if err := unix.Kill(child, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		for start := time.Now(); judge(grandchild) == related; time.Sleep(time.Millisecond) {
			if time.Since(start) > time.Minute {
				t.Fatal("an orphan is kin by its parents")
			}
		}
		if v := judge(grandchild); v != stranger {
			t.Errorf("an orphan is %v", v)
		}
		if err := root.Close(); err != nil {
			t.Error(err)
		}
		_ = unix.Kill(grandchild, unix.SIGKILL)
		p.Go()
		p.Wait()
	}
}

// What somebody else can ask for takes a small part of the time.
func TestPaceKeepsWorkToAShare(t *testing.T) {
	var p pace
	done := 0
	for range 1000 {
		if p.may() {
			p.took(10 * time.Millisecond)
			done++
		}
	}
	if done < 2 || done > 30 { // a tenth of a second at once, and what time has gone by since
		t.Errorf("done %d times", done)
	}
}

// A process that is about to end has no memory any more, for some time before the kernel says that it has ended: it is no stranger for that. What
// shows no memory while it lives is what has ended and was not waited for.
func TestWhatHasNoMemoryAnyMoreIsNoStranger(t *testing.T) {
	k := &kin{code: make([]mappedAs, 1), refused: map[int]uint64{}}
	nobody := func(int) holder { return nil }
	living := realtest.StartCommand(t, exec.Command("sh", "-c", "echo ready; read line; exit"))
	living.WaitLine("ready")
	who, err := process.Hold(living.Pid())
	if err != nil {
		t.Fatal(err)
	}
	if shares, has := k.shares(who); shares || !has {
		t.Errorf("one that lives shares it: %v; it has memory: %v", shares, has)
	}
	who.Close()
	if _, v := k.judge(living.Pid(), nobody); v != stranger {
		t.Errorf("one that lives is %v", v)
	}
	over := exec.Command("sh", "-c", "read line; exit")
	in, err := over.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := over.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = over.Wait() }()
	if who, err = process.Hold(over.Process.Pid); err != nil {
		t.Fatal(err)
	}
	defer who.Close()
	in.Close()
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		if _, has := k.shares(who); !has {
			break
		}
		if time.Since(start) > time.Minute {
			t.Fatal("what has ended has memory")
		}
	}
	if _, v := k.judge(over.Process.Pid, nobody); v != ended {
		t.Errorf("what has ended is %v", v)
	}
	living.Go()
	living.Wait()
}
