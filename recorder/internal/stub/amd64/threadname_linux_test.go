package amd64

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// comm is the name of the driver's first thread.
func (d *driver) comm() string {
	d.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", d.cmd.Process.Pid))
	if err != nil {
		d.t.Fatal(err)
	}
	return strings.TrimSuffix(string(b), "\n")
}

// pinName lets hooks find a call by which the first thread names itself.
func (d *driver) pinName(g plan.Hook, name string) {
	d.t.Helper()
	at := d.number("name %s", name)
	if g == plan.HookSyscall {
		d.do("pin %x %x %x %x", sysPrctl, prSetName, at, 0)
	} else {
		d.do("pin %x %x %x %x", prSetName, at, 0, 0)
	}
}

func TestANameIsKeptAndSoIsEveryRegister(t *testing.T) {
	for name, s := range map[string]stubSetup{
		"prctl":   {hook: plan.HookPrctl},
		"syscall": {hook: plan.HookSyscall},
		"follow":  {hook: plan.HookPrctl, follow: true},
		"no TLS":  {hook: plan.HookPrctl, noTLS: true},
		"shared":  {hook: plan.HookSyscall, shared: true},
	} {
		t.Run(name, func(t *testing.T) {
			s.names, s.ids = true, 2
			d := startDriver(t, s)
			d.do("gate 1")
			tid := d.cmd.Process.Pid
			last := ring.OwnName{}
			for _, name := range []string{"first", "fifteen_letters", "with_more_than_fifteen", "z"} {
				d.pinName(s.hook, name)
				d.do("state 20")
				want := name[:min(len(name), 15)]
				own := d.mem.OwnName(tid)
				if !own.IsThere() || own.Name != want || own == last || d.comm() != want {
					t.Errorf("%+v is known, it is called %q, want %q", own, d.comm(), want)
				}
				last = own
			}
			if n := d.mem.header(ring.HdrInSlow); n != 0 {
				t.Errorf("%d threads are counted in the slow path", n)
			}
		})
	}
}

// Signals come while the thread names itself, and their handlers make calls; which may be names, too. None is left blocked.
func TestANameIsKeptWhileSignalsCome(t *testing.T) {
	d := startDriver(t, stubSetup{hook: plan.HookPrctl, names: true, ids: 2, over: true})
	d.do("gate 1")
	d.pinName(plan.HookPrctl, "stormy")
	d.do("storm 40")
	d.do("state 20000")
	d.do("storm 0")
	d.do("state 1")
	if own := d.mem.OwnName(d.cmd.Process.Pid); own.Name != "stormy" || d.comm() != "stormy" {
		t.Errorf("%+v is known, it is called %q", own, d.comm())
	}
	if n := d.mem.header(ring.HdrInSlow); n != 0 {
		t.Errorf("%d threads are counted in the slow path", n)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(status), "SigBlk:\t0000000000000000") {
		t.Errorf("signals are blocked:\n%s", status)
	}
}

// None of these is made known, and nothing but the program's own call gives the thread a name.
func TestNamesThatAreNoneAreNotKept(t *testing.T) {
	for name, prepare := range map[string]func(d *driver){
		"the gate is closed":        func(d *driver) { d.do("gate 0") },
		"the thread is not on":      func(d *driver) { d.mem.SetOff(d.cmd.Process.Pid, true) },
		"the address is not mapped": func(d *driver) { d.do("pin %x %x 0 0", prSetName, 8) },
		"it is another option":      func(d *driver) { d.do("pin %x %x 0 0", prGetName+1, d.number("name wrong")) },
	} {
		t.Run(name, func(t *testing.T) {
			d := startDriver(t, stubSetup{hook: plan.HookPrctl, names: true, ids: 1, threads: true})
			d.do("gate 1")
			d.do("calls 10")
			d.pinName(plan.HookPrctl, "wrong")
			prepare(d)
			was := d.comm()
			d.do("state 5")
			if own := d.mem.OwnName(d.cmd.Process.Pid); own.IsThere() || d.comm() != was {
				t.Errorf("%+v is known, it is called %q", own, d.comm())
			}
			if n := d.mem.header(ring.HdrInSlow); n != 0 {
				t.Errorf("%d threads are counted in the slow path", n)
			}
		})
	}
}

// A child of vfork, or another thread with the same thread pointer, isn't the thread that has the slot.
func TestANameOfAnotherThreadIsNotKept(t *testing.T) {
	d := startDriver(t, stubSetup{hook: plan.HookPrctl, names: true, ids: 1})
	d.do("calls 10")
	d.pinName(plan.HookPrctl, "wrong")
	if status := d.number("vfork"); status != 0 {
		t.Fatalf("status %#x", status)
	}
	if own := d.mem.OwnName(d.cmd.Process.Pid); own.IsThere() {
		t.Errorf("%+v is known", own)
	}
	if n := d.mem.header(ring.HdrInSlow); n != 0 {
		t.Errorf("%d threads are counted in the slow path", n)
	}
	d.do("state 1")
	if own := d.mem.OwnName(d.cmd.Process.Pid); own.Name != "wrong" {
		t.Errorf("%+v is known", own)
	}
}
