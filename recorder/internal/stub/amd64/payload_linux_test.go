package amd64

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"reflect"
	"testing"

	"github.com/callreel/callreel/isa"
	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/reel"
)

// captureAll gives all functions the same captures.
func captureAll(t *testing.T, c *coder, s stubSetup) {
	t.Helper()
	cfg := c.cfg
	cfg.Args = testRing + ring.Size(s.chunks)
	cfg.Areas = cfg.Args + ring.ArgsSize
	c.emitOpenStack()
	cfg.Captures = map[uint32]*stub.Captures{}
	var fns []stub.Probe
	for id := uint32(1); id <= uint32(s.ids); id++ {
		cfg.Captures[id] = s.captures
		fns = append(fns, stub.Probe{ID: id})
	}
	for _, exit := range []bool{false, true} {
		if capture := s.captures.Of(exit); capture != nil {
			if err := capture.LayOut(); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.emitCaptures(fns)
}

// Append also looks whether the event is one of those for which the conditions hold.
func (s *tally) Append(events []reel.Event) error {
	if s.captures != nil && s.captures.Chosen() {
		for _, e := range events {
			if s.wrong == "" && !half(e.SP) {
				s.wrong = fmt.Sprintf("an event at SP %#x", e.SP)
			}
		}
	}
	return s.add(events)
}

// AppendWith also looks at payloads: one stands for the event's own stack pointer, as all captures here begin with.
func (s *tally) AppendWith(events []reel.Event, payloads []ring.Payload) error {
	for _, p := range payloads {
		e := events[p.Event]
		if s.keeps != nil {
			s.carried(&e, p.Data)
			continue
		}
		s.valued++
		v := s.captures.Of(e.IsExit()).Decode(p.Data, s.values[btoi(e.IsExit())][:0])
		s.values[btoi(e.IsExit())] = v
		if s.wrong == "" && uint32(v[0].Bits) != e.SP {
			s.wrong = fmt.Sprintf("the payload's SP is %#x, the event's %#x", v[0].Bits, e.SP)
		}
		// The last of what is gathered at entries is the stack pointer and four times the second.
		if c := s.captures.Of(e.IsExit()); s.wrong == "" && c.Fields[len(c.Fields)-1].Value.Scale == 4 && v[len(v)-1].Bits != v[0].Bits+4*v[1].Bits {
			s.wrong = fmt.Sprintf("an address with an index is %#x, of %#x and %#x", v[len(v)-1].Bits, v[0].Bits, v[1].Bits)
		}
	}
	return s.Append(events)
}

func register(r amd64.Reg, size uint8) stub.Field {
	return stub.Field{Value: stub.Operand{Reg: isa.Reg(r), Size: size}}
}

var entrySP = stub.Field{Value: stub.Operand{Origin: stub.OriginStack, Size: 8}}

// ofRegisters are captures that stubs store themselves: 5 and 2 payload events.
func ofRegisters() *stub.Captures {
	return &stub.Captures{
		Entry: &stub.Capture{Fields: []stub.Field{
			entrySP, register(amd64.RDI, 8), register(amd64.RSI, 4), register(amd64.RDX, 8), register(amd64.RCX, 2),
			register(amd64.R9, 8), {Value: stub.Operand{Origin: stub.OriginVector, Vector: 3, Size: 8}}, {Value: stub.Operand{Origin: stub.OriginVector, Vector: 15, Size: 4}},
		}},
		Return: &stub.Capture{Fields: []stub.Field{entrySP, register(amd64.RAX, 8), register(amd64.RDX, 1)}},
	}
}

// ofMemory are captures that the slow path gathers.
func ofMemory() *stub.Captures {
	return &stub.Captures{
		Entry: &stub.Capture{Fields: []stub.Field{
			entrySP, register(amd64.RDX, 8), register(amd64.RCX, 4),
			{Kind: stub.FieldBytes, Value: stub.Operand{Reg: isa.Reg(amd64.RDI), Size: 8}, Max: 61},
			{Kind: stub.FieldString, Value: stub.Operand{Reg: isa.Reg(amd64.RSI), Size: 8}, Max: 40},
			{Kind: stub.FieldBytes, Value: stub.Operand{Reg: isa.Reg(amd64.RDI), Size: 8}, Len: stub.Operand{Reg: isa.Reg(amd64.RCX), Size: 1, Signed: true}, Max: 40},
			{Value: stub.Operand{Reg: isa.Reg(amd64.RDI), Size: 4, Memory: true, Off: 8}},
			{Value: stub.Operand{Origin: stub.OriginStack, Memory: true, Size: 8}},
			{Value: stub.Operand{Reg: isa.Reg(amd64.R13), Index: isa.Reg(amd64.RSI), Scale: 8, Memory: true, Size: 8}},
			{Value: stub.Operand{Origin: stub.OriginStack, Index: isa.Reg(amd64.RDX), Scale: 4, Size: 8}},
		}},
		Return: &stub.Capture{Fields: []stub.Field{entrySP, {Value: stub.Operand{Reg: isa.Reg(amd64.RAX), Size: 8, Memory: true}}}},
	}
}

// payloads are the forms that event code with payloads takes.
var payloads = map[string]stubSetup{
	"registers":                 {captures: ofRegisters()},
	"registers, stack moved":    {captures: ofRegisters(), spDelta: true},
	"registers, lossless":       {captures: ofRegisters(), lossless: true},
	"memory":                    {captures: ofMemory()},
	"memory, stack moved":       {captures: ofMemory(), spDelta: true},
	"registers, clock at exits": {captures: ofRegisters(), clock: stub.ClockExit},
}

func TestPayloadsKeepEveryRegister(t *testing.T) {
	for name, s := range payloads {
		t.Run(name, func(t *testing.T) {
			s.chunks = ring.MinChunks
			d := startDriver(t, s)
			d.doDraining("state %d", 300) // 16 codes, of 3 to 20 events each: chunks end anywhere in a payload
			d.do("gate 0")
			d.do("state %d", 20)
			d.do("gate 1")
			if !s.lossless {
				d.do("state %d", 800) // the pool runs empty: drops
			}
			d.round()
			if n := d.drainer.Totals().Events; n < 4000 {
				t.Errorf("only %d events", n)
			}
		})
	}
}

// ofHalf records the calls at some depths only: those whose stack pointer has a low byte of half.
func ofHalf(c *stub.Captures) *stub.Captures {
	c.Conditions = []stub.Condition{
		{Value: stub.Operand{Reg: isa.Reg(amd64.RSP), Size: 1}, Comparison: stub.GreaterEqual, With: 0x40}, {Value: stub.Operand{Reg: isa.Reg(amd64.RSP), Size: 1}, Comparison: stub.LessEqual, With: 0xB0},
		{Value: stub.Operand{Reg: isa.Reg(amd64.RSP), Size: 2, Signed: true}, Comparison: stub.NotEqual, With: 0x4321}, {Value: stub.Operand{Reg: isa.Reg(amd64.RSP), Size: 8, Signed: true}, Comparison: stub.Greater, With: -5},
		{Value: stub.Operand{Reg: isa.Reg(amd64.RSP), Size: 8}, Comparison: stub.Greater, With: 1 << 40}, {Value: stub.Operand{Reg: isa.Reg(amd64.RSP), Size: 4}, Comparison: stub.NotEqual, With: 3},
	}
	return c
}

func half(sp uint32) bool { return uint8(sp) >= 0x40 && uint8(sp) <= 0xB0 }

// conditioned are event codes with conditions.
var conditioned = map[string]stubSetup{
	"no payload": {captures: ofHalf(&stub.Captures{})},
	"registers":  {captures: ofHalf(ofRegisters())},
	"memory":     {captures: ofHalf(ofMemory())},
	"gathered": {captures: &stub.Captures{Entry: &stub.Capture{Fields: []stub.Field{entrySP}, Conditions: []stub.Condition{
		{Value: stub.Operand{Origin: stub.OriginStack, Size: 1}, Comparison: stub.GreaterEqual, With: 0x40}, {Value: stub.Operand{Origin: stub.OriginStack, Size: 1}, Comparison: stub.LessEqual, With: 0xB0},
		{Value: stub.Operand{Origin: stub.OriginStack, Size: 8, Memory: true}, Comparison: stub.NotEqual, With: 3},
	}}}},
}

func TestConditionsKeepEveryRegister(t *testing.T) {
	for name, s := range conditioned {
		if name == "gathered" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			s.chunks = ring.MinChunks
			s.captures.Conditions[0].Comparison, s.captures.Conditions[1].Comparison = stub.GreaterEqual, stub.GreaterEqual
			s.captures.Conditions[0].With, s.captures.Conditions[1].With = 0, 0 // all hold
			d := startDriver(t, s)
			d.doDraining("state %d", 300)
			s.captures.Conditions[1].With = 0xFF // and none
			d = startDriver(t, s)
			d.doDraining("state %d", 300)
			if n := d.drainer.Totals().Events; n != 0 {
				t.Errorf("%d events", n)
			}
			s.captures.Conditions[0].Comparison, s.captures.Conditions[1].Comparison = stub.GreaterEqual, stub.LessEqual
			s.captures.Conditions[0].With, s.captures.Conditions[1].With = 0x40, 0xB0
		})
	}
}

// Of a call whose conditions don't hold there is neither entry nor exit, whatever signals come in between.
func TestCallsWhoseConditionsDontHoldAreNotRecorded(t *testing.T) {
	for name, s := range conditioned {
		t.Run(name, func(t *testing.T) {
			n, every := 40000, 30
			if name == "memory" || name == "gathered" {
				n, every = 5000, 700
			}
			s.chunks = 512
			d := startDriver(t, s)
			d.do("storm %d", every)
			d.doDraining("crowd 2 %d", n)
			d.do("storm 0")
			made := uint64(d.number("made"))
			d.round()
			if err := d.drainer.Finish(); err != nil {
				t.Fatal(err)
			}
			all := uint64(0)
			for _, k := range d.threads {
				all += k.entries
				if k.wrong != "" || k.unmatched != 0 || k.abandoned != 0 || len(k.open) != 0 {
					t.Errorf("%s: %s; %d exits without an entry, %d entries without an exit", k.name, k.wrong, k.unmatched, k.abandoned+uint64(len(k.open)))
				}
			}
			if all == 0 || all == made {
				t.Errorf("%d of %d calls recorded", all, made)
			}
		})
	}
}

// finishPayloads also checks that each event has its own payload.
func (d *driver) finishPayloads(want expect) {
	d.t.Helper()
	d.finish(want)
	for _, k := range d.threads {
		if k.keeps != nil && k.wrong != "" {
			d.t.Errorf("%s: %s", k.name, k.wrong)
		}
		if k.captures == nil {
			continue
		}
		if k.wrong != "" {
			d.t.Errorf("%s: %s", k.name, k.wrong)
		}
		// Exits that were written into spare chunk have none.
		if n := k.entries + k.exits; k.valued > n || k.valued < k.entries || d.drainer.Totals().Dropped == 0 && k.valued != n {
			d.t.Errorf("%s: %d of %d events have a payload", k.name, k.valued, n)
		}
	}
}

func TestPayloadsSayWhatWasInRegistersAndMemory(t *testing.T) {
	for name, s := range payloads {
		t.Run(name, func(t *testing.T) {
			d := startDriver(t, s)
			at := len(d.code) - 64 // code that the driver has mapped, and that is known here
			const dx, cx = 0xFEDCBA9876543210, 0x12345600000023
			d.do("pin %x %x %x %x", testArena+at, testArena+at, uint64(dx), uint64(cx))
			d.do("state 1")
			d.round()
			k := d.threads[0]
			if k.valued != k.entries+k.exits || k.valued == 0 || k.wrong != "" {
				t.Fatalf("%d of %d events have a payload; %s", k.valued, k.entries+k.exits, k.wrong)
			}
			code, v := d.code[at:], k.values[0]
			text, _, _ := bytes.Cut(code, []byte{0})
			var want []stub.Value
			if s.captures.Entry.Inline() {
				want = []stub.Value{v[0], {Bits: testArena + uint64(at)}, {Bits: testArena + uint64(at)}, {Bits: dx}, {Bits: cx & 0xFFFF}, v[5], v[6], v[7]}
			} else {
				want = []stub.Value{v[0], {Bits: dx}, {Bits: cx & 0xFFFFFFFF}, {Bytes: code[:61]}, {Bytes: text[:min(40, len(text))], Cut: len(text) > 40},
					{Bytes: code[:0x23]}, {Bits: uint64(binary.LittleEndian.Uint32(code[8:]))}, v[7], {State: stub.StateUnreadable}, {Bits: v[0].Bits + (4*dx)&(1<<64-1)}}
			}
			if !reflect.DeepEqual(v, want) {
				t.Errorf("recorded\n%+v, want\n%+v", v, want)
			}
		})
	}
}

// A bad pointer gives no value, and never a fault; what can be read up to a page that can't is.
func TestBadPointersGiveNoValue(t *testing.T) {
	d := startDriver(t, stubSetup{captures: ofMemory()})
	end := gateFor(d.code) + pageBytes // behind the arena's last page nothing is mapped
	for _, di := range []uint64{0, 1, end, end - 7, 1 << 62, 1<<64 - 4, 0xFFFF_FFFF_8000_0000} {
		d.do("pin %x %x %x %x", di, di, 0, 0x30)
		d.do("state 1")
		d.round()
		v := d.threads[0].values[0]
		bad := stub.Value{State: stub.StateUnreadable}
		text := bad
		switch di {
		case 0:
			text = stub.Value{State: stub.StateNull}
		case end - 7:
			text = stub.Value{Bytes: []byte{}} // zeros
		}
		for i, want := range map[int]stub.Value{3: bad, 4: text, 5: bad, 6: bad} {
			if !reflect.DeepEqual(v[i], want) {
				t.Errorf("at %#x: value %d is %+v, want %+v", di, i, v[i], want)
			}
		}
	}
}

// Signals come between any two instructions, and their handlers have payloads of their own.
func TestPayloadsStayWithTheirEventsUnderSignals(t *testing.T) {
	for name, s := range map[string]stubSetup{
		"registers":           {captures: ofRegisters(), chunks: 16},
		"registers, lossless": {captures: ofRegisters(), chunks: 16, lossless: true},
		"memory":              {captures: ofMemory(), chunks: 16},
	} {
		t.Run(name, func(t *testing.T) {
			n, every := 40000, 20
			if !s.captures.Entry.Inline() {
				n, every = 5000, 700 // a handler makes up to 40 calls
			}
			d := startDriver(t, s)
			d.do("storm %d", every)
			d.doDraining("crowd 4 %d", n)
			d.do("storm 0")
			d.finishPayloads(expect{mayDrop: true, signals: true})
		})
	}
}

func TestPayloadsThatDontFitAChunkGoToTheNext(t *testing.T) {
	for name, s := range map[string]stubSetup{"registers": {captures: ofRegisters()}, "memory": {captures: ofMemory()}} {
		t.Run(name, func(t *testing.T) {
			s.chunks = 256
			d := startDriver(t, s)
			for range 20 {
				d.doDraining("calls %d", 501)
			}
			d.finishPayloads(expect{})
		})
	}
}
