package arm64

import (
	"testing"

	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// A function that is called through its stub does what it does, its caller finds what it would have found, and the call's beginning and end are recorded.
func TestImportsAreCalledAsBefore(t *testing.T) {
	for name, s := range map[string]stubSetup{
		"inline": {}, "shared": {shared: true}, "old": {machine: oldMachine}, "SME": {machine: smeMachine}, "by the kernel": {noTLS: true}, "min": {min: true},
	} {
		t.Run(name, func(t *testing.T) {
			const calls = 50
			s.ids = 1
			s.code = codeOfImport
			d := startDriver(t, s)
			for range calls {
				d.do("same 0 1")
			}
			d.round()
			if sum := d.drainer.Totals(); sum.Entries != calls || sum.Events != 2*calls {
				t.Errorf("%+v of %d calls", sum, calls)
			}
			for _, k := range d.threads {
				if k.unknown != 0 || k.unmatched != 0 || k.abandoned != 0 || len(k.open) != 0 {
					t.Errorf("%+v", k)
				}
			}
		})
	}
}

// codeOfImport makes a function that calls another one, and the same with a stub in between, and one where the call returns to.
func codeOfImport(t testing.TB, c *coder) (funcs []uint64) {
	c.Align(16)
	target := c.PC() // it may change what a function may, and reads what is passed on the stack
	c.Load(8, x0, arm64.At(sp, 0))
	c.Movz(x16, 1, 0)
	c.Movz(x17, 2, 0)
	c.Add(x0, x0, x2)
	c.Ret(lr)
	e := &emitter{coder: c, fn: &stub.Probe{Function: &plan.Function{}, ID: 1, Import: &stub.Import{Target: target, Slot: 0x1000}}}
	c.alignStub()
	stubAt := c.PC()
	e.imported()
	c.flush()
	c.Resolve()
	for _, to := range []uint64{target, stubAt} {
		c.Align(16)
		funcs = append(funcs, c.PC())
		c.Mov(x9, lr)
		c.push(x1, x2)
		c.MovImm(x16, to)
		c.Blr(x16)
		at, back := c.PC(), c.NewLabel()
		if to == target {
			c.Nop()
		} else {
			c.B(back)
		}
		c.pop(x1, x2)
		c.Mov(lr, x9)
		c.Ret(lr)
		if to != target {
			c.Place(back)
			if err := e.site(moved{addr: at, word: 0xD503201F, returned: true}); err != nil {
				t.Fatal(err)
			}
			c.flush()
		}
		c.Resolve()
	}
	return funcs
}
