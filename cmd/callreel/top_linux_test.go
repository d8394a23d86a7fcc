package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// byName are the functions' numbers.
func (o *topJSON) byName() map[string]topFunctionJSON {
	m := map[string]topFunctionJSON{}
	for _, f := range o.Functions {
		m[f.Name] = f
	}
	return m
}

// wantUntouched fails the test unless the process is as it was before top was there.
func wantUntouched(t *testing.T, pid int) {
	t.Helper()
	realtest.Must(t, realtest.TextAsFile(pid))
	if remains, err := realtest.RemainsIn(pid); err != nil || len(remains) > 0 {
		t.Errorf("left in the process: %v, %v", remains, err)
	}
}

// waitProbed waits until the process's calls are seen: its text is another, and nobody traces it any more.
func waitProbed(t *testing.T, pid int) {
	t.Helper()
	for start := time.Now(); time.Since(start) < time.Minute; time.Sleep(5 * time.Millisecond) {
		if realtest.TextAsFile(pid) != nil {
			waitStatus(t, pid, "TracerPid:\t0\n")
			return
		}
	}
	t.Fatalf("process %d has no probes after a minute", pid)
}

// waitStatus waits for a line in /proc/PID/status.
func waitStatus(t *testing.T, pid int, line string) {
	t.Helper()
	for start := time.Now(); time.Since(start) < time.Minute; time.Sleep(2 * time.Millisecond) {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		realtest.Must(t, err)
		if strings.Contains(string(status), "\n"+line) {
			return
		}
	}
	t.Fatalf("process %d has no %q in its status after a minute", pid, line)
}

// Calls counted and calls dropped are the calls made, also when top is stopped while they are made and its rings run full.
func TestTopOnceCountsEveryCall(t *testing.T) {
	t.Parallel()
	realtest.Need(t, realtest.LivePtrace, realtest.GCC)
	for _, c := range []struct {
		name  string
		ring  string
		drops bool
	}{{"at work", "64M", false}, {"stopped", "1M", true}} {
		t.Run(c.name, func(t *testing.T) {
			target := realtest.Start(t, realtest.Build(t, "count"), "300000", "40000")
			top := realtest.StartCommand(t, exec.Command(realtest.CallreelPath(t), "top", "-p", strconv.Itoa(target.Pid()),
				"-f", "leaf", "-f", "nest", "--once", "--json", "--interval", "1h", "--ring", c.ring))
			waitProbed(t, target.Pid())
			if c.drops {
				top.Signal(syscall.SIGSTOP)
				waitStatus(t, top.Pid(), "State:\tT")
			}
			target.Go()
			target.WaitLine("counted ")
			if c.drops {
				top.Signal(syscall.SIGCONT)
			}
			top.Signal(os.Interrupt) // the interval ends early
			if code := top.Wait(); code != exitDone || top.Stderr() != "" {
				t.Errorf("code %d, %s", code, top.Stderr())
			}
			wantUntouched(t, target.Pid())
			o := realtest.DecodeExactly[topJSON](t, strings.Join(top.Stdout(), "\n"))
			wantCounted(t, &o, target.Finish())
			if c.drops && o.Dropped == 0 {
				t.Error("nothing was dropped, though top was stopped with rings of 1M")
			}
			if !c.drops && len(o.Functions) != 2 || len(o.Threads) != 1 || o.Threads[0].TID != target.Pid() || o.Threads[0].Calls != o.Calls || o.Threads[0].Dropped != o.Dropped || o.PID != target.Pid() {
				t.Errorf("%+v", o)
			}
		})
	}
}

// wantCounted wants the numbers of count's functions to be those of the calls made.
func wantCounted(t *testing.T, o *topJSON, made realtest.Counts) {
	t.Helper()
	got := o.byName()
	if o.Calls+o.Dropped != uint64(made["leaf"]+made["nest"]) || got["leaf"].Calls+got["nest"].Calls != o.Calls ||
		o.Dropped == 0 && got["nest"].Calls != uint64(made["nest"]) {
		t.Errorf("%+v, the program made %v", o, made)
	}
	for _, f := range o.Functions {
		mean := f.SelfNS / max(f.Calls, 1)
		if want := float64(f.Calls) / o.Elapsed * 1000; f.PerSec < want*0.99-0.01 || f.PerSec > want*1.01+0.01 || f.Open != 0 || f.MaxNS < mean || f.P99NS.NS == 0 || f.P99NS.NS > f.MaxNS ||
			!strings.HasPrefix(f.Module, "count") {
			t.Errorf("%+v in %v ms", f, o.Elapsed)
		}
	}
}

// Objects follow one another without a gap: together they have all calls.
func TestTopObjectsHaveAllCalls(t *testing.T) {
	t.Parallel()
	realtest.Need(t, realtest.LivePtrace, realtest.GCC)
	target := realtest.Start(t, realtest.Build(t, "threads"), "fixed", "4", "20000")
	top := realtest.StartCommand(t, exec.Command(realtest.CallreelPath(t), "top", "-p", strconv.Itoa(target.Pid()), "-f", "counted_*", "--json", "--interval", "100ms"))
	top.WaitLine(`"pid":`)
	target.Go()
	target.WaitLine("counted ")
	top.Signal(syscall.SIGTERM)
	if code := top.Wait(); code != exitDone {
		t.Errorf("code %d, %s", code, top.Stderr())
	}
	wantUntouched(t, target.Pid())
	made := target.Finish()
	calls, dropped := map[string]uint64{}, uint64(0)
	for d := json.NewDecoder(strings.NewReader(strings.Join(top.Stdout(), "\n"))); ; {
		var o topJSON
		if err := d.Decode(&o); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		dropped += o.Dropped
		for _, f := range o.Functions {
			calls[f.Name] += f.Calls
		}
	}
	for name, n := range made {
		if strings.HasPrefix(name, "counted_") && (calls[name] > uint64(n) || dropped == 0 && calls[name] != uint64(n)) {
			t.Errorf("%d calls of %s, the program made %d; %d were dropped", calls[name], name, n, dropped)
		}
	}
}

func TestTopShowsThePageAndGivesTheTerminalBack(t *testing.T) {
	t.Parallel()
	realtest.Need(t, realtest.LivePtrace, realtest.GCC)
	target := realtest.Start(t, realtest.Build(t, "threads"), "steady", "1")
	tty := realtest.OnTerminal(t, 100, 24, exec.Command(realtest.CallreelPath(t), "top", "-p", strconv.Itoa(target.Pid()), "-f", "counted_*"))
	s := tty.WaitText("!counted_a")
	if !s.Alternate || !s.Hidden || !s.NoWrap || tty.Cooked() {
		t.Errorf("the terminal is not the page's: %+v, cooked %v", s, tty.Cooked())
	}
	for i, want := range []string{"callreel top  threads", " dropped", ">calls/s"} {
		if !strings.Contains(s.Lines()[i], want) {
			t.Errorf("no %q in line %d of\n%s", want, i, s)
		}
	}
	tty.Type("m")
	tty.WaitText(" >max")
	tty.Type("\x1b[D")
	tty.WaitText(" >p99")
	tty.Type("/TED_c")
	tty.Wait("filtered page", func(s realtest.Screen) bool {
		text := s.String()
		return strings.Contains(text, "filter: TED_c_") && strings.Contains(text, "!counted_c") && !strings.Contains(text, "!counted_a")
	})
	tty.Type("\r")
	tty.WaitText("/ filter  space pause")
	tty.Type("t\x1b") // threads, no filter
	s = tty.WaitText("work-0")
	if !strings.Contains(s.Lines()[2], "thread  name") {
		t.Errorf("threads:\n%s", s)
	}
	tty.Resize(60, 8)
	s = tty.Wait("page of eight lines", func(s realtest.Screen) bool {
		return strings.HasPrefix(s.Lines()[7], "q ends") && strings.HasPrefix(s.Lines()[0], "callreel top")
	})
	tty.Type("t \x1b[6~")
	tty.WaitText("paused")
	tty.Type(" a")
	tty.WaitText("since the beginning")
	tty.Resize(100, 24)
	tty.Type("q")
	if code := tty.Code(); code != exitDone {
		t.Errorf("code %d", code)
	}
	s = tty.WaitText("text verified: true")
	if s.Alternate || s.Hidden || s.NoWrap || !tty.Cooked() || len(s.Unknown) > 0 {
		t.Errorf("the terminal is not as it was: %+v, cooked %v", s, tty.Cooked())
	}
	wantUntouched(t, target.Pid())
}

func TestTopGivesTheTerminalBackWhateverEndsIt(t *testing.T) {
	t.Parallel()
	realtest.Need(t, realtest.LivePtrace, realtest.GCC)
	for _, c := range []struct {
		name string
		want string
		end  func(t *testing.T, tty *realtest.Terminal, target *realtest.Proc)
	}{
		{"Ctrl-C", "text verified: true", func(_ *testing.T, tty *realtest.Terminal, _ *realtest.Proc) { tty.Type("\x03") }},
		{"SIGTERM", "text verified: true", func(_ *testing.T, tty *realtest.Terminal, _ *realtest.Proc) { tty.Signal(syscall.SIGTERM) }},
		{"the end of the process", "the process has ended", func(_ *testing.T, _ *realtest.Terminal, target *realtest.Proc) { target.Signal(os.Kill) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			target := realtest.Start(t, realtest.Build(t, "count"), "1", "1")
			cmd := exec.Command(realtest.CallreelPath(t), "top", "-p", strconv.Itoa(target.Pid()), "-f", "leaf")
			cmd.Env = append(os.Environ(), "NO_COLOR=1")
			tty := realtest.OnTerminal(t, 80, 10, cmd)
			tty.WaitText("calls/s")
			c.end(t, tty, target)
			if code := tty.Code(); code != exitDone {
				t.Errorf("code %d", code)
			}
			s := tty.WaitText(c.want)
			if s.Alternate || s.Hidden || s.NoWrap || !tty.Cooked() {
				t.Errorf("the terminal is not as it was: %+v, cooked %v", s, tty.Cooked())
			}
			if strings.Contains(tty.Written(), "\x1b[3") {
				t.Errorf("colours, though there is NO_COLOR: %q", tty.Written())
			}
		})
	}
}

// Ctrl-Z gives the shell its terminal back, and fg the page.
func TestTopStopsAndGoesOn(t *testing.T) {
	t.Parallel()
	realtest.Need(t, realtest.LivePtrace, realtest.GCC)
	for _, how := range []string{"Ctrl-Z", "SIGTSTP"} {
		t.Run(how, func(t *testing.T) {
			target := realtest.Start(t, realtest.Build(t, "threads"), "steady", "1")
			script := `"$0" top -p ` + strconv.Itoa(target.Pid()) + ` -f 'counted_*'; echo "job $?"; read go; fg; echo "end $?"`
			tty := realtest.OnTerminal(t, 80, 10, exec.Command("sh", "-m", "-c", script, realtest.CallreelPath(t)))
			tty.WaitText("!counted_a")
			if how == "Ctrl-Z" {
				tty.Type("\x1a")
			} else {
				stopJobOf(t, tty.Pid())
			}
			s := tty.WaitText("job 148") // 128 and SIGTSTP
			if s.Alternate || s.Hidden || s.NoWrap || !tty.Cooked() {
				t.Errorf("the shell hasn't got its terminal back: %+v, cooked %v", s, tty.Cooked())
			}
			tty.Type("\n")
			tty.Wait("page again", func(s realtest.Screen) bool { return s.Alternate && strings.Contains(s.String(), "!counted_a") })
			tty.Type("q")
			s = tty.WaitText("end 0")
			if code := tty.Code(); code != 0 || s.Alternate || s.Hidden || s.NoWrap || !tty.Cooked() {
				t.Errorf("code %d; %+v, cooked %v", code, s, tty.Cooked())
			}
			wantUntouched(t, target.Pid())
		})
	}
}

// stopJobOf sends SIGTSTP to the one child of a process.
func stopJobOf(t *testing.T, pid int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	realtest.Must(t, err)
	child, err := strconv.Atoi(strings.TrimSpace(string(text)))
	realtest.Must(t, err)
	realtest.Must(t, syscall.Kill(child, syscall.SIGTSTP))
}

// Who reads along may go: the process is left all the same.
func TestTopLeavesTheProcessWhenNobodyReads(t *testing.T) {
	t.Parallel()
	realtest.Need(t, realtest.LivePtrace, realtest.GCC)
	target := realtest.Start(t, realtest.Build(t, "threads"), "steady", "1")
	cmd := exec.Command(realtest.CallreelPath(t), "top", "-p", strconv.Itoa(target.Pid()), "-f", "counted_*", "--interval", "100ms")
	out, err := cmd.StdoutPipe()
	realtest.Must(t, err)
	realtest.Must(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	realtest.Must(t, err)
	if line != topHead+"\n" {
		t.Errorf("%q", line)
	}
	realtest.Must(t, out.Close())
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	wantUntouched(t, target.Pid())
}

// Names are whatever a file says: a terminal must not obey them.
func TestTopIsSafeForATerminal(t *testing.T) {
	p := &topPage{f: &topFlags{pid: 1}, sort: "calls"}
	for _, name := range append(hostileNames, strings.Repeat("\x1b", 1<<20)) {
		p.snap = hostileSnapshot(name)
		p.name, p.notice, p.filter = name, name, ""
		for range 3 {
			for _, line := range p.lines(200, 20) {
				for _, sgr := range []string{sgrReverse, sgrBold, sgrRed, sgrOff} {
					line = strings.ReplaceAll(line, sgr, "")
				}
				checkTerminalSafe(t, line)
			}
			p.threads, p.off = !p.threads && !p.off, p.threads
		}
		p.threads, p.off = false, false
		p.filter = name
		p.lines(200, 20)
	}
}

// With a budget top says how it is kept, and what is off for it with what that was called before.
func TestTopSaysWhatIsOffForABudget(t *testing.T) {
	t.Parallel()
	realtest.Need(t, realtest.LivePtrace, realtest.GCC)
	target := realtest.Start(t, realtest.Build(t, "threads"), "steady", "1")
	top := realtest.StartCommand(t, exec.Command(realtest.CallreelPath(t), "top", "-p", strconv.Itoa(target.Pid()), "-f", "counted_*", "--budget", "0.1%", "--off", "--json", "--interval", "200ms"))
	for start := time.Now(); !strings.Contains(strings.Join(top.Stdout(), "\n"), `"off_ns":`); time.Sleep(50 * time.Millisecond) {
		if time.Since(start) > time.Minute {
			t.Fatal("after a minute nothing is off")
		}
	}
	top.Signal(os.Interrupt)
	if code := top.Wait(); code != exitDone {
		t.Errorf("code %d, %s", code, top.Stderr())
	}
	found := false
	for d := json.NewDecoder(strings.NewReader(strings.Join(top.Stdout(), "\n"))); ; {
		var o topJSON
		if err := d.Decode(&o); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if o.Budget == nil || o.Budget.Wanted != 0.001 || o.Budget.FunctionsOff != len(o.Off) {
			t.Errorf("%+v; %d functions are off", o.Budget, len(o.Off))
		}
		for _, f := range o.Off {
			found = true
			if !strings.HasPrefix(f.Name, "counted_") || !strings.HasPrefix(f.Module, "threads") || f.PerSec <= 0 {
				t.Errorf("off: %+v", f)
			}
		}
	}
	if !found {
		t.Error("what is off isn't listed")
	}
	wantUntouched(t, target.Pid())
}

// While redis is at work, top's numbers are those of its commands, and it answers each of them.
func TestTopOfRedis(t *testing.T) {
	t.Parallel()
	realtest.Need(t, realtest.LivePtrace, realtest.RedisTools)
	s := realtest.Redis(t)
	ctx, stop := context.WithCancel(context.Background())
	type answered struct {
		n   int64
		err error
	}
	load := make(chan answered, 1)
	go func() {
		n, err := s.Load(ctx, 4)
		load <- answered{n, err}
	}()
	r := realtest.MustCallreel(t, "top", "-p", strconv.Itoa(s.Pid()), "-m", "redis-server", "--once", "--json", "--sort", "self", "--interval", "300ms")
	stop()
	if a := <-load; a.err != nil || a.n == 0 {
		t.Errorf("%d replies, %v", a.n, a.err)
	}
	o := realtest.DecodeExactly[topJSON](t, r.Stdout)
	got := o.byName()
	if call := got["call"]; o.Dropped == 0 && (call.Calls == 0 || call.Calls < got["getCommand"].Calls+got["setCommand"].Calls || got["getCommand"].Calls == 0) {
		t.Errorf("%+v, %+v, %+v", call, got["getCommand"], got["setCommand"])
	}
	if o.Elapsed < 300 {
		t.Errorf("measured for %v ms", o.Elapsed)
	}
	self := ^uint64(0)
	for _, f := range o.Functions {
		if f.SelfNS > self || f.Module == "" {
			t.Errorf("%+v behind one of %d", f, self)
		}
		self = f.SelfNS
	}
	wantUntouched(t, s.Pid())
}

// A Go program's calls are its goroutines', whatever threads they are on.
func TestTopCountsCallsOfGoroutines(t *testing.T) {
	t.Parallel()
	realtest.Need(t, realtest.LivePtrace, realtest.GoTool)
	tool, err := realtest.GoTool.Find()
	realtest.Must(t, err)
	path := filepath.Join(t.TempDir(), "goroutines")
	build := exec.Command(tool, "build", "-o", path, "./testdata/targets/goroutines")
	build.Dir, build.Env = realtest.Root(), append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	target := realtest.Start(t, path, "rounds", "10")
	names := []string{"main.leaf", "main.deep", "main.thrower", "main.catcher", "main.spin", "main.marked"}
	args := []string{"top", "-p", strconv.Itoa(target.Pid()), "--once", "--json", "--interval", "1h", "-f", reel.Goexit}
	for _, name := range names {
		args = append(args, "-f", name)
	}
	top := realtest.StartCommand(t, exec.Command(realtest.CallreelPath(t), args...))
	waitProbed(t, target.Pid())
	target.Go()
	target.WaitLine("counted ")
	top.Signal(os.Interrupt)
	if code := top.Wait(); code != exitDone {
		t.Errorf("code %d, %s", code, top.Stderr())
	}
	made := target.Finish()
	o := realtest.DecodeExactly[topJSON](t, strings.Join(top.Stdout(), "\n"))
	got := o.byName()
	for _, name := range names {
		n, want := got[name].Calls, uint64(made[name])
		if n > want || o.Dropped == 0 && n != want || got[name].Open != 0 {
			t.Errorf("%s: %+v, the program made %d calls; %d were dropped", name, got[name], want, o.Dropped)
		}
	}
	// Goroutines that have ended are open nowhere, though the last of their calls never returns.
	if end := got[reel.Goexit]; end.Calls == 0 || end.Open != 0 {
		t.Errorf("%+v", end)
	}
	if o.Ignored != 0 {
		t.Errorf("%d calls ignored", o.Ignored)
	}
}
