package amd64

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// Signals at a high rate, each with a handler that runs stubs, through all paths of four threads.
func TestSignalsLoseNothing(t *testing.T) {
	for name, s := range map[string]stubSetup{
		"dropping":            {chunks: 16},
		"dropping and shared": {chunks: 16, shared: true},
		"lossless":            {chunks: 16, shared: true, lossless: true},
		"arguments kept":      {chunks: 16, keeps: keptForms},
	} {
		t.Run(name, func(t *testing.T) {
			d := startDriver(t, s)
			d.do("storm 20")
			d.doDraining("crowd 4 400000") // 3.2 M events
			d.do("storm 0")
			// On a busy machine there may be no drop at all, so there is no saying; finish only checks the sums.
			d.finish(expect{mayDrop: true, signals: true})
		})
	}
}

// stepper lets the driver's main thread go on instruction by instruction.
type stepper struct {
	*driver
	pid      int
	lossless bool // what is written in a stop may have to be drained for it to go on
}

// seize begins to trace the driver; the caller's goroutine must stay on its thread.
func (d *driver) seize() *stepper {
	d.t.Helper()
	s := &stepper{driver: d, pid: d.cmd.Process.Pid}
	err := unix.PtraceSeize(s.pid)
	if errors.Is(err, unix.EPERM) {
		realtest.NeedThat(d.t, "permission to trace a child", err)
	}
	s.check(err)
	return s
}

func (s *stepper) check(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// stopped waits for the child to stop by SIGTRAP. A signal that was sent while it was blocked comes as a stop of its own.
func (s *stepper) stopped() {
	s.t.Helper()
	var ws unix.WaitStatus
	for {
		_, err := unix.Wait4(s.pid, &ws, 0, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		s.check(err)
		if ws.Stopped() && ws.StopSignal() == unix.SIGUSR1 {
			s.check(unix.PtraceCont(s.pid, int(unix.SIGUSR1)))
			continue
		}
		break
	}
	if !ws.Stopped() || ws.StopSignal() != unix.SIGTRAP {
		s.t.Fatalf("the driver's status is %#x instead of a stop", ws)
	}
}

func (s *stepper) pc() uint64 {
	s.t.Helper()
	var regs unix.PtraceRegs
	s.check(unix.PtraceGetRegs(s.pid, &regs))
	return regs.PC()
}

func (s *stepper) inArena(pc uint64) bool {
	return pc >= testArena && pc < testArena+uint64(len(s.code))
}

// run makes one call; behind n instructions in the arena it calls meanwhile and sends a signal whose handler makes so
// many calls. It returns false when the call was over before.
func (s *stepper) run(n, calls int, meanwhile func()) (within bool) {
	s.t.Helper()
	s.send("one %d", calls)
	s.stopped()
	if within = s.stepInto(n); within {
		meanwhile()
		s.check(s.cont(true))
		s.stopped()
	}
	s.check(s.cont(false))
	if a := s.answer(); a != "ok" {
		s.t.Fatal(a)
	}
	return within
}

// cont lets the child go on, with a signal or without.
func (s *stepper) cont(signal bool) error {
	return unix.PtraceCont(s.pid, btoi(signal)*int(unix.SIGUSR1))
}

// stepInto steps until n instructions in the arena have been carried out; it returns false when the call was over before.
func (s *stepper) stepInto(n int) (within bool) {
	s.t.Helper()
	const most = 10000
	for range most {
		s.check(unix.PtraceSingleStep(s.pid))
		s.stopped()
		pc := s.pc()
		if s.inArena(pc) {
			if n--; n < 0 {
				return true
			}
			continue
		}
		var before [1]byte
		if _, err := unix.PtracePeekText(s.pid, uintptr(pc-1), before[:]); err == nil && before[0] == 0xCC {
			break
		}
	}
	return false
}

// A signal between any two instructions of the event code and of the slow path, whose handler runs event code itself:
// nothing may be lost, written twice or written over.
func TestASignalMayComeAtEveryInstruction(t *testing.T) {
	for _, c := range []struct {
		name  string
		setup stubSetup
		left  int // events of room before the call, or one more
		calls int // of the handler
		drop  bool
		refil bool // the pool is filled just before the signal
		step  int
	}{
		{"with room", stubSetup{chunks: 64}, 100, 3, false, false, 1},
		{"the open stack", stubSetup{chunks: 64, open: true}, 100, 3, false, false, 1},
		{"chosen", stubSetup{chunks: 64, depth: 50, every: 1}, 100, 3, false, false, 1},
		{"chosen inside", stubSetup{chunks: 64, inside: 8, min: true}, 100, 3, false, false, 2},
		{"a payload", stubSetup{chunks: 64, captures: ofRegisters()}, 100, 3, false, false, 1},
		{"a payload that may not fit", stubSetup{chunks: 64, captures: ofRegisters()}, 10, 3, false, false, 5},
		{"a payload, and the handler changes the chunk", stubSetup{chunks: 64, captures: ofRegisters()}, 10, ring.ChunkEvents, false, false, 5},
		{"a payload in memory", stubSetup{chunks: 64, captures: ofMemory()}, 100, 3, false, false, 13},
		{"arguments kept", stubSetup{chunks: 64, keeps: keptForms}, 100, 3, false, false, 1},
		{"arguments kept that may not fit", stubSetup{chunks: 64, keeps: keptForms}, 3, 1, false, false, 1},
		{"arguments kept, and the handler changes the chunk", stubSetup{chunks: 64, keeps: keptForms}, 4, ring.ChunkEvents, false, false, 3},
		{"handler fills the chunk", stubSetup{chunks: 64}, 2, 3, false, false, 1},
		{"handler changes the chunk twice", stubSetup{chunks: 64}, 2, 2 * ring.ChunkEvents, false, false, 3},
		{"chunk is full", stubSetup{chunks: 64}, 0, 3, false, false, 1},
		{"shared, chunk is full", stubSetup{chunks: 64, shared: true}, 0, 3, false, false, 1},
		{"chunk is full, handler changes it again", stubSetup{chunks: 64}, 0, ring.ChunkEvents, false, false, 5},
		{"pool is empty", stubSetup{chunks: 8}, 0, 3, true, false, 1},
		{"a small chunk is full", stubSetup{chunks: 64, divide: true}, 0, 3, false, false, 1},
		{"a small chunk is full, handler changes it again", stubSetup{chunks: 64, divide: true}, 0, 5 * ring.SmallEvents, false, false, 5},
		{"pool is empty, but for small ones", stubSetup{chunks: 8, divide: true}, 0, 3, true, false, 5},
		{"pool is empty, and filled before the handler", stubSetup{chunks: 8}, 0, 3, true, true, 3},
		{"pool is empty, filled, and emptied by the handler", stubSetup{chunks: 8}, 0, 8 * ring.ChunkEvents, true, true, 17},
	} {
		t.Run(c.name, func(t *testing.T) {
			runtime.LockOSThread() // to the tracer
			defer runtime.UnlockOSThread()
			d := startDriver(t, c.setup)
			d.do("calls 10")
			s := d.seize()
			points := 0
			for n := 0; ; n += c.step {
				d.round()
				if c.drop {
					d.do("enter") // accepted: its exit must come through
					d.do("calls 20000")
				} else {
					d.do("fill %d", c.left)
				}
				within := s.run(n, c.calls, func() {
					if c.refil {
						d.round()
					}
				})
				if c.drop {
					d.do("leave")
				}
				if !within {
					break
				}
				points++
			}
			s.check(s.release())
			if points < 40/c.step {
				t.Errorf("only %d instructions were interrupted", points)
			}
			t.Logf("interrupted at %d instructions", points)
			d.finishPayloads(expect{drops: c.drop, signals: true})
		})
	}
}

// release ends tracing; the child need not stand for it.
func (s *stepper) release() error {
	if err := unix.PtraceInterrupt(s.pid); err != nil {
		return fmt.Errorf("interrupting: %w", err)
	}
	var ws unix.WaitStatus
	for {
		_, err := unix.Wait4(s.pid, &ws, 0, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	return unix.PtraceDetach(s.pid)
}
