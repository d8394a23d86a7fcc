package sampler_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/sampler"
	"github.com/callreel/callreel/unwind"
)

// needEvents skips tests where the kernel's clock is not to be had.
func needEvents(t *testing.T, caps ...realtest.Capability) {
	t.Helper()
	realtest.Need(t, append(caps, realtest.LivePtrace, realtest.PerfEvents)...)
}

// sample samples to the end.
func sample(t *testing.T, o sampler.SampleOptions) *sampler.Profile {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	p, err := sampler.Sample(ctx, o)
	return closing(t, p, err)
}

// sampleUntil samples a running process until enough was seen: how long that takes is
// up to the machine.
func sampleUntil(t *testing.T, o sampler.SampleOptions, enough func(sampler.Progress) bool) *sampler.Profile {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), 3*time.Minute)
	defer stop()
	o.Progress = func(now sampler.Progress) {
		if enough(now) {
			stop()
		}
	}
	p, err := sampler.Sample(ctx, o)
	return closing(t, p, err)
}

// samples is when there are so many.
func samples(n uint64) func(sampler.Progress) bool {
	return func(now sampler.Progress) bool { return now.Samples >= n }
}

// sampleCommand samples a command and checks its exit code.
func sampleCommand(t *testing.T, code int, o sampler.SampleOptions) *sampler.Profile {
	t.Helper()
	p := sample(t, o)
	if got, err := p.Wait(context.Background()); err != nil || got != code {
		t.Errorf("exit code %d, %v; want %d", got, err, code)
	}
	return p
}

// functions are the names on a stack, innermost first.
func functions(p *sampler.Profile, s *sampler.ProfileStack) []string {
	var names sampler.TableNames
	var out []string
	for _, at := range s.Frames {
		l := &p.Locations[at]
		name := "?"
		if l.Image != nil {
			for _, c := range names.Calls(l.Image, l.Link) {
				name = c.Function
			}
		}
		out = append(out, name)
	}
	return out
}

// countIf adds up the samples of stacks that satisfy a condition on their names.
func countIf(p *sampler.Profile, yes func(s *sampler.ProfileStack, names []string) bool) (n uint64) {
	for k := range p.Stacks {
		if yes(&p.Stacks[k], functions(p, &p.Stacks[k])) {
			n += p.Stacks[k].Count
		}
	}
	return n
}

func has(name string) func(*sampler.ProfileStack, []string) bool {
	return func(_ *sampler.ProfileStack, names []string) bool {
		for _, n := range names {
			if n == name {
				return true
			}
		}
		return false
	}
}

func countAll(p *sampler.Profile) uint64 {
	return countIf(p, func(*sampler.ProfileStack, []string) bool { return true })
}

// checkShares wants f and g to have two thirds and one third of the samples they share.
func checkShares(t *testing.T, p *sampler.Profile) {
	t.Helper()
	f, g := float64(countIf(p, has("shares_f"))), float64(countIf(p, has("shares_g")))
	if f+g < 100 {
		t.Fatalf("%v samples of the work, of %d", f+g, p.Samples)
	}
	if share := 100 * f / (f + g); math.Abs(share-200.0/3) > 5 {
		t.Errorf("shares_f has %.1f %% of %v samples, want 66.7", share, f+g)
	}
	if all := countAll(p); all != p.Samples {
		t.Errorf("stacks were seen %d times, in %d samples", all, p.Samples)
	}
}

func TestSharesOfFunctionsAreTheirShareOfTime(t *testing.T) {
	needEvents(t, realtest.GCC)
	for _, flags := range [][]string{nil, {"-fomit-frame-pointer", "-static"}, {"-O0"}} {
		t.Run(strings.Join(flags, ""), func(t *testing.T) {
			p := sampleCommand(t, 7, sampler.SampleOptions{
				Command: []string{realtest.Build(t, "shares", flags...), "1"}, Rate: 499,
			})
			checkShares(t, p)
			// The clock is the thread's own time, of which there was one second.
			if n := p.Samples + p.Lost; n < 250 || n > 1000 {
				t.Errorf("%d samples in a second at 499 a second", n)
			}
			if p.Incomplete*50 > p.Samples {
				t.Errorf("%d of %d stacks are not whole", p.Incomplete, p.Samples)
			}
			if !p.Ended || p.Threads != 1 || p.OwnCPU <= 0 || p.Wall || p.Rate != 499 {
				t.Errorf("%+v", *p)
			}
		})
	}
}

func TestRunningProcessIsSampledForATime(t *testing.T) {
	needEvents(t, realtest.GCC)
	target := realtest.Start(t, realtest.Build(t, "shares"))
	var seen sampler.Progress
	// Timers of emulated machines come late: more of them would count as one.
	p := sampleUntil(t, sampler.SampleOptions{PID: target.Pid(), Rate: 199}, func(now sampler.Progress) bool {
		seen = now
		return now.Samples >= 300
	})
	checkShares(t, p)
	if p.Ended || seen.Threads != 1 || seen.Elapsed <= 0 || p.Duration < seen.Elapsed {
		t.Errorf("ended %v, %v, %+v", p.Ended, p.Duration, seen)
	}
	if p.CPU <= 0 || p.Unseen*4 > p.CPU {
		t.Errorf("of %v it has run samples do not stand for %v", p.CPU, p.Unseen)
	}
	began := time.Now()
	p = sample(t, sampler.SampleOptions{PID: target.Pid(), Duration: 300 * time.Millisecond})
	if p.Ended || p.Duration < 300*time.Millisecond || p.Duration > time.Since(began) {
		t.Errorf("ended %v, %v", p.Ended, p.Duration)
	}
	target.Finish() // it has come to no harm
}

// A thread is sampled each time that it has run for so long, and not before.
func TestProcessorTimeThatNoSampleStandsForIsTold(t *testing.T) {
	needEvents(t, realtest.GCC)
	target := realtest.Start(t, realtest.Build(t, "shares"))
	p := sampleUntil(t, sampler.SampleOptions{PID: target.Pid(), Rate: 1}, func(now sampler.Progress) bool { return now.Elapsed > 300*time.Millisecond })
	if p.Samples != 0 || p.Unseen != p.CPU || p.CPU > p.Duration {
		t.Errorf("%d samples, %v of %v unseen in %v", p.Samples, p.Unseen, p.CPU, p.Duration)
	}
	target.Finish()
}

func TestRecursionIsSeenInItsDepth(t *testing.T) {
	needEvents(t, realtest.GCC)
	p := sampleCommand(t, 7, sampler.SampleOptions{
		Command: []string{realtest.Build(t, "shares"), "deep", "100"}, Rate: 499,
	})
	checkShares(t, p)
	deep := countIf(p, func(s *sampler.ProfileStack, names []string) bool {
		n := 0
		for _, name := range names {
			if name == "shares_down" {
				n++
			}
		}
		return n == 100 && s.End == unwind.Complete
	})
	if work := countIf(p, has("shares_work")); deep*100 < work*98 {
		t.Errorf("%d of %d samples of the work are 100 deep", deep, work)
	}
}

func TestStackThatIsLargerThanWhatIsKeptSaysSo(t *testing.T) {
	needEvents(t, realtest.GCC)
	p := sampleCommand(t, 7, sampler.SampleOptions{
		// What has frame pointers is walked by the kernel, as far as it goes.
		Command: []string{realtest.Build(t, "shares", "-fomit-frame-pointer"), "deep", "100"}, Rate: 499, StackSize: 1024,
	})
	cut := countIf(p, func(s *sampler.ProfileStack, names []string) bool {
		return s.End == unwind.Unreadable && has("shares_down")(s, names) && !has("main")(s, names)
	})
	if cut*10 < p.Samples*9 || p.Incomplete < cut {
		t.Errorf("%d of %d samples are cut short, %d said so", cut, p.Samples, p.Incomplete)
	}
}

func TestDeepCXXWithoutFramePointersIsWalkedWhole(t *testing.T) {
	needEvents(t, realtest.GXX)
	target := realtest.Start(t, realtest.Build(t, "deep", "-fomit-frame-pointer"), "busy")
	p := sampleUntil(t, sampler.SampleOptions{PID: target.Pid(), Rate: 999}, samples(300))
	whole := countIf(p, func(s *sampler.ProfileStack, names []string) bool {
		levels := 0
		for _, name := range names {
			if strings.HasPrefix(name, "deep::level<") {
				levels++
			}
		}
		return levels == 60 && s.End == unwind.Complete
	})
	if whole*100 < p.Samples*99 {
		t.Errorf("%d of %d samples have all 60 levels", whole, p.Samples)
	}
	target.Finish()
}

func TestThreadsOldAndNewAreSampled(t *testing.T) {
	needEvents(t, realtest.GCC)
	binary := realtest.Build(t, "threads")
	t.Run("that are there", func(t *testing.T) {
		target := realtest.Start(t, binary, "steady", "5")
		p := sampleUntil(t, sampler.SampleOptions{PID: target.Pid(), Rate: 199}, func(now sampler.Progress) bool { return now.Threads >= 5 })
		if p.Threads < 5 || p.Threads > 6 {
			t.Errorf("%d threads, want 5 that work", p.Threads)
		}
		target.Finish()
	})
	t.Run("that start later", func(t *testing.T) {
		target := realtest.Start(t, binary, "fixed", "4", "2000000")
		var told bool
		p := sampleUntil(t, sampler.SampleOptions{PID: target.Pid(), Rate: 499}, func(now sampler.Progress) bool {
			if !told { // events are on
				told = true
				target.Go()
			}
			return now.Threads >= 4 && now.Samples >= 40
		})
		work := countIf(p, has("thread_main"))
		if p.Threads < 4 || work == 0 || p.Incomplete*20 > p.Samples {
			t.Errorf("%d threads, %d samples of %d of their work, %d not whole", p.Threads, work, p.Samples, p.Incomplete)
		}
		target.Finish()
	})
}

func TestChildrenAreSampledUnderTheirNames(t *testing.T) {
	needEvents(t, realtest.GCC)
	p := sampleCommand(t, 7, sampler.SampleOptions{Command: []string{realtest.Build(t, "shares"), "fork"}, Rate: 499})
	checkShares(t, p)
	names := map[string]uint64{}
	for k := range p.Stacks {
		if has("shares_work")(nil, functions(p, &p.Stacks[k])) {
			names[p.Stacks[k].Process] += p.Stacks[k].Count
		}
	}
	total := uint64(0)
	for _, n := range names {
		total += n
	}
	if p.Threads < 3 || total < 300 { // one and a half seconds of work
		t.Errorf("%d threads, samples %v", p.Threads, names)
	}
	// One file, one place, whatever process it was seen in.
	seen := map[string]bool{}
	for _, l := range p.Locations {
		if l.Image == nil {
			continue
		}
		key := fmt.Sprintf("%s %#x", l.Image.Path, l.Link)
		if seen[key] {
			t.Errorf("%s is there twice", key)
		}
		seen[key] = true
	}
}

func TestCommandThatEndsAtOnceIsStillNamed(t *testing.T) {
	needEvents(t, realtest.GCC)
	binary := realtest.Build(t, "shares")
	for range 3 {
		p := sampleCommand(t, 7, sampler.SampleOptions{Command: []string{binary, "0.02"}, Rate: 1999})
		named, whole := countIf(p, has("shares_work")), p.Samples-p.Incomplete
		least := uint64(9)
		if runtime.GOARCH == "arm64" { // emulated: the time in which a program is begun and ended is a larger part
			least = 8
		}
		if named < 10 || whole*10 < p.Samples*least {
			t.Errorf("%d samples, %d whole, %d of the work", p.Samples, whole, named)
		}
	}
}

func TestSamplingEndsWithTheProcess(t *testing.T) {
	realtest.Need(t, realtest.GCC, realtest.LivePtrace)
	for _, wall := range []bool{false, true} {
		if _, err := realtest.PerfEvents.Find(); !wall && err != nil {
			continue
		}
		pid := startShell(t, realtest.Build(t, "shares")).Pid()
		pid = realtest.Children(pid)[0]
		var once sync.Once
		p := sample(t, sampler.SampleOptions{PID: pid, Wall: wall, Duration: 50 * time.Second, Progress: func(now sampler.Progress) {
			if now.Samples > 0 {
				once.Do(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
			}
		}})
		if !p.Ended || p.Samples == 0 || p.Duration > 40*time.Second {
			t.Errorf("wall %v: ended %v after %v, %d samples", wall, p.Ended, p.Duration, p.Samples)
		}
	}
}

func TestContextEndsSamplingWithoutError(t *testing.T) {
	realtest.Need(t, realtest.GCC, realtest.LivePtrace)
	pid := start(t, realtest.Build(t, "shares"))
	p := sampleUntil(t, sampler.SampleOptions{PID: pid, Wall: true}, samples(3))
	if p.Ended || p.Samples < 3 {
		t.Errorf("ended %v, %d samples", p.Ended, p.Samples)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := sampler.Sample(ctx, sampler.SampleOptions{PID: pid, Wall: true}); err != nil {
		t.Error(err)
	}
}

func TestCommandsThatCannotBeSampledAreRefused(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace)
	_, err := sampler.Sample(context.Background(), sampler.SampleOptions{Command: []string{"/nonexistent/program"}})
	if !errors.Is(err, process.ErrCommandNotFound) {
		t.Errorf("%v", err)
	}
	_, err = sampler.Sample(context.Background(), sampler.SampleOptions{PID: os.Getpid()})
	if !errors.Is(err, process.ErrSelf) {
		t.Errorf("%v", err)
	}
}

func TestStaticGoProgramIsSampledFromItsFirstInstruction(t *testing.T) {
	needEvents(t, realtest.GoTool)
	dir := t.TempDir()
	const source = `package main
func work(n int) (s int) { for i := 0; i < n; i++ { s += i * i ^ s }; return }
func main() { s := 0; for i := 0; i < 40; i++ { s += work(10000000) }; println(s) }
`
	if err := os.WriteFile(dir+"/main.go", []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-gcflags=-l", "-o", "prog", "main.go")
	build.Dir, build.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p := sampleCommand(t, 0, sampler.SampleOptions{Command: []string{dir + "/prog"}, Rate: 499})
	if n := countIf(p, has("main.work")); n < 20 || n*2 < p.Samples {
		t.Errorf("%d of %d samples are of the work", n, p.Samples)
	}
}
