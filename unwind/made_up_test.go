package unwind_test

import (
	"testing"

	"github.com/callreel/callreel/cfi"
	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/unwind"
)

// madeUp is an image of a coroutine's function and of what makecontext has put as its return address.
type madeUp struct {
	*fuzzProcess
	coroutine, start, end uint64 // link addresses
}

func (m *madeUp) Row(_ *cfi.Machine, pc uint64) (*cfi.Row, bool, error) {
	r := &cfi.Row{CFA: cfi.Rule{Kind: cfi.RegOffset, Reg: uint16(sp)}, RAReg: uint32(lr)}
	switch {
	case pc >= m.coroutine && pc < m.start-4:
		r.CFA.Offset = 16
		r.Regs = []cfi.RegRule{{Reg: uint32(lr), Rule: cfi.Rule{Kind: cfi.Offset, Offset: -8}}}
	case pc < m.start || pc >= m.end:
		return nil, false, nil
	}
	return r, false, nil
}

// A return address that follows no call and is a function's first instruction is where makecontext ended its stack; one that follows a call,
// as of a function that never returns, is not.
func TestWhatWasMadeUpForACoroutineIsItsOutermostFrame(t *testing.T) {
	for name, called := range map[string]bool{"made up": false, "behind a call": true} {
		t.Run(name, func(t *testing.T) {
			a := arm64.NewAsm(fuzzCode, make([]byte, 4096))
			m := &madeUp{}
			for range 4 {
				a.Nop()
			}
			if here := a.NewLabel(); called {
				a.Place(here)
				a.Bl(here)
			} else {
				a.Nop()
			}
			m.start = a.PC() - fuzzCode
			a.Mov(x0, x19)
			a.Ret(lr)
			m.end = a.PC() - fuzzCode
			code, err := a.Finish()
			if err != nil {
				t.Fatal(err)
			}
			m.fuzzProcess = &fuzzProcess{code: code, stack: stackOf(0, fuzzCode+m.start, 0, 0, 0, 0)}
			s := unwind.Snapshot{Memory: m, Addr: fuzzStack, Stack: m.stack, Frozen: true}
			s.Regs.PC = fuzzCode + 8
			s.Regs.Set(int(sp), fuzzStack)
			s.Regs.Set(int(fp), 0)
			images := m.images()
			images[0].Image = m
			frames, end := unwind.NewWalker(unwind.ARM64, images, unwind.Options{}).Walk(&s, nil)
			if len(frames) != 2 || frames[1].PC != fuzzCode+m.start || end.Complete() == called {
				t.Errorf("%+v, %v", frames, end)
			}
		})
	}
}
