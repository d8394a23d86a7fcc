package arm64

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/ring"
)

var hookMachines = map[string]machine{"LSE": lseMachine, "old": oldMachine, "SVE": smeMachine, "streaming": streaming}

// A function that restricts system calls closes the gates and waits for nobody who isn't there; all registers are kept, whatever is asked for.
func TestTheHookOfSeccompClosesTheGates(t *testing.T) {
	const filter = 2
	for name, m := range hookMachines {
		for hook, args := range map[plan.Hook][2]int{plan.HookPrctl: {prSetSeccomp, filter}, plan.HookSeccomp: {seccompFilter, 7}, plan.HookSyscall: {sysSeccomp, seccompFilter}} {
			for _, follow := range []bool{false, true} {
				t.Run(name, func(t *testing.T) {
					d := startDriver(t, stubSetup{machine: m, hook: hook, follow: follow})
					d.do("state 20")
					d.do("keep 0 9 9")
					before := d.made()
					d.round()
					if n := d.drainer.Totals().Entries; n != before || d.header(ring.HdrSandboxed) != 0 {
						t.Errorf("%d of %d calls, %d times sandboxed", n, before, d.header(ring.HdrSandboxed))
					}
					d.do("keep 0 %d %d", args[0], args[1])
					if n := d.header(ring.HdrSandboxed); n != 1 {
						t.Errorf("sandboxed %d times", n)
					}
					d.do("calls 100")
					d.round()
					if n := d.drainer.Totals().Entries; n != before+1 {
						t.Errorf("%d calls, want %d", n, before+1)
					}
					if n := d.header(ring.HdrInSlow); n != 0 {
						t.Errorf("%d are counted in", n)
					}
					d.do("keep 0 %d %d", args[0], args[1]) // not the first
				})
			}
		}
	}
}

// A thread that names itself is met under that name.
func TestThreadsThatNameThemselvesLeaveTheirNames(t *testing.T) {
	for name, m := range hookMachines {
		t.Run(name, func(t *testing.T) {
			d := startDriver(t, stubSetup{machine: m, hook: plan.HookPrctl})
			d.do("calls 10")
			for range 3 {
				d.do("name 0 %d", prSetName)
			}
			if d.header(ring.HdrNamed) != 1 {
				t.Error("nothing is noted")
			}
			if own := d.mem.OwnName(d.cmd.Process.Pid); own.Name != "stranger" || !own.IsThere() {
				t.Errorf("the name is %q", own.Name)
			}
		})
	}
}

// A loader tells of libraries, and waits for the recorder, but not for ever.
func TestALoaderTellsAndWaits(t *testing.T) {
	for name, m := range hookMachines {
		t.Run(name, func(t *testing.T) {
			d := startDriver(t, stubSetup{machine: m, hook: plan.HookLoader})
			d.do("keep 0 1 1")
			if n := d.header(ring.HdrLoads) & 0xFFFFFFFF; n != 1 {
				t.Errorf("told %d times", n)
			}
			d.setHeader(ring.HdrLoadWait, 1)
			d.setHeader(ring.HdrLoadMost, 1<<40)
			d.setHeader(ring.HdrLoadAsk, 1<<40)
			d.send("keep 0 1 1")
			for d.header(ring.HdrLoads)&0xFFFFFFFF != 2 {
				time.Sleep(time.Millisecond)
			}
			binary.LittleEndian.PutUint32(d.raw[ring.HdrLoadsDone:], 2)
			if a := d.answer(); a != "ok" || d.header(ring.HdrLoadWait) != 1 {
				t.Errorf("%s, %d", a, d.header(ring.HdrLoadWait))
			}
			d.setHeader(ring.HdrLoadMost, 0)
			d.do("keep 0 1 1")
			if d.header(ring.HdrLoadWait) != 0 || d.header(ring.HdrInSlow) != 0 {
				t.Error("it would wait again")
			}
		})
	}
}

// A forked child that is followed opens its gate with its first event.
func TestAForkedChildIsFollowed(t *testing.T) {
	for name, s := range map[string]stubSetup{"inline": {}, "shared": {shared: true}, "old": {machine: oldMachine}, "SVE": {machine: smeMachine}, "lazy": {lazy: true, unmade: true}} {
		t.Run(name, func(t *testing.T) {
			s.follow, s.hook = true, plan.HookExec
			d := startDriver(t, s)
			d.do("calls 50")
			d.do("fork 1000")
			d.round()
			if n := d.drainer.Totals().Entries; n != 50 {
				t.Errorf("%d calls before children are followed", n)
			}
			d.setHeader(ring.HdrFollow, 1)
			d.setHeader(ring.HdrWaitLimit, 0) // nobody answers who asks for exec
			d.do("fork 1000")
			d.do("state 10")
			d.round()
			if n := d.drainer.Totals().Entries; n != 1130 || d.header(ring.HdrExecs) == 0 {
				t.Errorf("%d calls, %d times asked", n, d.header(ring.HdrExecs))
			}
		})
	}
}

// PCs in arenas are found, and others are left to the function.
func TestArenasAreFoundForUnwinders(t *testing.T) {
	const answers, unused = 0x900, 77 // behind the fields of the ring's header
	pcs := map[uint64]uint64{0x0FFF_FFFF: 0, 0x1000_0000: 0x1000_0000, 0x1000_0FFF: 0x1000_0000, 0x1000_1000: 0, 0x2000_1FFF: 0x2000_0000, 0xFFFF_2000_1FFF: 0}
	var order []uint64
	s := stubSetup{ids: len(pcs)}
	s.code = func(t testing.TB, c *coder) (funcs []uint64) {
		c.routines.unwindList = c.emitUnwindList()
		list := c.Since(int(c.routines.unwindList - c.Base()))
		for i, v := range []uint64{0x1000_0000, 0x1000, 0x2000_0000, 0x2000} {
			binary.LittleEndian.PutUint64(list[8*i:], v)
		}
		for pc := range pcs {
			c.Align(16)
			funcs = append(funcs, c.PC())
			c.MovImm(x0, pc)
			c.MovImm(x1, testRing+answers+64*uint64(len(order)))
			order = append(order, pc)
			c.Movz(x2, 123, 0)
			c.findObject(func() { c.event(place{id: uint32(len(order)), exit: true}) })
			c.Movz(x3, unused, 0)
			c.StorePair(x2, x3, arm64.At(x1, 48))
			c.Ret(lr)
			c.flush()
			c.Resolve()
		}
		return funcs
	}
	d := startDriver(t, s)
	for i, pc := range order[:len(pcs)] {
		d.do("once %d", i)
		at := func(off int) uint64 { return binary.LittleEndian.Uint64(d.raw[answers+64*i+off:]) }
		want, size := pcs[pc], uint64(0x1000)
		if want == 0x2000_0000 {
			size = 0x2000
		}
		switch {
		case want == 0 && (at(48) != 123 || at(56) != unused || at(foundEnd) != 0):
			t.Errorf("%#x is found", pc)
		case want != 0 && (at(foundStart) != want || at(foundEnd) != want+size || at(foundFrames) != want || at(foundMap) != 0 || at(48) != 0):
			t.Errorf("%#x is found from %#x to %#x", pc, at(foundStart), at(foundEnd))
		}
	}
}
