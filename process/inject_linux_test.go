package process

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestInjectionOnEveryThreadGoesUnnoticed(t *testing.T) {
	t.Parallel()
	g := startTarget(t, build(t, "selfcheck.c", "gcc"))
	p := openTarget(t, g)
	states := map[string]int{}
	for range 10 {
		stop(t, p, func(s *Stopped) error { return injectOnEach(s, states) })
		time.Sleep(5 * time.Millisecond)
	}
	t.Logf("calls made on threads in %v", states)
	if text := g.finish(); !unnoticed(text) {
		t.Errorf("target: %s%s", text, &g.stderr)
	}
	names := []string{"user code", "read", "poll", "clock_nanosleep", "futex", "epoll_wait"}
	if _, ok := numberOf("poll"); !ok { // newer processors' Linux has only the newer calls
		names = []string{"user code", "read", "ppoll", "clock_nanosleep", "futex", "epoll_pwait"}
	}
	for _, name := range names {
		if states[name] == 0 {
			t.Errorf("no thread was met in %s", name)
		}
	}
}

// injectOnEach has each thread in turn make a few calls.
func injectOnEach(s *Stopped, states map[string]int) error {
	g, err := s.p.findGadgets()
	if err != nil {
		return err
	}
	for _, thread := range s.Threads() {
		number, in, err := thread.InSyscall()
		if err != nil {
			return err
		}
		name := "user code"
		if in {
			name = syscallName(number)
		}
		results, err := thread.makeCalls(g, []Call{
			{Number: unix.SYS_GETTID},
			{Number: unix.SYS_MMAP, Args: [6]uint64{0, 4096, unix.PROT_READ, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS, ^uint64(0)}},
			{Number: unix.SYS_CLOSE, Args: [6]uint64{12345}},
		})
		if errors.Is(err, errUnfit) || errors.Is(err, ErrLate) { // on a machine that has no time for us
			states["unfit or late"]++
			continue
		}
		if err != nil {
			return err
		}
		if results[0].Value != uint64(thread.TID) {
			return errors.New("gettid names another thread")
		}
		if results[2].Errno != syscall.EBADF {
			return errors.New("close of no file succeeded")
		}
		if _, err := thread.makeCalls(g, []Call{{Number: unix.SYS_MUNMAP, Args: [6]uint64{results[1].Value, 4096}}}); err != nil && !errors.Is(err, ErrLate) {
			return err
		}
		states[name]++
	}
	return nil
}

// The chain's frames reach into the stacks of coroutines that lie below.
func TestInjectionLeavesNeighbouringStacksAlone(t *testing.T) {
	t.Parallel()
	path := build(t, "coroutines.c", "gcc", "-fno-stack-protector")
	for range lateTries {
		g := startTarget(t, path)
		reached, err := injectBesideCoroutines(t, openTarget(t, g))
		if errors.Is(err, ErrLate) {
			continue
		}
		if err != nil || reached == 0 {
			t.Errorf("compared %d times: %v", reached, err)
		}
		if text := g.finish(); text != "ok\n" {
			t.Errorf("target: %s", text)
		}
		return
	}
	t.Errorf("the target was late %d times", lateTries)
}

// injectBesideCoroutines says how often memory below the stack was compared. After an error that is ErrLate the target's stacks may be damaged,
// as the thread has run on before they could be put back. The process may have ended since.
func injectBesideCoroutines(t *testing.T, p *Process) (reached int, err error) {
	before, after := make([]byte, 32<<10), make([]byte, 32<<10)
	calls := make([]Call, MaxBatch)
	for i := range calls {
		calls[i] = Call{Number: unix.SYS_GETRLIMIT, Data: make([]byte, MaxCallData), DataArg: 1}
	}
	for range 60 {
		_, err = p.Stop(context.Background(), StopOptions{Timeout: time.Minute}, func(s *Stopped) error {
			regs, err := s.Threads()[0].Regs()
			if err != nil {
				return err
			}
			at := regs.SP() - arch.redZone() - uint64(len(before))
			if _, err := p.ReadAt(before, at); err != nil {
				return err
			}
			begun := time.Now()
			if _, err := s.SyscallBatch(calls); err != nil {
				if time.Since(begun) >= sleepNanoseconds {
					err = fmt.Errorf("%w: %w", ErrLate, err)
				}
				return err
			}
			if _, err := p.ReadAt(after, at); err != nil {
				return err
			}
			if now, err := s.Threads()[0].Regs(); err != nil || *now != *regs {
				return err // in a system call that begins anew
			}
			reached++
			if !bytes.Equal(before, after) {
				t.Error("memory below the stack was changed")
			}
			return nil
		})
		if err != nil {
			return reached, err
		}
		time.Sleep(time.Millisecond)
	}
	return reached, nil
}

func TestSyscallReturnsWhatTheKernelSays(t *testing.T) {
	for _, state := range []string{"read", "nanosleep", "poll", "pause", "spin"} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			g := startTarget(t, build(t, "states.c", "gcc"), state)
			p := openTarget(t, g)
			time.Sleep(20 * time.Millisecond)
			stop(t, p, func(s *Stopped) error { return checkCallsOf(t, s, g.pid()) })
			if state == "pause" {
				if err := g.cmd.Process.Signal(unix.SIGUSR1); err != nil {
					t.Fatal(err)
				}
			}
			if text := g.finish(); text != "ok\n" {
				t.Errorf("target: %s", text)
			}
		})
	}
}

// What has begun is brought to its end: a call given up halfway may have been made or not.
func TestRemoteCallsAreNotGivenUpHalfway(t *testing.T) {
	t.Parallel()
	g := startTarget(t, build(t, "states.c", "gcc"), "spin")
	p := openTarget(t, g)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	_, err := p.Stop(ctx, StopOptions{}, func(s *Stopped) error {
		cancel()
		for range 200 {
			if got, err := inTarget(s, unix.SYS_GETPID); err != nil || got != uint64(g.pid()) {
				return fmt.Errorf("getpid: %d, %w", got, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if text := g.finish(); text != "ok\n" {
		t.Errorf("target: %s", text)
	}
}

func checkCallsOf(t *testing.T, s *Stopped, pid int) error {
	got, err := inTarget(s, unix.SYS_GETPID)
	if err != nil || got != uint64(pid) {
		t.Errorf("getpid: %d, %v; want %d", got, err, pid)
	}
	if _, err := inTarget(s, unix.SYS_CLOSE, 4711); !errors.Is(err, syscall.EBADF) {
		t.Errorf("close of no file: %v", err)
	}
	addr, err := inTarget(s, unix.SYS_MMAP, 0, 8192, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, ^uint64(0), 0)
	if err != nil {
		return err
	}
	word := []byte("remembered")
	if _, err := s.Process().WriteAt(word, addr+4090); err != nil {
		t.Error(err)
	}
	back := make([]byte, len(word))
	if n, err := s.Process().ReadVec([]Vec{{addr + 4090, back}}); n != 1 || err != nil || string(back) != string(word) {
		t.Errorf("read back %q, %v", back, err)
	}
	if _, err := onceInTarget(s, unix.SYS_MUNMAP, addr, 8192); err != nil {
		t.Error(err)
	}
	if _, err := s.Process().ReadAt(back, addr); !errors.Is(err, ErrNoMapping) {
		t.Errorf("unmapped memory still reads: %v", err)
	}
	return nil
}

func TestCallDataGoesInAndOut(t *testing.T) {
	g := startTarget(t, build(t, "states.c", "gcc"))
	p := openTarget(t, g)
	stop(t, p, func(s *Stopped) error {
		name := append([]byte("callreel-test"), 0)
		limits := make([]byte, 16)
		results, err := batchInTarget(s, []Call{
			{Number: unix.SYS_MEMFD_CREATE, Data: name, DataArg: 0},
			{Number: unix.SYS_GETRLIMIT, Args: [6]uint64{unix.RLIMIT_NOFILE}, Data: limits, DataArg: 1},
		})
		if err != nil {
			return err
		}
		if err := errors.Join(results[0].Err(), results[1].Err()); err != nil {
			return err
		}
		var want unix.Rlimit
		if err := unix.Prlimit(g.pid(), unix.RLIMIT_NOFILE, nil, &want); err != nil {
			return err
		}
		if got := binary.LittleEndian.Uint64(limits); got != want.Cur {
			t.Errorf("getrlimit says %d, want %d", got, want.Cur)
		}
		_, err = onceInTarget(s, unix.SYS_CLOSE, results[0].Value)
		return err
	})
	if text := g.finish(); text != "ok\n" {
		t.Errorf("target: %s", text)
	}
}

func TestBatchesThatCannotBeMadeAreRefused(t *testing.T) {
	g := startTarget(t, build(t, "states.c", "gcc"))
	p := openTarget(t, g)
	stop(t, p, func(s *Stopped) error {
		for name, calls := range map[string][]Call{
			"none":      {},
			"too many":  make([]Call, MaxBatch+1),
			"much data": {{Data: make([]byte, MaxCallData+1)}},
			"argument":  {{Data: []byte{1}, DataArg: 6}},
		} {
			if _, err := s.SyscallBatch(calls); err == nil {
				t.Errorf("%s: accepted", name)
			}
		}
		if _, err := s.Syscall(0, 1, 2, 3, 4, 5, 6, 7); err == nil {
			t.Error("seven arguments accepted")
		}
		return nil
	})
	g.finish()
}

func TestUnsafeSyscallLeavesTheThreadAsItWas(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"read", "nanosleep", "spin"} {
		g := startTarget(t, build(t, "states.c", "gcc"), state)
		p := openTarget(t, g)
		time.Sleep(20 * time.Millisecond)
		stop(t, p, func(s *Stopped) error {
			found, err := p.findGadgets()
			if err != nil {
				return err
			}
			before, err := s.Threads()[0].Regs()
			if err != nil {
				return err
			}
			results, err := s.unsafeBatch(found, []Call{{Number: unix.SYS_GETPID}, {Number: unix.SYS_CLOSE, Args: [6]uint64{99}}})
			if err != nil {
				return err
			}
			if results[0].Value != uint64(g.pid()) || results[1].Errno != syscall.EBADF {
				t.Errorf("%s: results %v", state, results)
			}
			after, err := s.Threads()[0].Regs()
			if err == nil && *after != *before {
				t.Errorf("%s: registers %+v became %+v", state, before, after)
			}
			return err
		})
		if text := g.finish(); text != "ok\n" {
			t.Errorf("%s: target: %s", state, text)
		}
	}
}

// cLibraries are the ways to build a C program here.
var cLibraries = []struct {
	compiler string
	flags    []string
}{
	{"gcc", nil}, {"gcc", []string{"-static"}}, {"gcc", []string{"-static-pie"}},
	{"musl-gcc", nil}, {"musl-gcc", []string{"-static"}},
}

func TestEveryCLibraryHasTheInstructions(t *testing.T) {
	for _, c := range cLibraries {
		t.Run(c.compiler+strings.Join(c.flags, ""), func(t *testing.T) {
			g := startTarget(t, build(t, "idle.c", c.compiler, c.flags...), "2")
			p := openTarget(t, g)
			if err := p.PrepareSyscalls(); err != nil {
				t.Fatal(err)
			}
			stop(t, p, inject)
			if text := g.finish(); text != "ok\n" {
				t.Errorf("target: %s", text)
			}
		})
	}
}

func TestStoppedIsUselessAfterwards(t *testing.T) {
	g := startTarget(t, build(t, "states.c", "gcc"))
	p := openTarget(t, g)
	var kept *Stopped
	var thread *Thread
	stop(t, p, func(s *Stopped) error {
		kept, thread = s, s.Threads()[0]
		return nil
	})
	if _, err := kept.Syscall(unix.SYS_GETPID); !errors.Is(err, ErrReleased) {
		t.Errorf("system call: %v", err)
	}
	if _, err := thread.Regs(); !errors.Is(err, ErrReleased) {
		t.Errorf("registers: %v", err)
	}
	g.finish()
	if _, err := p.Stop(context.Background(), StopOptions{}, doNothing); !errors.Is(err, ErrNoProcess) {
		t.Errorf("stop of an ended process: %v", err)
	}
}
