package recorder_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// forger builds the target that writes what it likes into its rings.
func forger(t testing.TB) string {
	t.Helper()
	var flags []string
	for name, v := range map[string]uint64{
		"HDR_REGISTERED": ring.HdrRegistered, "HDR_POOL": ring.HdrPool, "HDR_SMALL_POOL": ring.HdrSmallPool, "HDR_SMALL": ring.HdrSmall, "HDR_EXECS": ring.HdrExecs,
		"REGISTRY_OFF": ring.RegistryOff, "REGISTRY_SIZE": ring.RegistrySize, "REGISTRY_ENTRY": ring.RegistryEntry,
		"REG_TID": ring.RegTID, "REG_PID": ring.RegPID, "REG_NAME": ring.RegName, "NEXT_OFF": ring.NextOff,
		"EXECS_OFF": ring.ExecsOff, "EXEC_SLOTS": ring.ExecSlots, "EXEC_SHIFT": ring.ExecShift,
		"EXEC_TID": ring.ExecTID, "EXEC_PID": ring.ExecPID, "EXEC_STATE": ring.ExecState, "EXEC_ASKED": ring.ExecAsked,
		"SLOTS_OFF": ring.SlotsOff, "SLOT_SIZE": ring.SlotSize, "SLOT_CHUNK": ring.SlotChunk, "SLOT_FIRST": ring.SlotFirst,
		"SLOT_DROPPED": ring.SlotDropped, "CHUNKS_OFF": ring.ChunksOff, "CHUNK_SIZE": ring.SmallSize, "CHUNK_TID": ring.ChunkTID,
		"CHUNK_HEADER": ring.ChunkHeader, "CLAIM_EMPTY": ring.ClaimEmpty, "MAX_TID": ring.MaxTID,
	} {
		flags = append(flags, fmt.Sprintf("-D%s=%#xul", name, v))
	}
	slices.Sort(flags)
	return realtest.Build(t, "forger", flags...)
}

// another starts a program as a user that nobody is.
func another(t testing.TB, path string, args ...string) *realtest.Proc {
	t.Helper()
	p := realtest.StartCommand(t, anothers(t, path, args...))
	p.WaitLine("ready")
	return p
}

// anothers is a program of a user that nobody is, in a folder that this user can reach.
func anothers(t testing.TB, path string, args ...string) *exec.Cmd {
	t.Helper()
	copied := filepath.Join(realtest.SharedFolder(t), filepath.Base(path))
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(copied, data, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(copied, args...)
	realtest.BeStranger(cmd)
	return cmd
}

// bystander is a process that nobody has asked to record.
type bystander struct {
	*realtest.Proc
	who  string
	seen atomic.Value // what was done to it
	stop chan struct{}
	done chan struct{}
}

// watch looks at a process all the time until leftAlone is called.
func watch(p *realtest.Proc, who string) *bystander {
	b := &bystander{Proc: p, who: who, stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(b.done)
		for {
			select {
			case <-b.stop:
				return
			case <-time.After(200 * time.Microsecond):
			}
			if s := touched(p.Pid()); s != "" {
				b.seen.Store(s)
				return
			}
		}
	}()
	return b
}

// touched says what a recorder has done to a process, empty if nothing.
func touched(pid int) string {
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, task := range tasks {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/status", pid, task.Name()))
		if _, tracer, _ := strings.Cut(string(status), "\nTracerPid:\t"); err == nil && !strings.HasPrefix(tracer, "0\n") {
			return "was traced"
		}
	}
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err == nil && (strings.Contains(string(maps), "/memfd:callreel") || strings.Contains(string(maps), "[anon:callreel]")) {
		return "had memory of a recorder's mapped"
	}
	return ""
}

func (b *bystander) leftAlone(t testing.TB) {
	t.Helper()
	close(b.stop)
	<-b.done
	if s := b.seen.Load(); s != nil {
		t.Errorf("process %d, %s, %s", b.Pid(), b.who, s)
	}
	wantUntouched(t, b.Pid())
	b.Finish()
}

// bystanders are one of root's, and one of another user's.
func bystanders(t testing.TB) []*bystander {
	t.Helper()
	steady := realtest.Build(t, "threads")
	roots, users := realtest.Start(t, steady, "steady", "2"), another(t, steady, "steady", "2")
	realtest.GiveWay(t, roots.Pid())
	realtest.GiveWay(t, users.Pid())
	return []*bystander{watch(roots, "root's"), watch(users, "another user's")}
}

// recorderRun is a callreel that is measured.
type recorderRun struct {
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
	ended          chan error
	most           atomic.Uint64 // bytes of memory
}

func runRecorder(t testing.TB, args ...string) *recorderRun {
	t.Helper()
	r := &recorderRun{cmd: exec.Command(realtest.CallreelPath(t), args...), ended: make(chan error, 1)}
	r.cmd.Stdout, r.cmd.Stderr = &r.stdout, &r.stderr
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		err := r.cmd.Wait()
		close(done)
		r.ended <- err
	}()
	go r.watchMemory(done)
	return r
}

// watchMemory keeps the most memory that it had. What the kernel says of that at its end has our own in it, from before its exec.
func (r *recorderRun) watchMemory(done <-chan struct{}) {
	for {
		if s, err := process.StatusOf(r.cmd.Process.Pid, r.cmd.Process.Pid); err == nil {
			r.most.Store(max(r.most.Load(), s.VMPeak))
		}
		select {
		case <-done:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// wait waits for its end, which must be one of those that it has for all it may meet.
func (r *recorderRun) wait(t testing.TB) {
	t.Helper()
	select {
	case err := <-r.ended:
		if exit := new(exec.ExitError); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1 && exit.ExitCode() != 3) {
			t.Errorf("callreel %q: %v\n%s", r.cmd.Args, err, r.stderr.String())
		}
	case <-time.After(2 * time.Minute):
		_ = r.cmd.Process.Signal(syscall.SIGQUIT)
		<-r.ended
		t.Fatalf("callreel %q does not end\n%s", r.cmd.Args, r.stderr.String())
	}
	if s := r.stderr.String(); strings.Contains(s, "panic") || strings.Contains(s, "goroutine ") {
		t.Errorf("callreel %q: %s", r.cmd.Args, s)
	}
	if n := strings.Count(r.stderr.String(), "\n"); n > 40 {
		t.Errorf("callreel %q says %d lines:\n%s", r.cmd.Args, n, r.stderr.String())
	}
}

// memory is the most that it had in memory, in bytes, its rings included.
func (r *recorderRun) memory() int64 { return int64(r.most.Load()) }

// processor is how much processor time it has used.
func (r *recorderRun) processor() time.Duration {
	return r.cmd.ProcessState.UserTime() + r.cmd.ProcessState.SystemTime()
}

// A target names strangers as its children, in whose name it writes events, or as about to replace their programs.
func TestStrangersNamedInTheRingsAreLeftAlone(t *testing.T) {
	needLive(t, realtest.Superuser)
	for _, mode := range []string{"claim", "exec"} {
		t.Run(mode, func(t *testing.T) {
			others := bystanders(t)
			args := []string{mode, "1", "2"}
			for _, b := range others {
				args = append(args, strconv.Itoa(b.Pid()))
			}
			p := another(t, forger(t), args...)
			for try := range realtest.Repeats(t, 6) {
				file := filepath.Join(t.TempDir(), fmt.Sprint(try, ".reel"))
				r := runRecorder(t, "record", "-p", strconv.Itoa(p.Pid()), "--follow", "-f", "step", "-d", "200ms", "--json", "-o", file)
				r.wait(t)
				if r.stdout.Len() == 0 {
					t.Fatalf("try %d: %s", try, r.stderr.String())
				}
				s := realtest.Decode[summary](t, r.stdout.String())
				if s.Processes.Late != 0 || s.Processes.Executed != 0 || !s.TextVerified {
					t.Fatalf("%+v", s)
				}
				if rep := reportOf(t, file); mode == "claim" {
					for _, th := range rep.Threads {
						if th.Calls > 0 && th.Name == "forged" {
							goto recorded
						}
					}
					t.Fatalf("no forged event is recorded: %+v", rep.Threads)
				}
			recorded:
			}
			for _, b := range others {
				b.leftAlone(t)
			}
			wantUntouched(t, p.Pid())
			if p.Finish()["forged"] == 0 {
				t.Error("nothing was forged")
			}
		})
	}
}

// mostForged is the most memory that a recorder has, in bytes, whatever threads are forged: the ring, a slot of it for each thread
// ID there can be, the program itself, and what is known of as many threads as one registry takes: names, files' parts, sums. How
// many of them there are in a second is a matter of the machine's speed.
const mostForged = recorder.DefaultRingSize + ring.MaxTID*ring.SlotSize + 64<<20 + ring.RegistrySize*(2<<10)

// A target claims threads without number.
func TestForgedThreadsTakeBoundedMemoryAndTime(t *testing.T) {
	needLive(t, realtest.Superuser)
	for _, mode := range []string{"register", "drop", "write"} {
		for _, how := range [][]string{{"record", "-d", "500ms", "--json"}, {"record", "-d", "500ms", "--json", "--follow"}, {"record", "-d", "500ms", "--json", "--when", "step > 1h"}, {"top", "-d", "500ms"}} {
			t.Run(mode+" "+strings.Join(how, " "), func(t *testing.T) {
				p := another(t, forger(t), mode)
				args := append(slices.Clone(how), "-p", strconv.Itoa(p.Pid()), "-f", "step")
				if how[0] == "record" {
					args = append(args, "-o", filepath.Join(t.TempDir(), "x"))
				}
				r := runRecorder(t, args...)
				r.wait(t)
				wantUntouched(t, p.Pid())
				n := p.Finish()["forged"]
				t.Logf("%d threads, %d MB, %v", n, r.memory()>>20, r.processor())
				if r.memory() > mostForged {
					t.Errorf("%d MB", r.memory()>>20)
				}
				if n == 0 {
					t.Error("no thread was forged")
				}
			})
		}
	}
}

// Whatever stands in the rings, the recorder ends as it should, and touches nobody else.
func TestScribblersHarmOnlyThemselves(t *testing.T) {
	needLive(t, realtest.Superuser)
	others := bystanders(t)
	program := forger(t)
	for i, how := range [][]string{
		{"record", "-d", "300ms", "--json"},
		{"record", "-d", "300ms", "--json", "--follow"},
		{"record", "-d", "300ms", "--json", "--follow", "--lazy", "--lossless"},
		{"record", "-d", "300ms", "--json", "--min", "1us"},
		{"record", "-d", "300ms", "--json", "--args", "step"},
		{"record", "-d", "300ms", "--json", "--when", "step > 1us", "--when", "step == 7"},
		{"top", "-d", "300ms"},
	} {
		t.Run(strings.Join(how, " "), func(t *testing.T) {
			for seed := i % 2; seed < 6; seed += 2 { // each seed with some of them, and three with each
				p := another(t, program, "scribble", strconv.Itoa(seed))
				args := append(slices.Clone(how), "-p", strconv.Itoa(p.Pid()), "-f", "step")
				if how[0] == "record" {
					args = append(args, "-o", filepath.Join(t.TempDir(), "x"))
				}
				r := runRecorder(t, args...)
				for range 2 { // of any recording; it may be over
					time.Sleep(70 * time.Millisecond)
					realtest.Callreel(t, "set", "-p", strconv.Itoa(p.Pid()), "-x", "step")
					realtest.Callreel(t, "set", "-p", strconv.Itoa(p.Pid()), "--all")
				}
				r.wait(t)
				if r.memory() > 600<<20 {
					t.Errorf("seed %d: %d MB", seed, r.memory()>>20)
				}
				if t.Failed() {
					t.Fatalf("seed %d", seed)
				}
				_ = syscall.Kill(p.Pid(), syscall.SIGKILL) // it may have ended by what it has done
			}
		})
	}
	for _, b := range others {
		b.leftAlone(t)
	}
}

// A grandchild that is nobody's child any more is recorded, and what it starts, and left as it was.
func TestADaemonIsFollowed(t *testing.T) {
	needLive(t)
	program := forger(t)
	for _, how := range []string{"--eager", "--lazy"} {
		for _, replaced := range []bool{false, true} {
			p := realtest.Start(t, program, "daemon")
			r := realtest.StartRecording(t, append(pidFlag(p), "--follow", how, "-f", "step")...)
			p.Go()
			orphan, err := strconv.Atoi(strings.TrimPrefix(p.WaitLine("orphan "), "orphan "))
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
			if replaced {
				p.Go()
				p.WaitLine("replaced ")
			}
			s := stop(t, r)
			if !replaced {
				wantUntouched(t, orphan)
			}
			wantUntouched(t, p.Pid())
			if executed := map[bool]int{true: 1}[replaced]; s.Processes.Forked < 1 || s.Processes.Executed != executed || s.Processes.Unrecorded != 0 {
				t.Errorf("%s, replaced %v: %+v\n%s", how, replaced, s.Processes, r.Stderr())
			}
			calls := int64(0)
			for _, th := range reportOf(t, r.File).Threads {
				if th.TID == orphan {
					calls += th.Calls
				}
			}
			if calls == 0 {
				t.Errorf("%s: no call of the daemon's is in the reel", how)
			}
			p.Finish()
		}
	}
}
