package arm64

import (
	"fmt"
	"testing"

	"github.com/callreel/callreel/isa"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/reel"
)

// AppendWith also looks at payloads: the first value stands for the event's own stack pointer, as in all captures here.
func (s *tally) AppendWith(events []reel.Event, payloads []ring.Payload) error {
	for _, p := range payloads {
		e := events[p.Event]
		if s.keeps != nil {
			s.carried(&e, p.Data)
			continue
		}
		s.valued++
		k := btoi(e.IsExit())
		v := s.captures.Of(e.IsExit()).Decode(p.Data, s.values[k][:0])
		s.values[k] = v
		if s.wrong == "" && uint32(v[0].Bits) != e.SP {
			s.wrong = fmt.Sprintf("the payload's SP is %#x, the event's %#x", v[0].Bits, e.SP)
		}
	}
	return s.Append(events)
}

func register(r isa.Reg, size uint8) stub.Field {
	return stub.Field{Value: stub.Operand{Reg: r, Size: size}}
}

func memory(r isa.Reg, size uint8, off int32) stub.Field {
	return stub.Field{Value: stub.Operand{Reg: r, Size: size, Memory: true, Off: off}}
}

var entrySP = stub.Field{Value: stub.Operand{Origin: stub.OriginStack, Size: 8}}

// ofRegisters are captures that stubs store themselves.
func ofRegisters() *stub.Captures {
	return &stub.Captures{
		Entry: &stub.Capture{Fields: []stub.Field{
			entrySP, register(x0, 8), register(x1, 4), register(x2, 8), register(x3, 2), register(x8, 8), register(lr, 8),
			{Value: stub.Operand{Origin: stub.OriginVector, Vector: 3, Size: 8}}, {Value: stub.Operand{Origin: stub.OriginVector, Vector: 31, Size: 4}},
			{Value: stub.Operand{Origin: stub.OriginStack, Memory: true, Safe: true, Off: 168, Size: 8}},
		}},
		Return: &stub.Capture{Fields: []stub.Field{entrySP, register(x0, 8), {Value: stub.Operand{Reg: x1, Size: 1, Signed: true}}}},
	}
}

// ofMemory are captures that the slow path gathers.
func ofMemory() *stub.Captures {
	return &stub.Captures{
		Entry: &stub.Capture{Fields: []stub.Field{
			entrySP, register(x0, 8), register(x2, 4), register(19, 8),
			{Kind: stub.FieldString, Value: stub.Operand{Reg: x1, Size: 8}, Max: 40},
			{Kind: stub.FieldString, Value: stub.Operand{Reg: x1, Size: 8}, Max: 5},
			{Kind: stub.FieldBytes, Value: stub.Operand{Reg: x1, Size: 8}, Max: 4},
			{Kind: stub.FieldBytes, Value: stub.Operand{Reg: x1, Size: 8}, Len: stub.Operand{Reg: x2, Size: 1, Signed: true}, Max: 40},
			memory(x1, 4, 0), memory(x1, 1, 2), memory(x0, 8, 0),
			{Value: stub.Operand{Reg: x1, Index: x2, Scale: 4, Memory: true, Size: 2}},
			{Kind: stub.FieldString, Value: stub.Operand{Reg: x0, Size: 8}, Max: 40},
		}},
		Return: &stub.Capture{Fields: []stub.Field{entrySP, memory(x1, 8, 0)}},
	}
}

var payloads = map[string]stubSetup{
	"registers":              {captures: ofRegisters()},
	"registers, old":         {captures: ofRegisters(), machine: oldMachine},
	"registers, stack moved": {captures: ofRegisters(), spDelta: true, alive: true},
	"registers, lossless":    {captures: ofRegisters(), lossless: true},
	"registers, lazy":        {captures: ofRegisters(), lazy: true, unmade: true},
	"registers, small":       {captures: ofRegisters(), divide: true},
	"memory":                 {captures: ofMemory()},
	"memory, old":            {captures: ofMemory(), machine: oldMachine, clock: stub.ClockExit},
	"memory, stack moved":    {captures: ofMemory(), spDelta: true, alive: true},
	"memory, SVE":            {captures: ofMemory(), machine: smeMachine},
	"memory, streaming":      {captures: ofMemory(), machine: streaming},
	"memory, asking":         {captures: ofMemory(), noTLS: true, divide: true},
}

func TestPayloadsKeepEveryRegister(t *testing.T) {
	for name, s := range payloads {
		t.Run(name, func(t *testing.T) {
			s.chunks = 16
			d := startDriver(t, s)
			d.doDraining("state 300")
			if !s.lossless {
				d.do("state 300") // drops
			}
			d.round()
			for _, k := range d.threads {
				if k.valued < 2000 || k.wrong != "" || k.unknown != 0 {
					t.Errorf("%d events with payload: %s; %d unknown", k.valued, k.wrong, k.unknown)
				}
			}
		})
	}
}

func TestPayloadsCarryWhatIsThere(t *testing.T) {
	for name, s := range payloads {
		t.Run(name, func(t *testing.T) {
			s.chunks = 64
			d := startDriver(t, s)
			d.do("name 0 4660")
			d.do("name 1 4660")
			d.round()
			v := d.threads[0].values
			text := func(i int, want string, cut bool, state stub.State) {
				t.Helper()
				if got := v[0][i]; string(got.Bytes) != want || got.Cut != cut || got.State != state {
					t.Errorf("value %d: %q, cut %v, %v; want %q, %v, %v", i, got.Bytes, got.Cut, got.State, want, cut, state)
				}
			}
			bits := func(k, i int, want uint64, state stub.State) {
				t.Helper()
				if got := v[k][i]; got.Bits != want || got.State != state {
					t.Errorf("value %d: %#x, %v; want %#x, %v", i, got.Bits, got.State, want, state)
				}
			}
			const stranger = 0x7265676e61727473 // the text
			if s.captures.Entry.Inline() {
				bits(0, 1, 4660, 0)
				bits(0, 3, 1, 0)
				bits(0, 4, 1, 0)
				bits(1, 1, 4660, 0)
				return
			}
			bits(0, 1, 4660, 0)
			bits(0, 2, 1, 0)
			text(4, "stranger", false, 0)
			text(5, "stran", true, 0)
			text(6, "stra", false, 0)
			text(7, "s", false, 0)
			bits(0, 8, stranger&0xFFFFFFFF, 0)
			bits(0, 9, 'r', 0)
			bits(0, 10, 0, stub.StateUnreadable)
			bits(0, 11, stranger>>32&0xFFFF, 0)
			text(12, "", false, stub.StateUnreadable)
			bits(1, 1, stranger, 0)
		})
	}
}

func TestPayloadsAreWholeUnderSignals(t *testing.T) {
	for _, name := range []string{"registers, small", "registers, old", "memory"} {
		t.Run(name, func(t *testing.T) {
			s := payloads[name]
			s.chunks = 512
			d := startDriver(t, s)
			d.do("alarm 500")
			d.doDraining("threads 4 3000")
			d.do("alarm 0")
			d.finish(expect{signals: true, untimed: untimed(s.clock)})
			for _, k := range d.threads {
				if k.wrong != "" {
					t.Error(k.wrong)
				}
			}
		})
	}
}
