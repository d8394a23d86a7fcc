package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/process"
)

// startStall starts callreel stall, with a store of its own.
func startStall(t *testing.T, pid int, args ...string) *realtest.Proc {
	t.Helper()
	cmd := exec.Command(realtest.CallreelPath(t), append([]string{"stall", "-p", pidText(pid), "--json"}, args...)...)
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+t.TempDir())
	return realtest.StartCommand(t, cmd)
}

// stallsOf decodes what callreel stall has reported so far.
func stallsOf(t *testing.T, stall *realtest.Proc) []stallObject {
	t.Helper()
	var out []stallObject
	for _, line := range stall.Stdout() {
		out = append(out, realtest.DecodeExactly[stallObject](t, line))
	}
	return out
}

// hasFrame says whether a function is in a stall's stack, shared by all samples or not.
func hasFrame(s *stallObject, function string) bool {
	for _, f := range s.Stack {
		if strings.HasPrefix(f.Function, function) {
			return true
		}
	}
	return false
}

// provoke makes a stall again and again until one is reported that is as wanted: the
// first may come before the thread's wait is known.
func provoke(t *testing.T, stall *realtest.Proc, again func(), want func(*stallObject) bool) *stallObject {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); {
		again()
		for until := time.Now().Add(time.Second); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
			stalls := stallsOf(t, stall)
			for k := range stalls {
				if want(&stalls[k]) {
					return &stalls[k]
				}
			}
		}
		if !stall.Alive() {
			break
		}
	}
	t.Fatalf("no such stall is reported:\n%s\n%s", strings.Join(stall.Stdout(), "\n"), stall.Stderr())
	return nil
}

// endStall ends it as Ctrl-C does.
func endStall(t *testing.T, stall *realtest.Proc) {
	t.Helper()
	stall.Signal(os.Interrupt)
	if code := stall.Wait(); code != exitDone || !saysNothing(stall.Stderr()) {
		t.Errorf("code %d, stderr %q", code, stall.Stderr())
	}
}

// saysNothing allows for what is said on machines without breakpoints.
func saysNothing(stderr string) bool {
	if _, err := realtest.Breakpoints.Find(); err != nil {
		return strings.Count(stderr, "\n") <= 1 && (stderr == "" || strings.Contains(stderr, "counts as getting on"))
	}
	return stderr == ""
}

// byOthers says whether the machine is to blame for a stall, as when ten programs share
// two processors. It is reported with reason.
func byOthers(s *stallObject) bool { return s.State == "starved" }

func TestStallNamesWhatKeptAThread(t *testing.T) {
	realtest.Need(t, realtest.GCC, realtest.LivePtrace)
	target := realtest.Build(t, "stall")
	for mode, state := range map[string]string{
		"lock": "lock", "condition": "lock", "pipe": "pipe", "socket": "network", "sleep": "sleep", "child": "child", "compute": "running",
		"timer": "events",
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			p := realtest.Start(t, target, mode)
			stall := startStall(t, p.Pid(), "--over", "100ms")
			began := time.Now()
			s := provoke(t, stall, func() { p.Signal(syscall.SIGUSR1) }, func(s *stallObject) bool {
				return (s.State == state || state == "running" && byOthers(s)) && hasFrame(s, "kept_by")
			})
			if s.TID != p.Pid() || s.DurationNS < int64(100*time.Millisecond) || s.Samples == 0 || s.StartNS < began.Add(-time.Minute).UnixNano() {
				t.Errorf("%+v", s)
			}
			outermost := s.Stack[len(s.Stack)-1]
			if !hasFrame(s, "main") || outermost.Samples+s.Partial != s.Samples || s.Stack[0].Samples > outermost.Samples {
				t.Errorf("%+v", s)
			}
			endStall(t, stall)
			p.Finish() // it has come to no harm
		})
	}
}

func TestStallObservesTheThreadThatWasAskedFor(t *testing.T) {
	realtest.Need(t, realtest.GCC, realtest.LivePtrace)
	p := realtest.Start(t, realtest.Build(t, "stall"), "worker")
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", p.Pid()))
	realtest.Must(t, err)
	worker := 0
	for _, task := range tasks {
		if tid, err := strconv.Atoi(filepath.Base(task)); err == nil && tid != p.Pid() {
			worker = tid
		}
	}
	stall := startStall(t, p.Pid(), "--over", "100ms", "--thread", strconv.Itoa(worker))
	main := startStall(t, p.Pid(), "--over", "2s", "--thread", "main")
	s := provoke(t, stall, func() { p.Signal(syscall.SIGUSR1) }, func(s *stallObject) bool { return hasFrame(s, "work") })
	if s.TID != worker || s.State != "running" && !byOthers(s) || hasFrame(s, "main") {
		t.Errorf("%+v", s)
	}
	endStall(t, stall)
	endStall(t, main)
	checkRests(t, main)
	p.Finish()
	if r := realtest.Callreel(t, "stall", "-p", pidText(os.Getpid()), "--thread", "1"); r.Code != exitFailed || !strings.Contains(r.Stderr, "thread 1") {
		t.Errorf("another process's thread: code %d, %q", r.Code, r.Stderr)
	}
}

func TestThreadThatRestsIsNoStall(t *testing.T) {
	realtest.Need(t, realtest.GCC, realtest.LivePtrace)
	target := realtest.Build(t, "stall")
	for _, mode := range []string{"reader", "lock"} {
		p := realtest.Start(t, target, mode)
		stall := startStall(t, p.Pid(), "--over", "300ms", "-d", "1500ms")
		if code := stall.Wait(); code != exitDone || !saysNothing(stall.Stderr()) {
			t.Errorf("%s: code %d, stderr %q", mode, code, stall.Stderr())
		}
		checkRests(t, stall)
		p.Finish()
	}
}

// checkRests wants a thread that only rested to have had no stall of its own.
func checkRests(t *testing.T, stall *realtest.Proc) {
	t.Helper()
	for _, s := range stallsOf(t, stall) {
		if !byOthers(&s) {
			t.Errorf("%+v", s)
		}
	}
}

func TestLoopInsideOfAHandlerIsNotTheUsualWait(t *testing.T) {
	realtest.Need(t, realtest.GCC, realtest.LivePtrace, realtest.Breakpoints)
	p := realtest.Start(t, realtest.Build(t, "stall"), "nested")
	stall := startStall(t, p.Pid(), "--over", "200ms")
	s := provoke(t, stall, func() { p.Signal(syscall.SIGUSR1) }, func(s *stallObject) bool { return hasFrame(s, "kept_by") })
	if s.DurationNS < int64(200*time.Millisecond) {
		t.Errorf("%+v", s)
	}
	endStall(t, stall)
	p.Finish()
}

// A stop would make epoll_wait begin its timeout anew, each time.
func TestStallDoesNotProlongWhatAThreadWaitsFor(t *testing.T) {
	realtest.Need(t, realtest.GCC, realtest.LivePtrace)
	p := realtest.Start(t, realtest.Build(t, "stall", "-O0"), "timer") // rbp is needed for the walk
	stall := startStall(t, p.Pid(), "--over", "100ms")
	s := provoke(t, stall, func() { p.Signal(syscall.SIGUSR1) }, func(s *stallObject) bool {
		return s.State == "events" && hasFrame(s, "kept_by")
	})
	if s.Ongoing || s.Samples == 0 {
		t.Errorf("%+v", s)
	}
	endStall(t, stall)
	p.Finish()
}

func TestProcessThatIsStoppedIsAStall(t *testing.T) {
	realtest.Need(t, realtest.GCC, realtest.LivePtrace)
	p := realtest.Start(t, realtest.Build(t, "stall"), "reader")
	stall := startStall(t, p.Pid(), "--over", "100ms")
	provoke(t, stall, func() {
		p.Signal(syscall.SIGSTOP)
		time.Sleep(300 * time.Millisecond)
		p.Signal(syscall.SIGCONT)
	}, func(s *stallObject) bool { return s.State == "stopped" && hasFrame(s, "turn") })
	endStall(t, stall)
	p.Finish()
}

func TestStallEndsWithTheProcess(t *testing.T) {
	realtest.Need(t, realtest.GCC, realtest.LivePtrace)
	p := realtest.Start(t, realtest.Build(t, "stall"), "sleep")
	stall := startStall(t, p.Pid(), "--over", "100ms")
	provoke(t, stall, func() { p.Signal(syscall.SIGUSR1) }, func(*stallObject) bool { return true }) // it has begun
	p.Finish()
	if code := stall.Wait(); code != exitDone || !saysNothing(stall.Stderr()) {
		t.Errorf("code %d, stderr %q", code, stall.Stderr())
	}
}

func TestThreadThatHasEndedIsNotObserved(t *testing.T) {
	realtest.Need(t, realtest.GCC, realtest.LivePtrace)
	p := realtest.Start(t, realtest.Build(t, "stall"), "leaderless")
	waitUntil(t, p, "the main thread ends", func() bool {
		text, err := os.ReadFile("/proc/" + pidText(p.Pid()) + "/status")
		return err == nil && strings.Contains(string(text), "State:\tZ")
	})
	if r := realtest.Callreel(t, "stall", "-p", pidText(p.Pid()), "-d", "1s"); r.Code != exitFailed || !strings.Contains(r.Stderr, "has ended") {
		t.Errorf("code %d, stdout %q, stderr %q", r.Code, r.Stdout, r.Stderr)
	}
	p.Finish()
}

func TestStallThatGoesOnIsReportedAtTheEnd(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace)
	p := realtest.Start(t, "/bin/sh", "-c", "echo ready; while :; do :; done")
	stall := startStall(t, p.Pid(), "--over", "100ms", "-d", "1s")
	if code := stall.Wait(); code != exitDone {
		t.Fatalf("code %d, stderr %q", code, stall.Stderr())
	}
	got := stallsOf(t, stall)
	if len(got) != 1 || !got[0].Ongoing || got[0].Samples == 0 {
		t.Errorf("%+v", got)
	}
}

func TestStallOfRedisNamesWhatItDoes(t *testing.T) {
	realtest.Need(t, realtest.RedisTools, realtest.LivePtrace)
	s := realtest.Redis(t, "--enable-debug-command", "yes", "--lua-time-limit", "400")
	stall := startStall(t, s.Pid(), "--over", "100ms")
	do := func(words ...string) func() {
		return func() {
			if _, err := s.Do(words...); err != nil {
				t.Error(err)
			}
		}
	}
	provoke(t, stall, do("DEBUG", "SLEEP", "0.3"), func(s *stallObject) bool { return s.State == "sleep" && hasFrame(s, "debugCommand") })
	keys := 100_000
	provoke(t, stall, func() {
		keys *= 2 // until it takes long enough
		do("DEBUG", "POPULATE", strconv.Itoa(min(keys, 3_000_000)), "key", "100")()
		do("SAVE")()
	}, func(s *stallObject) bool {
		return hasFrame(s, "rdbSaveRio") && hasFrame(s, "rdbSave") && hasFrame(s, "saveCommand")
	})
	provoke(t, stall, func() { endlessScript(t, s) }, func(s *stallObject) bool {
		return hasFrame(s, "luaCallFunction") && hasFrame(s, "lua_pcall") && hasFrame(s, "evalGenericCommand")
	})
	endStall(t, stall)
}

// endlessScript runs a script until it is so slow that redis lets it be killed.
func endlessScript(t *testing.T, s *realtest.RedisServer) {
	t.Helper()
	ended := make(chan error, 1)
	go func() {
		_, err := s.Do("EVAL", "while true do end", "0")
		ended <- err
	}()
	for {
		select {
		case err := <-ended:
			if err == nil || !strings.Contains(err.Error(), "SCRIPT KILL") {
				t.Errorf("the script was not killed: %v", err)
			}
			return
		case <-time.After(50 * time.Millisecond):
			_, _ = s.Do("SCRIPT", "KILL") // an error before the script runs, and once it has ended
		}
	}
}

func TestIdleAndEvenlyBusyRedisIsNoStall(t *testing.T) {
	realtest.Need(t, realtest.RedisTools, realtest.LivePtrace)
	s := realtest.Redis(t)
	stall := startStall(t, s.Pid(), "--over", "600ms")
	time.Sleep(700 * time.Millisecond)
	ctx, stop := context.WithTimeout(context.Background(), 1500*time.Millisecond)
	defer stop()
	if _, err := s.Bench(ctx, "-t", "set,get", "-n", "100000000", "-P", "50", "-q"); err != nil {
		t.Error(err)
	}
	endStall(t, stall)
	checkRests(t, stall)
}

// takeBreakpoints takes all that the processor has for a thread.
func takeBreakpoints(t *testing.T, pid int) {
	t.Helper()
	p, err := process.Open(pid)
	realtest.Must(t, err)
	t.Cleanup(func() { realtest.Must(t, p.Close()) })
	for range 16 {
		w, err := p.Passage(pid, 0x1000, 1)
		if err != nil {
			return
		}
		t.Cleanup(func() { realtest.Must(t, w.Close()) })
	}
	t.Skip("this machine has more than 16 breakpoints")
}

func TestStallWithoutBreakpointsSaysSoAndMakesDo(t *testing.T) {
	realtest.Need(t, realtest.GCC, realtest.LivePtrace)
	p := realtest.Start(t, realtest.Build(t, "stall"), "lock")
	takeBreakpoints(t, p.Pid())
	stall := startStall(t, p.Pid(), "--over", "100ms")
	// A stall may be seen before the wait is known that a breakpoint is wanted for.
	for began := time.Now(); !strings.Contains(stall.Stderr(), "counts as getting on") && time.Since(began) < time.Minute; {
		time.Sleep(time.Millisecond)
	}
	provoke(t, stall, func() { p.Signal(syscall.SIGUSR1) }, func(s *stallObject) bool { return s.State == "lock" && hasFrame(s, "kept_by") })
	stall.Signal(os.Interrupt)
	if code := stall.Wait(); code != exitDone || strings.Count(stall.Stderr(), "counts as getting on") != 1 {
		t.Errorf("code %d, stderr %q", code, stall.Stderr())
	}
	p.Finish()
}

const sleepingGo = `package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

func main() {
	fmt.Println("ready")
	go func() {
		for {
			time.Sleep(10 * time.Millisecond)
		}
	}()
	io.Copy(io.Discard, os.Stdin)
	fmt.Println("go n=0 ok")
}
`

func TestGoThreadThatHasNoGoroutineIsNoStall(t *testing.T) {
	realtest.Need(t, realtest.GoTool, realtest.LivePtrace)
	dir := t.TempDir()
	source := write(t, dir, "main.go", []byte(sleepingGo))
	program := filepath.Join(dir, "program")
	if out, err := exec.Command("go", "build", "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	p := realtest.Start(t, program)
	stall := startStall(t, p.Pid(), "--over", "400ms", "-d", "2s")
	if code := stall.Wait(); code != exitDone {
		t.Errorf("code %d, stderr %q", code, stall.Stderr())
	}
	checkRests(t, stall)
	p.Finish()
}
