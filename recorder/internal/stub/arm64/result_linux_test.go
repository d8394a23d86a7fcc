package arm64

import (
	"testing"

	"github.com/callreel/callreel/recorder/internal/stub"
)

// ofResults are captures of a result in memory.
func ofResults() *stub.Captures {
	inMemory := func(size uint8, off int32) stub.Field {
		return stub.Field{Value: stub.Operand{Origin: stub.OriginResult, Memory: true, Size: size, Off: off}}
	}
	return &stub.Captures{
		Entry: &stub.Capture{Fields: []stub.Field{entrySP}},
		Return: &stub.Capture{Fields: []stub.Field{entrySP, inMemory(8, 0), inMemory(2, 4),
			{Kind: stub.FieldString, Value: stub.Operand{Origin: stub.OriginResult, Size: 8}, Max: 40}}},
	}
}

// The functions of codeOfResults: entries and returns of three functions, the last two of which have the same place for where their results go; and
// the second's with the stack pointer elsewhere.
const (
	entryOf1 = iota
	returnOf1
	entryOf9
	returnOf9
	entryOf1Below
	returnOf1Below
	entryOf9Astray
)

// codeOfResults has what is x1 in x8 at entries, and nothing at returns.
func codeOfResults(_ testing.TB, c *coder) (funcs []uint64) {
	for _, k := range []struct {
		id     uint32
		exit   bool
		below  int32
		astray bool
	}{{id: 1}, {id: 1, exit: true}, {id: 9}, {id: 9, exit: true}, {id: 1, below: 64}, {id: 1, exit: true, below: 64}, {id: 9, astray: true}} {
		c.Align(16)
		funcs = append(funcs, c.PC())
		c.push(x8, lr)
		c.low = 0
		c.Mov(x8, x1)
		if k.exit || k.astray {
			c.Movz(x8, 16, 0)
		}
		if k.below != 0 {
			c.SubImm(sp, sp, int64(k.below))
		}
		captures := c.cfg.Captures[k.id]
		c.capturedEvent(place{id: k.id, exit: k.exit}, captures, captures.Of(k.exit))
		if k.below != 0 {
			c.AddImm(sp, sp, int64(k.below))
		}
		c.low = pairSize
		c.pop(x8, lr)
		c.Ret(lr)
		c.flush()
		c.Resolve()
	}
	return funcs
}

// A result in memory is found by where the call's own entry has noted that it goes, and not at all if another call has overwritten that.
func TestResultsInMemoryAreFoundByTheEntry(t *testing.T) {
	const stranger = 0x7265676e61727473 // the text
	for name, s := range map[string]stubSetup{"LSE": {}, "old": {machine: oldMachine}, "SVE": {machine: smeMachine}, "by the kernel": {noTLS: true}, "lazy": {lazy: true}} {
		t.Run(name, func(t *testing.T) {
			s.captures, s.ids, s.code, s.chunks = ofResults(), 9, codeOfResults, 64
			d := startDriver(t, s)
			look := func(step string, found bool, functions ...int) {
				t.Helper()
				for _, f := range functions {
					d.do("name %d 4660", f)
				}
				d.round()
				v := d.threads[0].values[1]
				want, state := [2]uint64{}, stub.StateUnreadable
				if found {
					want, state = [2]uint64{stranger, stranger >> 32 & 0xFFFF}, 0
				}
				if len(v) != 4 || v[1].Bits != want[0] || v[2].Bits != want[1] || v[1].State != state || v[2].State != state || v[3].State != state ||
					found != (string(v[3].Bytes) == "stranger") {
					t.Errorf("%s: %+v", step, v)
				}
			}
			look("no entry", false, returnOf1)
			look("a call", true, entryOf1, returnOf1)
			look("a call in it", true, entryOf1, entryOf1Below, returnOf1Below)
			look("the outer one", false, returnOf1)
			look("another function's in it", true, entryOf1, entryOf9, returnOf9)
			look("the outer one", false, returnOf1)
			look("a bad pointer", false, entryOf9Astray, returnOf9)
		})
	}
}
