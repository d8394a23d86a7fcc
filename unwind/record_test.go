package unwind_test

import (
	"encoding/binary"
	"testing"

	"github.com/callreel/callreel/cfi"
	"github.com/callreel/callreel/unwind"
)

// stackOf makes a stack of words at an address.
func stackOf(words ...uint64) []byte {
	var out []byte
	for _, w := range words {
		out = binary.LittleEndian.AppendUint64(out, w)
	}
	return out
}

// jitStack is a stack with frame records only, and code that no file is behind: ten
// calls, each of which a return address follows.
func jitStack(links func(k int) uint64, ra func(k int) uint64) (*fuzzProcess, unwind.Snapshot) {
	words := make([]uint64, 64)
	for k := range 10 {
		words[8+4*k], words[9+4*k] = links(k), ra(k)
	}
	code := make([]byte, 256)
	for k := range code { // call, five bytes each
		code[k] = []byte{0xe8, 0, 0, 0, 0}[k%5]
	}
	p := &fuzzProcess{code: code, stack: stackOf(words...)}
	s := unwind.Snapshot{Memory: p, Addr: fuzzStack, Stack: p.stack, Frozen: true}
	s.Regs.PC = fuzzJIT + 100
	s.Regs.Set(unwind.AMD64RSP, fuzzStack+32)
	s.Regs.Set(unwind.AMD64RBP, fuzzStack+64)
	return p, s
}

func link(k int) uint64 { return fuzzStack + 64 + 32*uint64(k+1) }

func returnTo(k int) uint64 { return fuzzJIT + 5*uint64(k+1) }

func TestWalkByFramePointerSaysWhyItEnds(t *testing.T) {
	at := func(want int, with uint64, else_ func(int) uint64) func(int) uint64 {
		return func(k int) uint64 {
			if k == want {
				return with
			}
			return else_(k)
		}
	}
	for name, c := range map[string]struct {
		links, ra func(int) uint64
		frames    int
		reasons   []unwind.Reason
	}{
		"zeros at the end":          {at(9, 0, link), at(9, 0, returnTo), 10, []unwind.Reason{unwind.Complete}},
		"a link to itself":          {at(4, link(3), link), returnTo, 6, []unwind.Reason{unwind.NoCFI, unwind.NotOutward}},
		"a link inward":             {at(4, fuzzStack+64, link), returnTo, 6, []unwind.Reason{unwind.NoCFI, unwind.NotOutward}},
		"a link that is misaligned": {at(4, link(4)+4, link), returnTo, 6, []unwind.Reason{unwind.NoCFI, unwind.NotOutward}},
		"a link to another stack":   {at(4, fuzzOther, link), returnTo, 6, []unwind.Reason{unwind.NoCFI, unwind.Unreadable, unwind.NotOutward}},
		"a return address in data":  {link, at(4, fuzzStack+8, returnTo), 5, []unwind.Reason{unwind.NoCFI, unwind.BadReturnAddress}},
		"no return address":         {link, at(4, 0, returnTo), 5, []unwind.Reason{unwind.NoCFI, unwind.BadReturnAddress}},
	} {
		t.Run(name, func(t *testing.T) {
			p, s := jitStack(c.links, c.ra)
			w := unwind.NewWalker(unwind.AMD64, p.images(), unwind.Options{})
			for round := range 2 { // the second goes by what the first has found out
				frames, end := w.Walk(&s, nil)
				if len(frames) != c.frames || !oneOf(end.Reason, c.reasons) {
					t.Errorf("round %d: %d frames, %v; want %d, %v", round, len(frames), end, c.frames, c.reasons)
				}
			}
			frames, end := w.WalkFramePointers(&s, nil)
			if len(frames) != c.frames || !oneOf(end.Reason, c.reasons) {
				t.Errorf("by frame pointers: %d frames, %v; want %d, %v", len(frames), end, c.frames, c.reasons)
			}
		})
	}
}

func oneOf(r unwind.Reason, list []unwind.Reason) bool {
	for _, want := range list {
		if r == want {
			return true
		}
	}
	return false
}

// Where an interpreter is returned to need not follow a call, if another frame record
// follows.
func TestGuessedReturnAddressMustFollowACallOrLeadToAnotherRecord(t *testing.T) {
	for name, c := range map[string]struct {
		link   uint64 // in the record with the return address that follows no call
		frames int
		reason unwind.Reason
	}{
		"leads on":        {link(5), 10, unwind.Complete},
		"leads inward":    {fuzzStack + 64, 6, unwind.NoCFI},
		"leads elsewhere": {fuzzOther, 6, unwind.NoCFI},
		"is misaligned":   {link(5) + 4, 6, unwind.NoCFI},
		"is none":         {0, 6, unwind.NoCFI},
	} {
		t.Run(name, func(t *testing.T) {
			p, s := jitStack(func(k int) uint64 {
				switch k {
				case 5:
					return c.link
				case 9:
					return 0
				}
				return link(k)
			}, func(k int) uint64 {
				switch k {
				case 5:
					return returnTo(k) + 1
				case 9:
					return 0
				}
				return returnTo(k)
			})
			w := unwind.NewWalker(unwind.AMD64, p.images(), unwind.Options{})
			for round := range 2 { // the second goes by what the first has found out
				if frames, end := w.Walk(&s, nil); len(frames) != c.frames || end.Reason != c.reason {
					t.Errorf("round %d: %d frames, %v; want %d, %v", round, len(frames), end, c.frames, c.reason)
				}
			}
		})
	}
}

func TestWalkStopsAtTheLimitAndSaysSo(t *testing.T) {
	p, s := jitStack(link, returnTo)
	for _, most := range []int{1, 3, 7} {
		w := unwind.NewWalker(unwind.AMD64, p.images(), unwind.Options{MaxFrames: most})
		if frames, end := w.Walk(&s, nil); len(frames) != most || end.Reason != unwind.TooDeep {
			t.Errorf("%d frames of %d, %v", len(frames), most, end)
		}
	}
}

func TestFramesAreAppendedToThoseThatWereThere(t *testing.T) {
	p, s := jitStack(link, returnTo)
	w := unwind.NewWalker(unwind.AMD64, p.images(), unwind.Options{})
	alone, _ := w.Walk(&s, nil)
	both, _ := w.Walk(&s, append([]unwind.Frame(nil), alone...))
	if len(both) != 2*len(alone) {
		t.Fatalf("%d frames, want twice %d", len(both), len(alone))
	}
	for k, f := range alone {
		if both[k] != f || both[len(alone)+k] != f {
			t.Errorf("frame %d: %+v, %+v and %+v", k, f, both[k], both[len(alone)+k])
		}
	}
}

func TestWalkOverKnownCodeAllocatesNothing(t *testing.T) {
	p, s := jitStack(link, returnTo)
	w := unwind.NewWalker(unwind.AMD64, p.images(), unwind.Options{})
	frames, _ := w.Walk(&s, make([]unwind.Frame, 0, 256))
	if n := testing.AllocsPerRun(100, func() { frames, _ = w.Walk(&s, frames[:0]) }); n != 0 {
		t.Errorf("%v allocations in a walk", n)
	}
}

func TestStubsOfOursStandForTheCodeTheyReplace(t *testing.T) {
	p, s := jitStack(func(k int) uint64 {
		if k == 9 {
			return 0
		}
		return link(k)
	}, func(k int) uint64 {
		switch k {
		case 3:
			return fuzzJIT + 200 // no call ends there
		case 9:
			return 0
		}
		return returnTo(k)
	})
	asked := 0
	w := unwind.NewWalker(unwind.AMD64, p.images(), unwind.Options{Original: func(r *unwind.Registers) bool {
		asked++
		if r.PC != fuzzJIT+200 {
			return false
		}
		r.PC = returnTo(3)
		return true
	}})
	// A stub is reached by what is known for certain, not by a guess: the walk itself
	// asks for a guessed address as it stands.
	frames, end := w.Walk(&s, nil)
	if asked == 0 || end.Reason != unwind.NoCFI && !end.Complete() || len(frames) < 4 {
		t.Errorf("asked %d times, %d frames, %v", asked, len(frames), end)
	}
	s.Regs.PC = fuzzJIT + 200
	if frames, _ = w.Walk(&s, nil); frames[0].PC != returnTo(3) {
		t.Errorf("the first frame is at %#x, want %#x", frames[0].PC, returnTo(3))
	}
}

// The first frame is of a leaf, whose CFI has its return address in the link register;
// the others have frame records, and no CFI.
func TestARM64LeafReturnsByLinkRegisterAndSignaturesAreStripped(t *testing.T) {
	const signature = 0x5a << 48
	words := make([]uint64, 64)
	for k := range 4 {
		words[8+4*k], words[9+4*k] = link(k), signature|(fuzzCode+12+4*uint64(k))
	}
	words[8+4*3], words[9+4*3] = 0, 0
	code := stackOf(0x9400000194000001, 0x9400000194000001, 0x9400000194000001, 0x9400000194000001)
	cie := []byte{0, 0, 0, 0, 1, 'z', 'R', 0, 4, 0x78, 30, 1, 0x1b, 0x0c, 31, 0}
	data := binary.LittleEndian.AppendUint32(nil, uint32(len(cie)))
	data = append(data, cie...)
	fde := binary.LittleEndian.AppendUint32(nil, uint32(len(data)+4))
	fde = binary.LittleEndian.AppendUint32(fde, -uint32(len(data)+8)) // from here to link address 0
	fde = binary.LittleEndian.AppendUint32(fde, 4)
	fde = append(fde, 0, 0, 0, 0)
	data = binary.LittleEndian.AppendUint32(data, uint32(len(fde)))
	data = append(data, fde...)
	table, err := cfi.ParseEHFrame(data, 0, cfi.Options{})
	if err != nil || table.Err() != nil {
		t.Fatal(err, table.Err())
	}
	p := &fuzzProcess{table: table, code: code, stack: stackOf(words...)}
	s := unwind.Snapshot{Memory: p, Addr: fuzzStack, Stack: p.stack}
	s.Regs.PC = fuzzCode
	s.Regs.Set(unwind.ARM64.SP(), fuzzStack+64)
	s.Regs.Set(unwind.ARM64.FP(), fuzzStack+64)
	s.Regs.Set(30, signature|(fuzzCode+8))
	frames, end := unwind.NewWalker(unwind.ARM64, p.images(), unwind.Options{}).Walk(&s, nil)
	want := []uint64{fuzzCode, fuzzCode + 8, fuzzCode + 12, fuzzCode + 16, fuzzCode + 20}
	if !end.Complete() || len(frames) != len(want) {
		t.Fatalf("%v: %+v", end, frames)
	}
	for k := range want {
		if frames[k].PC != want[k] {
			t.Errorf("frame %d at %#x, want %#x", k, frames[k].PC, want[k])
		}
	}
}
