package process

import (
	"testing"
	"time"
)

func TestRestartableSequenceIsLeftAsTheKernelWould(t *testing.T) {
	g := startTarget(t, build(t, "rseq.c", "gcc"))
	p := openTarget(t, g)
	left := 0
	for range 20 {
		stop(t, p, func(s *Stopped) error {
			thread := s.Threads()[0]
			before, err := thread.Regs()
			if err != nil {
				return err
			}
			if err := thread.leaveRestartableSequence(); err != nil {
				return err
			}
			after, err := thread.Regs()
			if err != nil {
				return err
			}
			if after.PC() != before.PC() {
				left++
				// RSEQ_SIG stands before every address to abort to.
				if !p.holds(after.PC()-4, []byte{0x53, 0x30, 0x05, 0x53}) && !p.holds(after.PC()-4, []byte{0x00, 0xbc, 0x28, 0xd4}) { // x86-64, arm64
					t.Errorf("went from %#x to %#x", before.PC(), after.PC())
				}
			}
			return inject(s)
		})
		time.Sleep(3 * time.Millisecond)
	}
	if left == 0 {
		t.Error("the thread was never met in its sequence")
	}
	if text := g.finish(); text != "ok\n" {
		t.Errorf("target: %s", text)
	}
}
