package target

import (
	"context"
	"os/exec"
	"slices"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/process"
)

// The frame of a handler counts from its first instruction on until the kernel has given the registers back: also when the handler has returned,
// and the address that it returned to is no longer on the stack.
func TestFramesOfHandlersCountUntilTheKernelHasTakenThem(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace)
	p, finish := startWaiting(t, exec.Command(realtest.Build(t, "handlers"), "handler"), "")
	maps, err := p.Maps()
	if err != nil {
		t.Fatal(err)
	}
	restorers := findRestorers(p, maps, func(uint64) bool { return false })
	all := func(uint64) bool { return true }
	if _, err := p.Stop(context.Background(), process.StopOptions{}, func(st *process.Stopped) error {
		frames := func() []interrupted {
			t.Helper()
			f, err := interruptedPCs(st, maps, restorers, nativeHandlers{}, all)
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		waits := frames()
		if len(waits) != 1 {
			t.Fatalf("%d frames while a handler waits: %+v", len(waits), waits)
		}
		mark := waits[0].at - pcInFrame
		var word [8]byte
		if _, err := p.ReadAt(word[:], mark); err != nil {
			t.Fatal(err)
		}
		thread := st.Threads()[0]
		regs, err := thread.Regs()
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := thread.SetRegs(regs); err != nil {
				t.Error(err)
			}
		}()
		returned := func(pc, sp uint64) []interrupted {
			t.Helper()
			now := *regs
			now.SetPC(pc)
			now.Rsp = sp
			if err := thread.SetRegs(&now); err != nil {
				t.Fatal(err)
			}
			return frames()
		}
		restorer := restorers[slices.IndexFunc(restorers, func(r uint64) bool { return leftOf(r, restorers) != 0 })]
		for _, into := range []uint64{0, 7} { // mov, syscall
			if got := returned(restorer+into, mark+8); !slices.Equal(got, waits) {
				t.Errorf("%d bytes behind the restorer's beginning: %+v, want %+v", into, got, waits)
			}
		}
		if got := returned(restorer+9, mark+8); len(got) != 0 {
			t.Errorf("behind the restorer: %+v", got)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	finish()
}
