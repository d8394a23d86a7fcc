package process

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// abandon starts a remote mmap at addr on the first thread and leaves it to
// itself, as a tracer does that is killed right then. Signals are blocked before
// the thread goes on, or there would be a moment behind the call in which the
// thread's mask is its own and the chain isn't over.
func abandon(s *Stopped, addr uint64) error {
	g, err := s.p.findGadgets()
	if err != nil {
		return err
	}
	t := s.Threads()[0]
	r, err := t.prepare(g, []Call{{
		Number: unix.SYS_MMAP,
		Args:   [6]uint64{addr, 4096, unix.PROT_READ, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_FIXED_NOREPLACE, ^uint64(0)},
	}}, arch.sleepCalls()[0])
	if err != nil {
		return err
	}
	if _, err := s.p.WriteAt(r.chain.bytes, r.chain.base); err != nil {
		return err
	}
	if err := t.SetRegs(&r.chain.start); err != nil {
		return err
	}
	return setSigMask(t.TID, allBlocks)
}

func TestAbandonedCallEndsByItself(t *testing.T) {
	const addr = 0x1234_0000_0000
	for _, state := range []string{"read", "nanosleep", "poll", "spin"} {
		for _, again := range []bool{false, true} {
			t.Run(state, func(t *testing.T) {
				t.Parallel()
				g := startTarget(t, build(t, "states.c", "gcc"), state)
				p := openTarget(t, g)
				time.Sleep(20 * time.Millisecond)
				stop(t, p, func(s *Stopped) error { return abandon(s, addr) })
				if again {
					stop(t, p, func(s *Stopped) error { return checkOwnState(t, s) })
				} else {
					awaitCall(p, addr) // the thread may have to wait for a processor before it begins
					awaitOwnMask(t, p)
				}
				if _, err := p.ReadAt(make([]byte, 4096), addr); err != nil {
					t.Errorf("the call was not made: %v", err)
				}
				status, err := p.Status()
				if err != nil || status.SigBlocked != 0 {
					t.Errorf("blocked signals %#x, %v", status.SigBlocked, err)
				}
				if text := g.finish(); text != "ok\n" {
					t.Errorf("target: %s", text)
				}
			})
		}
	}
}

// awaitCall waits until the memory that is to be mapped is there.
func awaitCall(p *Process, addr uint64) {
	for start := time.Now(); time.Since(start) < 20*time.Second; time.Sleep(time.Millisecond) {
		if _, err := p.ReadAt(make([]byte, 8), addr); err == nil {
			return
		}
	}
}

// awaitOwnMask waits until the only thread has put itself back.
func awaitOwnMask(t *testing.T, p *Process) {
	t.Helper()
	for start := time.Now(); time.Since(start) < 20*time.Second; time.Sleep(5 * time.Millisecond) {
		status, err := p.Status()
		if err != nil {
			t.Fatal(err)
		}
		if status.SigBlocked == 0 {
			return
		}
	}
}

// checkOwnState says whether the thread shows its own registers.
func checkOwnState(t *testing.T, s *Stopped) error {
	regs, err := s.Threads()[0].Regs()
	if err != nil {
		return err
	}
	if cookie, ok := arch.cookie(regs); ok {
		t.Errorf("the thread is still in a chain, %#x", cookie)
	}
	mask, err := s.Threads()[0].SigMask()
	if mask != 0 {
		t.Errorf("blocked signals %#x", mask)
	}
	return err
}
