package unwind_test

import (
	"slices"
	"testing"

	"github.com/callreel/callreel/cfi"
	"github.com/callreel/callreel/unwind"
)

// calls is code in which a call ends at every fifth address.
func calls() []byte {
	code := make([]byte, 256)
	for k := range code {
		code[k] = []byte{0xe8, 0, 0, 0, 0}[k%5]
	}
	return code
}

// walkTwice walks a stack twice, and says so when what the first walk has found out leads the
// second elsewhere.
func walkTwice(t *testing.T, p *fuzzProcess, s *unwind.Snapshot) ([]unwind.Frame, unwind.End) {
	t.Helper()
	w := unwind.NewWalker(unwind.AMD64, p.images(), unwind.Options{})
	first, end := w.Walk(s, nil)
	again, endAgain := w.Walk(s, nil)
	if !slices.Equal(first, again) || end.Reason != endAgain.Reason {
		t.Errorf("first %+v, %v\nthen %+v, %v", first, end, again, endAgain)
	}
	return again, end
}

// Where a caller's frame pointer was saved nothing may be. That ends no walk: the return address is
// what counts, for the first frame as for those behind it.
func TestWalkGoesOnWithoutAFramePointer(t *testing.T) {
	frame := seedCFI()
	frame[slices.Index(frame, 0x86)+1] = 3 // rbp is three words below the CFA, which is rbp+16
	p := &fuzzProcess{code: calls()}
	// The first caller's frame pointer is where the code begins, and nothing is below that. Its
	// return address is in the code, too.
	copy(p.code[8:], stackOf(fuzzJIT+5))
	p.stack = stackOf(0, 0, 0, 0, 0, 0, 0, fuzzCode, fuzzStack+64, fuzzCode+10, 0, 0)
	var err error
	if p.table, err = cfi.ParseEHFrame(frame, 0, cfi.Options{}); err != nil {
		t.Fatal(err)
	}
	s := unwind.Snapshot{Memory: p, Addr: fuzzStack, Stack: p.stack, Frozen: true}
	s.Regs.PC = fuzzCode + 16
	s.Regs.Set(unwind.AMD64RSP, fuzzStack+64)
	s.Regs.Set(unwind.AMD64RBP, fuzzStack+64)
	frames, end := walkTwice(t, p, &s)
	if len(frames) != 2 || end.Reason != unwind.NoStack {
		t.Errorf("%d frames and %v, want 2, and that the third isn't on a stack", len(frames), end)
	}
}

// A frame record is on the stack. What is half below it is none, even when it leads where a call
// is known to be.
func TestFrameRecordBelowTheStackIsNone(t *testing.T) {
	words := make([]uint64, 64)
	words[7], words[8], words[9] = fuzzStack+128, fuzzJIT+5, fuzzJIT+5
	p := &fuzzProcess{code: calls(), stack: stackOf(words...)}
	s := unwind.Snapshot{Memory: p, Addr: fuzzStack, Stack: p.stack, Frozen: true, Return: true}
	s.Regs.PC = fuzzJIT + 100
	s.Regs.Set(unwind.AMD64RSP, fuzzStack+64)
	w := unwind.NewWalker(unwind.AMD64, p.images(), unwind.Options{})
	for _, c := range []struct {
		rbp    uint64
		frames int
	}{{fuzzStack + 64, 2}, {fuzzStack + 56, 1}} {
		s.Regs.Set(unwind.AMD64RBP, c.rbp)
		if frames, end := w.Walk(&s, nil); len(frames) != c.frames || end.Reason != unwind.NoCFI {
			t.Errorf("with rbp %#x: %d frames and %v, want %d, and no rule", c.rbp, len(frames), end, c.frames)
		}
	}
}

// What a stack holds in the place of a return address may look like what the walk keeps an
// address under at which a thread was stopped.
func TestComplementsAreNotTheAddressesThatTheyAreKeptUnder(t *testing.T) {
	for name, c := range map[string]struct{ pc, ra uint64 }{
		"of the first address":  {fuzzCode, ^uint64(fuzzCode)},
		"of a return address":   {^uint64(fuzzCode + 5), fuzzCode + 5},
		"of another's return":   {^uint64(fuzzJIT + 5), fuzzJIT + 5},
		"of an address in data": {fuzzCode, ^uint64(fuzzStack)},
	} {
		t.Run(name, func(t *testing.T) {
			p := &fuzzProcess{code: calls()}
			var err error
			if p.table, err = cfi.ParseEHFrame(seedCFI(), 0, cfi.Options{}); err != nil {
				t.Fatal(err)
			}
			words := make([]uint64, 64)
			words[8] = c.ra
			p.stack = stackOf(words...)
			s := unwind.Snapshot{Memory: p, Addr: fuzzStack, Stack: p.stack, Frozen: true}
			s.Regs.PC = c.pc // CFI says there that the return address is on top of the stack
			s.Regs.Set(unwind.AMD64RSP, fuzzStack+64)
			s.Regs.Set(unwind.AMD64RBP, 0)
			frames, end := walkTwice(t, p, &s)
			want := 1
			if c.ra < fuzzStack { // a call through a bad pointer
				want = 2
			}
			if len(frames) < want || want == 1 && (len(frames) != 1 || end.Reason != unwind.BadReturnAddress) {
				t.Errorf("%+v and %v, want %d frames", frames, end, want)
			}
		})
	}
}
