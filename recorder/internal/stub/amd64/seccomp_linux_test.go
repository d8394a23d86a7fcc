package amd64

import (
	"testing"
	"time"

	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// hookCalls are calls of functions with a hook, and whether they restrict system calls.
var hookCalls = []struct {
	hook         plan.Hook
	di, si       uint64
	dx, cx       uint64
	what         string
	isRestricted bool
}{
	{plan.HookPrctl, 22, 1, 0, 0, "prctl: strict", true},
	{plan.HookPrctl, 22, 2, 0x1000, 0, "prctl: filter", true},
	{plan.HookPrctl, 22 | 7<<32, 2 | 5<<32, 0x1000, 0, "prctl: filter, with more than an int in the registers", true},
	{plan.HookPrctl, 22, 2, 0, 0x1000, "prctl: is there seccomp?", false},
	{plan.HookPrctl, 22, 3, 0x1000, 0x1000, "prctl: no such mode", false},
	{plan.HookPrctl, 38, 1, 0x1000, 0, "prctl: no new privileges", false},
	{plan.HookPrctl, 317, 1, 1, 1, "prctl: another system call's number", false},
	{plan.HookSyscall, 317, 0, 0, 0, "syscall: seccomp, strict", true},
	{plan.HookSyscall, 317, 1, 0, 0x1000, "syscall: seccomp, filter", true},
	{plan.HookSyscall, 317, 1, 1, 0x1000, "syscall: seccomp, filter for all threads", true},
	{plan.HookSyscall, 317, 1, 1, 0, "syscall: seccomp, is there such a flag?", false},
	{plan.HookSyscall, 317, 2, 0, 0x1000, "syscall: seccomp, is there such an action?", false},
	{plan.HookSyscall, 157, 22, 1, 0, "syscall: prctl, strict", true},
	{plan.HookSyscall, 157, 22, 2, 0x1000, "syscall: prctl, filter", true},
	{plan.HookSyscall, 157, 22, 2, 0, "syscall: prctl, is there seccomp?", false},
	{plan.HookSyscall, 157, 15, 2, 0x1000, "syscall: prctl, name", false},
	{plan.HookSyscall, 22, 1, 1, 1, "syscall: pipe", false},
	{plan.HookSeccomp, 0, 0, 0, 0, "seccomp: strict", true},
	{plan.HookSeccomp, 1, 1, 0x1000, 0, "seccomp: filter", true},
	{plan.HookSeccomp, 1, 1, 0, 0x1000, "seccomp: is there such a flag?", false},
	{plan.HookSeccomp, 3, 0, 0x1000, 0, "seccomp: sizes of notifications", false},
}

// The registers hold patterns, but for the arguments; each is compared after the hook, and each flag.
func TestHooksCloseAllGatesAndKeepEveryRegister(t *testing.T) {
	drivers := map[plan.Hook]*driver{}
	for _, g := range []plan.Hook{plan.HookPrctl, plan.HookSyscall, plan.HookSeccomp} {
		drivers[g] = startDriver(t, stubSetup{hook: g, ids: 1, chunks: 64})
	}
	for _, c := range hookCalls {
		t.Run(c.what, func(t *testing.T) {
			d := drivers[c.hook]
			d.t = t
			d.mem.setHeader(ring.HdrSandboxed, 0)
			d.do("gate 1")
			d.do("pin %x %x %x %x", c.di, c.si, c.dx, c.cx)
			d.do("state 20")
			open, want := d.number("isopen"), 2
			if c.isRestricted {
				want = 0
			}
			if open != want {
				t.Errorf("%d of 2 gates are open, want %d", open, want)
			}
			if d.mem.Sandboxed() != c.isRestricted {
				t.Errorf("the recorder is told %v", d.mem.Sandboxed())
			}
			if n := d.mem.header(ring.HdrInSlow); n != 0 {
				t.Errorf("%d threads are counted in the slow path", n)
			}
		})
	}
}

func TestAHookWaitsForThreadsInTheSlowPath(t *testing.T) {
	d := startDriver(t, stubSetup{hook: plan.HookPrctl, ids: 1})
	d.do("calls 10")
	d.do("pin 16 1 0 0")
	d.mem.setHeader(ring.HdrInSlow, 1) // somebody else
	d.send("state 1")
	for !d.mem.Sandboxed() {
		time.Sleep(time.Microsecond)
	}
	d.mem.setHeader(ring.HdrInSlow, 0)
	if a := d.answer(); a != "ok" {
		t.Fatal(a)
	}
	if d.number("isopen") != 0 {
		t.Error("a gate is open")
	}
	d.mem.setHeader(ring.HdrInSlow, 1)
	d.send("state 1") // the second to come
	time.Sleep(time.Millisecond)
	d.mem.setHeader(ring.HdrInSlow, 0)
	if a := d.answer(); a != "ok" {
		t.Fatal(a)
	}
	if n := d.mem.header(ring.HdrSandboxed); n != 2 {
		t.Errorf("it was %d times that system calls were to be restricted", n)
	}
}

func TestAHookWaitsNeitherForItselfNorForEver(t *testing.T) {
	d := startDriver(t, stubSetup{hook: plan.HookPrctl, ids: 1})
	d.do("calls 10")
	d.do("pin 16 1 0 0")
	// A signal handler, that is, which has come between the slow path's system calls.
	d.mem.setHeader(ring.HdrInSlow, 1)
	d.mem.setHeader(d.slot()+ring.SlotInSlow, 1)
	d.do("state 10")
	if n := d.mem.header(ring.HdrInSlow); n != 1 {
		t.Errorf("%d threads are counted in the slow path", n)
	}
	// Whoever is counted there may not come back.
	d.mem.setHeader(d.slot()+ring.SlotInSlow, 0)
	d.mem.setHeader(ring.HdrSandboxed, 0)
	d.do("state 1")
}

func TestSlowPathsThatEndInEveryWayAreNoLongerCounted(t *testing.T) {
	for name, s := range templates {
		t.Run(name, func(t *testing.T) {
			s.chunks = ring.MinChunks
			d := startDriver(t, s)
			d.doDraining("crowd 3 50000")
			if !s.lossless {
				d.do("calls 100000")
			}
			d.mem.setHeader(ring.HdrHeartbeat, 1)
			d.mem.setHeader(ring.HdrCloseLimit, 1<<63-1)
			d.do("storm 50")
			d.do("calls 200000")
			d.do("storm 0")
			d.round()
			if n := d.mem.header(ring.HdrInSlow); n != 0 {
				t.Errorf("%d threads are counted in the slow path", n)
			}
		})
	}
}

// The C library's own, as they stand on this machine.
func TestHooksOfTheCLibraryHaveAnEntrySite(t *testing.T) {
	im := realImage(t, "libc")
	if has, err := plan.HasHooks(im.Object, false); err != nil || !has {
		t.Errorf("%v, %v", has, err)
	}
	found := map[plan.Hook]string{}
	for _, f := range planImage(t, im) {
		if f.Hook == plan.HookNone {
			continue
		}
		sites := f.HookSites()
		if len(sites) != 1 || sites[0].Role != plan.RoleEntry {
			t.Errorf("%s (%s): sites %v", f.Name, f.Reason, sites)
		}
		found[f.Hook] = f.Name
	}
	if found[plan.HookPrctl] == "" || found[plan.HookSyscall] == "" {
		t.Errorf("found %v", found)
	}
	if has, err := plan.HasHooks(realImage(t, "libcrypto").Object, false); err != nil || has {
		t.Errorf("libcrypto: %v, %v", has, err)
	}
}
