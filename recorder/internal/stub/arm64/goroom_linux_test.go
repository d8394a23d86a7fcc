package arm64

import (
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/recorder/internal/golang"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/recorder/internal/testimage"
)

// planGo plans a Go program for arm64, with its markers.
func planGo(t *testing.T) (*plan.Image, []plan.Function) {
	t.Helper()
	o := testimage.Open(t, realtest.BuildGoFor(t, "arm64", "gomarks"))
	im, err := plan.NewImage(o, "gomarks")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range golang.MarkNotes(im.Object) {
		im.Marks = append(im.Marks, n.Addr)
	}
	fns, err := im.Plan(t.Context())
	if err != nil || im.Go == nil || im.Go.Unsupported != nil || len(im.Marked) == 0 {
		t.Fatalf("%+v, %d markers: %v", im.Go, len(im.Marked), err)
	}
	return im, fns
}

// wantRoom compiles, for processors of both kinds, and holds the code against the room that is made before where its memory is is known.
func wantRoom(t *testing.T, cfg stub.Config, fns []stub.Probe) {
	t.Helper()
	const base = 1 << 26
	before := stub.Config{Go: cfg.Go, Captures: cfg.Captures, MarkTriggers: cfg.MarkTriggers}
	for _, n := range []int{1, min(InlineLimit, len(fns)), len(fns)} {
		room := (Generator{}).Bound(&before, fns[:n])
		for _, hwcap := range []uint64{0, hwcapAtomics} {
			cfg.Gate, cfg.Ring, cfg.HWCap = (base+room+pageBytes)&^(pageBytes-1), testRing, hwcap
			code, err := (Generator{}).Compile(base, cfg, fns[:n], nil)
			if err != nil {
				t.Fatal(err)
			}
			if uint64(len(code.Bytes)) > room {
				t.Errorf("%d functions: %d bytes in room for %d", n, len(code.Bytes), room)
			}
			t.Logf("%d functions: %d bytes in room for %d", n, len(code.Bytes), room)
		}
	}
}

// The room for an arena is fixed before its code is made; events of Go functions are inline, however many there are.
func TestGoStubsHaveRoom(t *testing.T) {
	im, fns := planGo(t)
	goRuntime := &golang.Runtime{GoID: im.Go.GoID, ProcID: im.Go.ProcID, Stacks: 1 << 41}
	capture := func(n int) *stub.Capture {
		c := goFirst()
		for range n {
			c.Fields = append(c.Fields, register(x0, 8), memory(x1, 4, 8))
		}
		realtest.Must(t, c.LayOut())
		return c
	}
	inRegisters := goRegisters()
	realtest.Must(t, inRegisters.Entry.LayOut())
	realtest.Must(t, inRegisters.Return.LayOut())
	captures := map[uint32]*stub.Captures{}
	var all []stub.Probe
	for i := range fns {
		if fns[i].Tier == plan.TierNone {
			continue
		}
		id := uint32(len(all) + 1)
		all = append(all, stub.Probe{Function: &fns[i], Image: im, ID: id, Predicates: stub.Predicates{Count: 1}})
		switch id % 3 {
		case 1:
			captures[id] = inRegisters
		case 2:
			captures[id] = &stub.Captures{Entry: capture(int(id % 5)), Return: capture(1)}
		}
	}
	wantRoom(t, stub.Config{Go: goRuntime}, all)
	wantRoom(t, stub.Config{Go: goRuntime, Predicates: 1 << 42}, all)
	wantRoom(t, stub.Config{Go: goRuntime, Predicates: 1 << 42, Captures: captures, Args: 1 << 43}, all)
}

// So it is of markers whose strings are constants, or are read, and of triggers.
func TestStubsOfGoMarkersHaveRoom(t *testing.T) {
	im, _ := planGo(t)
	cfg := stub.Config{Go: &golang.Runtime{GoID: im.Go.GoID, ProcID: im.Go.ProcID, Stacks: 1 << 41}, Predicates: 1 << 42, Args: 1 << 43,
		Captures: map[uint32]*stub.Captures{}, MarkTriggers: map[uint32][]stub.MarkTrigger{}}
	var fns []stub.Probe
	for i := range im.Marked {
		id, other := ring.MarkID(uint32(2*i+1)), ring.MarkID(uint32(2*i+2))
		constant := &stub.Capture{Fields: []stub.Field{register(x0, 8), register(x1, 4), register(x2, 8)}}
		read := &stub.Capture{Fields: []stub.Field{{Kind: stub.FieldBytes, Value: register(x0, 8).Value, Len: register(x1, 8).Value, Max: 64},
			{Kind: stub.FieldBytes, Value: register(x2, 8).Value, Len: register(x3, 8).Value, Max: 64}}}
		realtest.Must(t, constant.LayOut())
		realtest.Must(t, read.LayOut())
		cfg.Captures[id] = &stub.Captures{Entry: constant, Constant: &stub.Constant{Reg: x0, From: 1<<36 | 1<<20 | 0x30, Size: 1<<20 + 1, Else: other}}
		cfg.Captures[other] = &stub.Captures{Entry: read}
		cfg.MarkTriggers[id] = []stub.MarkTrigger{{Predicates: stub.Predicates{Count: 1}, Key: 7, Begin: true, End: true}}
		fns = append(fns, stub.Probe{Function: &im.Marked[i].Alone, Image: im, ID: id})
	}
	wantRoom(t, cfg, fns)
}
