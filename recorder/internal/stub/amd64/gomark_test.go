package amd64

import (
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/isa"
	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/golang"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// The room for an arena is fixed before its code is made, of markers whose strings are constants, or are read, and of triggers as well.
func TestStubsOfGoMarkersHaveRoom(t *testing.T) {
	im := openTestImage(t, realtest.BuildGo(t, "gomarks"))
	for _, n := range golang.MarkNotes(im.Object) {
		im.Marks = append(im.Marks, n.Addr)
	}
	planImage(t, im)
	register := func(r amd64.Reg, size uint8) stub.Operand { return stub.Operand{Reg: isa.Reg(r), Size: size} }
	cfg := stub.Config{Gate: 1<<28 - 4096, Ring: 1 << 40, Predicates: 1 << 41, Args: 1 << 42, Go: &golang.Runtime{GoID: im.Go.GoID},
		Captures: map[uint32]*stub.Captures{}, MarkTriggers: map[uint32][]stub.MarkTrigger{}}
	var fns []stub.Probe
	for i := range im.Marked {
		id := ring.MarkID(uint32(2*i + 1))
		other := ring.MarkID(uint32(2*i + 2))
		constant := &stub.Capture{Fields: []stub.Field{{Value: register(amd64.RAX, 8)}, {Value: register(amd64.RBX, 4)}, {Value: register(amd64.RCX, 8)}}}
		read := &stub.Capture{Fields: []stub.Field{{Kind: stub.FieldBytes, Value: register(amd64.RAX, 8), Len: register(amd64.RBX, 8), Max: 64},
			{Kind: stub.FieldBytes, Value: register(amd64.RCX, 8), Len: register(amd64.RDI, 8), Max: 64}}}
		if err := constant.LayOut(); err != nil {
			t.Fatal(err)
		}
		if err := read.LayOut(); err != nil {
			t.Fatal(err)
		}
		cfg.Captures[id] = &stub.Captures{Entry: constant, Constant: &stub.Constant{Reg: isa.Reg(amd64.RAX), From: 1 << 28, Size: 1 << 20, Else: other}}
		cfg.Captures[other] = &stub.Captures{Entry: read}
		cfg.MarkTriggers[id] = []stub.MarkTrigger{{Predicates: stub.Predicates{Count: 1}, Key: 7, Begin: true, End: true}}
		fns = append(fns, stub.Probe{Function: &im.Marked[i].Alone, Image: im, ID: id})
	}
	const base = 1 << 28
	for _, n := range []int{1, len(fns)} {
		code, err := compile(base, cfg, fns[:n], nil)
		if err != nil {
			t.Fatal(err)
		}
		room := bound(&cfg, fns[:n]) + boundCaptures(fns[:n], cfg.Captures)
		if uint64(len(code.Bytes)) > room {
			t.Errorf("%d markers: %d bytes in room for %d", n, len(code.Bytes), room)
		}
		t.Logf("%d markers: %d bytes in room for %d", n, len(code.Bytes), room)
	}
}
