package recorder_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// Add is called five times, or more often.
const monoProgram = `
using System;
static class HelloWorld
{
	static int Add(int a, int b) { return a + b; }
	static void Main(string[] more)
	{
		int s = 0;
		for (int i = 0; i < 5 + 400 * more.Length; i++)
			s = Add(s, i) % 1000;
		Console.WriteLine(s);
	}
}
`

// Mono makes a method's code when it is called for the first time: its trampoline compiles, and patches the call. How often
// that happens is what gdb counts, however often a method is called; which methods are compiled is what Mono tells.
func TestMonosTrampolinesAreCountedAsByGDB(t *testing.T) {
	t.Parallel()
	needLive(t, realtest.Mono, realtest.MonoC, realtest.GDB)
	dir := t.TempDir()
	source, exe := filepath.Join(dir, "HelloWorld.cs"), filepath.Join(dir, "HelloWorld.exe")
	if err := os.WriteFile(source, []byte(monoProgram), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(name string, args ...string) string {
		out, err := exec.Command(name, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	run("mcs", "-out:"+exe, source)
	mono, err := realtest.Mono.Find()
	if err != nil {
		t.Fatal(err)
	}
	said := run("gdb", "-q", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-ex", "handle SIGXCPU SIG35 SIG36 SIGPWR nostop noprint pass",
		"-ex", "break mono_magic_trampoline", "-ex", "ignore 1 1000000", "-ex", "run", "-ex", "info breakpoints", "--args", mono, "-O=-aot", exe, "more")
	m := regexp.MustCompile(`already hit (\d+) times`).FindStringSubmatch(said)
	if m == nil {
		t.Fatalf("gdb counted nothing:\n%s", said)
	}
	want, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	methods := int64(strings.Count(run(mono, "-v", "-O=-aot", exe, "more"), " emitted at "))
	for _, c := range []struct{ mode, more, said string }{{"--eager", "more", "810\n"}, {"--lazy", "and more", "610\n"}} {
		file := filepath.Join(dir, "mono"+c.mode+".reel")
		args := append([]string{"record", c.mode, "--lossless", "-o", file, "-m", "mono*", "--", mono, "-O=-aot", exe}, strings.Fields(c.more)...)
		r := realtest.MustCallreel(t, args...)
		if r.Stdout != c.said {
			t.Errorf("%s: the program said %q", c.mode, r.Stdout)
		}
		rep := reportOf(t, file)
		for name, calls := range map[string]int64{"mono_magic_trampoline": want, "mono_arch_patch_callsite": want, "mini_method_compile": methods} {
			if got := rep.Report.Calls(name); got != calls || calls == 0 {
				t.Errorf("%s: %d calls of %s, gdb or Mono itself counted %d", c.mode, got, name, calls)
			}
		}
		wantTrampolineChains(t, file, int(want))
	}
}

// wantTrampolineChains asserts that each magic trampoline has gone through its way, compiled if need be and then patched, once.
func wantTrampolineChains(t *testing.T, file string, want int) {
	t.Helper()
	f, err := reel.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	names := map[uint32]string{}
	f.Functions(func(id uint32, fn reel.Function) bool {
		names[id] = fn.Name
		return true
	})
	const trampoline, way, compile, patch = "mono_magic_trampoline", "common_call_trampoline", "mini_method_compile", "mono_arch_patch_callsite"
	chains, compiled := 0, 0
	for _, th := range f.Threads() {
		type open struct {
			name   string
			inside []string // what was called in a trampoline, but in no other within
		}
		stacks := map[int][]*open{}
		p := reel.Pairer{}
		p.OnEntry = func(c *reel.Call) {
			s := append(stacks[c.Stack][:min(c.Depth, len(stacks[c.Stack]))], &open{name: names[c.Func]})
			stacks[c.Stack] = s
			name := s[len(s)-1].name
			if name != way && name != compile && name != patch {
				return
			}
			for i := len(s) - 2; i >= 0; i-- {
				if strings.HasPrefix(s[i].name, "mono_") && strings.HasSuffix(s[i].name, "_trampoline") && s[i].name != way {
					s[i].inside = append(s[i].inside, name)
					return
				}
			}
		}
		p.OnCall = func(c *reel.Call) {
			s := stacks[c.Stack]
			if c.Depth >= len(s) || s[c.Depth].name != trampoline {
				return
			}
			// A method's compiling may need others, of class constructors for example.
			inside := s[c.Depth].inside
			if len(inside) < 2 || inside[0] != way || inside[len(inside)-1] != patch || slices.Contains(inside[1:len(inside)-1], patch) || slices.Contains(inside[1:], way) {
				t.Errorf("in %s of thread %d: %s", trampoline, th.TID, inside)
			}
			chains++
			if len(inside) > 2 { // else a method that was compiled for another call
				compiled++
			}
		}
		f.ReadThread(th.Key, func(events []reel.Event, lost bool) bool {
			p.Push(events)
			return true
		})
		p.Finish(f.LastTick())
	}
	if chains != want || compiled == 0 || compiled == chains {
		t.Errorf("%d trampolines that compiled and patched, %d that patched; want %d", compiled, chains-compiled, want)
	}
}
