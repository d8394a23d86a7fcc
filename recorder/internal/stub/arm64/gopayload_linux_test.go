package arm64

import (
	"math"
	"testing"

	"github.com/callreel/callreel/isa"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// goFirst are the values that goTally looks at, see goTally.look.
func goFirst(more ...stub.Field) *stub.Capture {
	return &stub.Capture{Fields: append([]stub.Field{entrySP, register(26, 8),
		{Value: stub.Operand{Origin: stub.OriginStack, Memory: true, Safe: true, Off: 8, Size: 8}}}, more...)}
}

// goRegisters are captures that stubs of Go functions store themselves.
func goRegisters() *stub.Captures {
	return &stub.Captures{
		Entry: goFirst(register(x0, 8), register(x2, 1), register(x15, 8), register(lr, 8), stub.Field{Value: stub.Operand{Origin: stub.OriginVector, Vector: 0, Size: 8}},
			stub.Field{Value: stub.Operand{Origin: stub.OriginVector, Vector: 15, Size: 4}}),
		Return: goFirst(register(x0, 8)),
	}
}

// goMemory are captures that are gathered on the stack of callreel's own.
func goMemory() *stub.Captures {
	return &stub.Captures{
		Entry: goFirst(register(x0, 8), register(19, 8), register(x16, 4), register(27, 8),
			stub.Field{Kind: stub.FieldBytes, Value: stub.Operand{Reg: x1, Size: 8}, Len: stub.Operand{Reg: x2, Size: 1}, Max: 40},
			stub.Field{Kind: stub.FieldString, Value: stub.Operand{Reg: x1, Size: 8}, Max: 40},
			memory(x1, 4, 0), memory(x0, 8, 0), register(x15, 8)),
		Return: goFirst(memory(x1, 8, 0), register(isa.Reg(25), 8)),
	}
}

// goScratchOnly has nothing to be read, and a register in which nothing is.
func goScratchOnly() *stub.Captures {
	return &stub.Captures{Entry: goFirst(register(x17, 8), register(24, 8)), Return: goFirst(register(21, 4))}
}

var goPayloads = map[string]stubSetup{
	"registers":           {captures: goRegisters()},
	"registers, old":      {captures: goRegisters(), machine: oldMachine},
	"registers, small":    {captures: goRegisters(), divide: true},
	"registers, lossless": {captures: goRegisters(), lossless: true},
	"scratch":             {captures: goScratchOnly()},
	"memory":              {captures: goMemory()},
	"memory, old":         {captures: goMemory(), machine: oldMachine, divide: true},
	"memory, SVE":         {captures: goMemory(), machine: machine{cpu: "max", hwcap: hwcapAtomics | hwcapSVE}},
}

func TestGoPayloadsKeepWhatIsAlive(t *testing.T) {
	for name, s := range goPayloads {
		t.Run(name, func(t *testing.T) {
			s.chunks = 16
			d := startGo(t, s)
			d.doDraining("state 300")
			if !s.lossless {
				d.do("state 300") // drops
			}
			d.do("gate 0")
			d.do("state 20")
			d.round()
			if k := d.goroutines; k.carried < 2000 || k.wrong != 0 || k.switches == 0 {
				t.Errorf("%d events with payload, %d wrong, %d switches", k.carried, k.wrong, k.switches)
			}
		})
	}
}

func TestGoPayloadsCarryWhatIsThere(t *testing.T) {
	for name, s := range goPayloads {
		t.Run(name, func(t *testing.T) {
			d := startGo(t, s)
			d.do("name 0 4660")
			d.do("name 1 4660")
			d.round()
			v := d.goroutines.values
			bits := func(k, i int, want uint64, state stub.State) {
				t.Helper()
				if got := v[k][i]; got.Bits != want || got.State != state {
					t.Errorf("value %d: %#x, %v; want %#x, %v", i, got.Bits, got.State, want, state)
				}
			}
			text := func(i int, want string) {
				t.Helper()
				if got := v[0][i]; string(got.Bytes) != want || got.State != 0 {
					t.Errorf("value %d: %q, %v; want %q", i, got.Bytes, got.State, want)
				}
			}
			const stranger = 0x7265676e61727473 // the text
			switch {
			case !s.captures.Entry.Inline():
				bits(0, 3, 4660, 0)
				for i := 4; i <= 6; i++ {
					bits(0, i, 0, 0)
				}
				text(7, "s")
				text(8, "stranger")
				bits(0, 9, stranger&0xFFFFFFFF, 0)
				bits(0, 10, 0, stub.StateUnreadable)
				bits(1, 3, stranger, 0)
				bits(1, 4, 0, 0)
			case len(s.captures.Entry.Fields) == 5:
				bits(0, 3, 0, 0)
				bits(0, 4, 0, 0)
				bits(1, 3, 0, 0)
			default:
				bits(0, 3, 4660, 0)
				bits(0, 4, 1, 0)
				bits(1, 3, 4660, 0)
			}
		})
	}
}

// goPredicateDriver starts a Go program with an armed recording.
func goPredicateDriver(t *testing.T, s stubSetup) (*driver, *ring.Predicates, *ring.Snapshotter) {
	t.Helper()
	s.over, s.chunks = true, 64
	d := startGo(t, s)
	w, err := d.mem.PredicatesAt(ring.Size(s.chunks) + ring.GoStacksSize + ring.ArgsSize)
	if err != nil {
		t.Fatal(err)
	}
	return d, w, ring.NewSnapshotter(d.mem)
}

func TestGoPredicatesKeepWhatIsAlive(t *testing.T) {
	for name, s := range map[string]stubSetup{
		"LSE": {}, "old": {machine: oldMachine}, "SVE": {machine: machine{cpu: "max", hwcap: hwcapAtomics | hwcapSVE}}, "with values": {captures: goMemory()},
	} {
		t.Run(name, func(t *testing.T) {
			s.predicates = 4
			d, w, k := goPredicateDriver(t, s)
			w.Set(0, ring.Predicate{Kind: ring.PredicateNumber, Low: 1, High: math.MaxInt64})
			d.do("state 200") // each exit fires
			if w.Fired() == 0 {
				t.Error("nothing has fired")
			}
			w.Arm(true)
			d.do("state 20")
			if !k.Frozen() {
				t.Error("the rings aren't frozen")
			}
			k.Thaw()
			for i := range s.predicates {
				w.Set(i, ring.Predicate{Kind: ring.PredicateResult, Bits: 8 << (i % 4), Signed: i%2 == 0, Not: true, Low: math.MinInt64, High: math.MaxInt64})
			}
			fired := w.Fired()
			d.do("state 200")
			if n := w.Fired(); n != fired {
				t.Errorf("%d have fired", n-fired)
			}
			d.do("gate 0")
			d.do("state 20")
		})
	}
}

// A firing is of the goroutine, and says where its stack pointer was from the end of its stack.
func TestTheNthCallOfAGoFunctionFires(t *testing.T) {
	for name, m := range map[string]machine{"LSE": lseMachine, "old": oldMachine} {
		t.Run(name, func(t *testing.T) {
			d, w, k := goPredicateDriver(t, stubSetup{machine: m, predicates: 2, ids: 1})
			w.Arm(true)
			w.Set(0, ring.Predicate{Kind: ring.PredicateNumber, Low: 1000, High: 1000})
			w.Set(1, ring.Predicate{Kind: ring.PredicateResult, Bits: 16, Low: 4660, High: 4660})
			for range 999 {
				d.do("both 1")
			}
			if w.Fired() != 0 || k.Frozen() {
				t.Fatalf("fired %d times before", w.Fired())
			}
			d.do("both 77777")
			f, ok := w.Firing(1)
			if w.Fired() != 1 || !ok || !k.Frozen() {
				t.Fatalf("fired %d times, %+v", w.Fired(), f)
			}
			const goid = 1%goroutines + 1
			if f.Predicate != 0 || f.TID != d.cmd.Process.Pid || f.Ctx != goid|goid<<40 || f.Word>>1 != 1 || f.SP != inGoEnd || f.To < f.From || f.Result != 77777 {
				t.Errorf("%+v", f)
			}
			d.do("both %d", 4660+1<<16)
			if w.Fired() != 2 {
				t.Errorf("fired %d times", w.Fired())
			}
			w.EachOpen(func(c ring.OpenCall) { t.Errorf("still open: %+v", c) })
		})
	}
}
