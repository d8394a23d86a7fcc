package arm64

import (
	"slices"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/isa"
	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/recorder/internal/golang"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/reel"
)

// Where the driver has what a Go program's runtime would have, behind the gate: one goroutine and one thread.
const (
	testG      = 0x4000
	testM      = 0x5000
	testGoID   = 152
	testProcID = 64
	goroutines = 3
)

// goTally is a sink that counts the events of each goroutine, and looks at what they carry.
type goTally struct {
	now      uint64
	switches int
	entries  map[uint64]int
	wrong    int // events that aren't of the goroutine that calls the function, or whose stack pointers are no distances from the stack's end
	captures *stub.Captures
	values   [2][]stub.Value // of the last entry, and the last exit
	marks    map[uint32]int  // by their numbers
	marked   []stub.Value    // of the last marker
	carried  int
}

func (*goTally) Dropped(entries, exits, tick uint64) error { return nil }

func (k *goTally) Append(events []reel.Event) error { return k.AppendWith(events, nil) }

func (k *goTally) AppendWith(events []reel.Event, payloads []ring.Payload) error {
	for _, e := range events {
		id, is := e.Goroutine()
		switch {
		case is:
			k.now = id
			k.switches++
			continue
		case !e.IsExit():
			k.entries[k.now]++
		}
		if e.SP != inGoSP(e.ID(), e.IsExit()) || e.Time == 0 {
			k.wrong++
		}
		if want := uint64(e.ID()%goroutines + 1); k.now != want|want<<40 {
			k.wrong++
		}
	}
	for _, p := range payloads {
		e := events[p.Event]
		v := k.captures.Of(e.IsExit()).Decode(p.Data, nil)
		k.look(v)
		k.values[btoi(e.IsExit())] = v
	}
	return nil
}

// look holds the first values against one another: the stack pointer at the entry, what is in the closure's register, and what inGo has put above the
// stack pointer.
func (k *goTally) look(v []stub.Value) {
	k.carried++
	if v[0].Bits != v[2].Bits || v[1].Bits != closure {
		k.wrong++
	}
}

// Marks counts the passings of markers.
func (k *goTally) Marks(events []reel.Event, payloads []ring.Payload) error {
	for _, e := range events {
		if _, is := e.Goroutine(); is {
			continue
		}
		k.marks[ring.MarkOf(e.Word)]++
		if e.SP != inGoEnd-belowMark {
			k.wrong++
		}
	}
	for _, p := range payloads {
		k.marked = k.captures.Entry.Decode(p.Data, nil)
		k.look(k.marked)
	}
	return nil
}

const (
	closure = 0xC105_0E // what is in the closure's register
	// inGoEnd is how far the stack pointer is below the end of the goroutine's stack.
	inGoEnd = uint32(0x1_0000_0000 - 1<<12)
)

// inGoDelta is spDelta of an event.
func inGoDelta(id uint32, exit bool) int32 {
	if exit {
		return 0
	}
	return int32(16 * (1 - id%2))
}

func inGoSP(id uint32, exit bool) uint32 { return inGoEnd + uint32(inGoDelta(id, exit)) }

// inGo appends a function that is called as C functions are, and runs what event appends as Go code is run: with the goroutine in x28. It traps where
// that has changed what isn't its own, or anything below the stack pointer. goid is the goroutine's ID.
func (c *coder) inGo(goid uint64, event func()) {
	gate := c.cfg.Gate
	bad := c.NewLabel()
	for r := isa.Reg(19); r < 29; r += 2 {
		c.StorePair(r, r+1, arm64.Pre(sp, -16))
	}
	c.Mrs(goM, arm64.NZCV)
	c.StorePair(goM, lr, arm64.Pre(sp, -16))
	c.SubImm(sp, sp, 32)
	c.MovImm(goG, gate+testG)
	c.MovImm(goM, gate+testM)
	c.Store(8, goM, arm64.At(goG, golang.GM))
	c.Mrs(goTID, arm64.TPIDREL0)
	c.AddImm(goTID, goTID, int64(c.cfg.TIDOffset))
	c.Load(4, goTID, arm64.At(goTID, 0))
	c.Store(8, goTID, arm64.At(goM, testProcID))
	c.MovImm(goID, goid)
	c.Store(8, goID, arm64.At(goG, testGoID))
	c.MovSP(goSP, sp)
	c.SubImm(goLo, goSP, 1<<12)
	c.AddImm(goHi, goSP, 1<<12)
	c.StorePair(goLo, goHi, arm64.At(goG, golang.StackLo))
	c.Store(8, goSP, arm64.At(sp, 8))
	c.AddImm(goSP, goSP, 16)
	c.Store(8, goSP, arm64.At(sp, 24))
	const below = 0x1234_5678_9ABC_DEF0
	c.MovImm(goKey, below)
	c.StorePair(goKey, goKey, arm64.At(sp, -16))
	event()
	c.MovImm(goKey, below)
	c.LoadPair(goM, goTID, arm64.At(sp, -16))
	c.Cmp(goM, goKey)
	c.BCond(arm64.CondNE, bad)
	c.Cmp(goTID, goKey)
	c.BCond(arm64.CondNE, bad)
	c.MovImm(goM, gate+testG)
	c.Cmp(goM, goG)
	c.BCond(arm64.CondNE, bad)
	c.AddImm(sp, sp, 32)
	c.LoadPair(goM, goTID, arm64.Post(sp, 16))
	c.Msr(arm64.NZCV, goM)
	c.Cmp(goTID, lr)
	c.BCond(arm64.CondNE, bad)
	c.Msr(arm64.NZCV, goM)
	for r := isa.Reg(27); r >= 19; r -= 2 {
		c.LoadPair(r, r+1, arm64.Post(sp, 16))
	}
	c.Ret(lr)
	c.Place(bad)
	c.Brk(7)
}

// goRoutines sets what is asked of a Go program's stubs, and appends what they call.
func (s *stubSetup) goRoutines(t testing.TB, c *coder) {
	t.Helper()
	cfg := c.cfg
	var fns []stub.Probe
	if s.captures != nil {
		cfg.Captures = map[uint32]*stub.Captures{}
		for _, exit := range []bool{false, true} {
			if k := s.captures.Of(exit); k != nil {
				realtest.Must(t, k.LayOut())
			}
		}
	}
	for n := 1; n <= s.ids; n++ {
		id := uint32(n)
		if s.marks != nil {
			id = ring.MarkID(id)
		}
		fns = append(fns, stub.Probe{ID: id})
		if s.captures != nil {
			cfg.Captures[id] = s.captures
		}
		if s.triggers {
			if cfg.MarkTriggers == nil {
				cfg.MarkTriggers = map[uint32][]stub.MarkTrigger{}
			}
			cfg.MarkTriggers[id] = []stub.MarkTrigger{{Predicates: stub.Predicates{Count: 1}, Key: ring.MarkID(1), Begin: true, End: true}}
		}
	}
	if s.constant != nil { // all of one title are the first marker's, all others another's
		other := ring.MarkID(uint32(s.ids + 1))
		cfg.Captures[other] = s.captures
		k := *s.constant
		k.Else = other
		for i := range fns {
			cfg.Captures[fns[i].ID] = &stub.Captures{Entry: s.captures.Entry, Constant: &k}
		}
	}
	if s.says {
		cfg.GoSays = [2]uint32{ring.MarkID(21), ring.MarkID(22)}
	}
	if s.predicates > 0 || s.triggers {
		cfg.Predicates = cfg.Args + ring.ArgsSize
	}
	c.emitGo(fns)
}

// codeOfGo makes the functions of a Go program, of which each is of one goroutine.
func codeOfGo(s stubSetup) func(t testing.TB, c *coder) []uint64 {
	return func(t testing.TB, c *coder) (funcs []uint64) {
		for n := 1; n <= s.ids; n++ {
			id := uint32(n)
			for _, exit := range []bool{false, true} {
				c.Align(16)
				funcs = append(funcs, c.PC())
				goid := uint64(id%goroutines + 1)
				c.inGo(goid|goid<<40, func() {
					// What is alive at a function's entry is the closure's register besides the driver's.
					c.MovImm(isa.Reg(26), closure)
					p := place{id: id, exit: exit, spDelta: inGoDelta(id, exit)}
					switch {
					case s.marks != nil:
						c.mark(ring.MarkID(id))
					case s.says:
						c.goSays(plan.HookPause + plan.Hook(btoi(exit))*(plan.HookResume-plan.HookPause))
					case s.captures != nil:
						c.capturedEvent(p, s.captures, s.captures.Of(exit))
					default:
						c.event(p)
					}
					if s.predicates > 0 {
						c.predicates(p, stub.Predicates{Count: uint8(s.predicates)})
					}
					c.MovImm(goM, closure)
					kept := c.NewLabel()
					c.Cmp(goM, isa.Reg(26))
					c.BCond(arm64.CondEQ, kept)
					c.Brk(8)
					c.Place(kept)
				})
				c.flush()
				c.Resolve()
			}
		}
		return funcs
	}
}

// startGo starts the driver as a Go program.
func startGo(t *testing.T, s stubSetup) *driver {
	t.Helper()
	if s.ids == 0 {
		s.ids = 8
	}
	if s.chunks == 0 {
		s.chunks = 64
	}
	s.golang = true
	s.code = codeOfGo(s)
	d := startDriver(t, s)
	t.Cleanup(func() { d.ownStackIsEnough(s) })
	return d
}

// ownStackIsEnough looks whether the thread has written below its stack of callreel's own.
func (d *driver) ownStackIsEnough(s stubSetup) {
	d.t.Helper()
	b := make([]byte, ring.GoStackSize)
	if _, err := d.file.ReadAt(b, int64(ring.Size(s.chunks))+int64(d.cmd.Process.Pid-1)<<ring.GoStackShift); err != nil {
		d.t.Fatal(err)
	}
	if slices.ContainsFunc(b, func(x byte) bool { return x != 0 }) {
		d.t.Error("the stack isn't large enough")
	}
}

// The stubs of a Go program change nothing that is alive, write nothing below the stack pointer, and tell goroutines apart.
func TestGoStubsKeepWhatIsAlive(t *testing.T) {
	for name, s := range map[string]stubSetup{
		"LSE": {machine: lseMachine}, "old": {machine: oldMachine}, "SVE": {machine: machine{cpu: "max", hwcap: hwcapAtomics | hwcapSVE}}, "lossless": {lossless: true}, "small chunks": {divide: true},
	} {
		t.Run(name, func(t *testing.T) {
			const rounds, ids = 200, 8
			d := startGo(t, s)
			d.do("state %d", rounds)
			d.round()
			if err := d.drainer.Finish(); err != nil {
				t.Fatal(err)
			}
			sum, k := d.drainer.Totals(), d.goroutines
			if made := d.made(); made != rounds*ids || sum.Dropped != 0 || sum.Torn != 0 || k.wrong != 0 || k.switches == 0 {
				t.Errorf("%d calls made, %d switches, %d wrong: %+v", made, k.switches, k.wrong, sum)
			}
			all := 0
			for id, n := range k.entries {
				if id == 0 {
					t.Errorf("%d calls of no goroutine", n)
				}
				all += n
			}
			if all != rounds*ids || len(k.entries) != goroutines {
				t.Errorf("%v of %d calls", k.entries, rounds*ids)
			}
		})
	}
}

// With the gate closed, and in a program that has only begun, nothing is written.
func TestGoStubsAreSilentWhileItIsOff(t *testing.T) {
	d := startGo(t, stubSetup{ids: 2, chunks: 8})
	d.do("gate 0")
	d.do("state 20")
	if n := d.header(ring.HdrRegistered); n != 0 {
		t.Errorf("%d threads have registered", n)
	}
	d.do("gate 1")
	d.do("state 1")
	if n := d.header(ring.HdrRegistered); n != 1 {
		t.Errorf("%d threads have registered", n)
	}
}
