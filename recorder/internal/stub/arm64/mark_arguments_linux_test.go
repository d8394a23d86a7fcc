package arm64

import (
	"fmt"
	"math"
	"testing"

	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/reel"
)

// heldWord is where, in the ring's header, a test keeps what is each process's own.
const heldWord = ring.HdrNamed + 128

// checkedMark appends a marker where there is something in x16 and x17, and a look whether it still is.
func (c *coder) checkedMark(id int) {
	bad := c.NewLabel()
	c.Mov(x16, 19)
	c.Mov(x17, 20)
	c.mark(ring.MarkID(uint32(id)))
	c.Eor(x16, x16, 19)
	c.Cbnz(x16, bad)
	c.Eor(x17, x17, 20)
	c.Cbnz(x17, bad)
	c.cold = append(c.cold, func() {
		c.Place(bad)
		c.Brk(9)
	})
}

// markers makes functions markers.
func (s *stubSetup) markers(t testing.TB, c *coder) {
	t.Helper()
	if err := s.marks.LayOut(); err != nil {
		t.Fatal(err)
	}
	cfg := c.cfg
	cfg.Args, cfg.Captures, cfg.Says = testRing+ring.Size(s.chunks), map[uint32]*stub.Captures{}, map[uint32]stub.Say{}
	if s.held {
		cfg.Held = testRing + heldWord
	}
	if s.triggers {
		cfg.Predicates, cfg.MarkTriggers = cfg.Args+ring.ArgsSize, map[uint32][]stub.MarkTrigger{}
		c.emitPredicates()
	}
	var fns []stub.Probe
	for n := 1; n <= s.ids; n++ {
		id := ring.MarkID(uint32(n))
		cfg.Captures[id] = &stub.Captures{Entry: s.marks}
		if s.says {
			cfg.Says[id] = stub.SayPause + stub.Say(1-n%2)
		}
		if s.triggers {
			cfg.MarkTriggers[id] = []stub.MarkTrigger{{Predicates: stub.Predicates{Count: 1}, Key: ring.MarkID(1), Begin: n%2 == 1, End: n%2 == 0}}
		}
		fns = append(fns, stub.Probe{ID: id})
	}
	c.emitCaptures(fns)
}

// Marks looks at the passings of markers: the first value stands for the stack pointer, the next two, which were in x16 and x17, are the same as
// those behind them.
func (s *tally) Marks(events []reel.Event, payloads []ring.Payload) error {
	s.marked += uint64(len(events))
	for i := range events {
		if n := ring.MarkOf(events[i].Word); n == 0 || n > s.maxID {
			s.unknown++
		}
	}
	for _, p := range payloads {
		s.carry++
		v := s.marks.Decode(p.Data, nil)
		if e := &events[p.Event]; uint32(v[0].Bits) != e.SP+belowMark || v[1].Bits != v[3].Bits || v[2].Bits != v[4].Bits || v[1].Bits == v[2].Bits {
			s.wrong = fmt.Sprintf("the event is %+v, the values %+v", *e, v)
		}
	}
	return nil
}

func ofMarks(more ...stub.Field) *stub.Capture {
	return &stub.Capture{Fields: append([]stub.Field{entrySP, register(x16, 8), register(x17, 8), register(19, 8), register(20, 8), register(lr, 8),
		{Value: stub.Operand{Origin: stub.OriginStack, Memory: true, Safe: true, Off: 8, Size: 4}}}, more...)}
}

func TestMarkersWithArgumentsKeepEveryRegister(t *testing.T) {
	inMemory := func() *stub.Capture {
		return ofMarks(memory(x1, 4, 0), stub.Field{Kind: stub.FieldString, Value: stub.Operand{Reg: x16, Size: 8}, Max: 8})
	}
	for name, s := range map[string]stubSetup{
		"registers":         {marks: ofMarks()},
		"nothing":           {marks: &stub.Capture{}},
		"registers, old":    {marks: ofMarks(), machine: oldMachine},
		"memory":            {marks: inMemory()},
		"memory, old":       {marks: inMemory(), machine: oldMachine, divide: true},
		"memory, SVE":       {marks: inMemory(), machine: smeMachine},
		"memory, asking":    {marks: inMemory(), noTLS: true},
		"some threads":      {marks: ofMarks(), threads: true},
		"children":          {marks: ofMarks(), follow: true},
		"lazy":              {marks: ofMarks(), lazy: true},
		"pauses":            {marks: ofMarks(), says: true},
		"pauses, by itself": {marks: inMemory(), says: true, held: true},
		"triggers":          {marks: ofMarks(), triggers: true},
		"triggers, asking":  {marks: inMemory(), triggers: true, noTLS: true, machine: smeMachine},
		"lossless":          {marks: ofMarks(), lossless: true},
	} {
		t.Run(name, func(t *testing.T) {
			s.chunks = 16
			d := startDriver(t, s)
			d.doDraining("state 300")
			if !s.lossless {
				d.do("state 300") // drops
			}
			d.do("gate 0")
			d.do("state 20")
			d.do("gate 1")
			d.round()
			for _, k := range d.threads {
				if k.marked < 3000 || k.wrong != "" || k.unknown != 0 || k.carry == 0 && len(s.marks.Fields) > 0 {
					t.Errorf("%d marks, %d with values: %s; %d unknown", k.marked, k.carry, k.wrong, k.unknown)
				}
			}
		})
	}
}

// Markers by which the program pauses its recording obey at once, and are written whether it is paused or not; but not where the gate is closed.
func TestMarkersPause(t *testing.T) {
	for name, s := range map[string]stubSetup{"one process": {}, "each by itself": {held: true}} {
		t.Run(name, func(t *testing.T) {
			s.marks, s.says, s.chunks = ofMarks(), true, 64
			d := startDriver(t, s)
			word := func() uint64 {
				if s.held {
					return d.header(heldWord)
				}
				return d.header(ring.PausedOff)
			}
			d.do("once 0") // the first pauses, the second goes on
			if word() == 0 {
				t.Error("it isn't paused")
			}
			d.do("once 2")
			if w := word(); w != 0 {
				t.Errorf("%#x behind one that goes on", w)
			}
			d.mem.SetPaused(true)
			d.do("once 0")
			d.do("once 2")
			d.round()
			if n := d.drainer.Totals().Marks; n != 4 {
				t.Errorf("%d marks", n)
			}
			d.mem.SetPaused(false)
			d.mem.SetPausedAtFirst(true)
			d.do("gate 0")
			d.do("once 0")
			d.do("once 2")
			if w := word(); w != 0 || d.mem.PausedAtFirst() || d.mem.PausedSelf() {
				t.Errorf("%#x behind one that goes on", w)
			}
		})
	}
}

// What markers begin and end is a span to triggers, whatever the stack pointers are.
func TestSpansFire(t *testing.T) {
	s := stubSetup{marks: ofMarks(), triggers: true, chunks: 64, ids: 2, over: true}
	d := startDriver(t, s)
	w, err := d.mem.PredicatesAt(ring.Size(s.chunks) + ring.ArgsSize)
	if err != nil {
		t.Fatal(err)
	}
	w.Set(0, ring.Predicate{Kind: ring.PredicateDuration, Low: 0, High: math.MaxInt64})
	for n := range 5 {
		d.do("once 0")
		d.do("keep 2 %d 1", n)
		f, ok := w.Firing(uint32(n + 1))
		if int(w.Fired()) != n+1 || !ok || f.SP != 0 || f.Word != word(ring.MarkID(1), false) || f.To < f.From {
			t.Fatalf("%d fired: %+v", w.Fired(), f)
		}
	}
	d.do("keep 2 1 1") // none was begun
	if n := w.Fired(); n != 5 {
		t.Errorf("%d fired", n)
	}
}
