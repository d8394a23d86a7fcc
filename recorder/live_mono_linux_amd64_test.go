package recorder_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

const monoProgram = `
using System;
static class HelloWorld
{
	static int Add(int a, int b) { return a + b; }
	static void Main()
	{
		int s = 0;
		for (int i = 0; i < 5; i++)
			s = Add(s, i);
		Console.WriteLine(s);
	}
}
`

// Mono makes a method's code when it is called for the first time: its trampoline compiles, and patches the call. How often
// that happens is what gdb counts; each time patches one call site.
func TestMonosTrampolinesAreCountedAsByGDB(t *testing.T) {
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
		"-ex", "break mono_magic_trampoline", "-ex", "ignore 1 1000000", "-ex", "run", "-ex", "info breakpoints", "--args", mono, "-O=-aot", exe)
	m := regexp.MustCompile(`already hit (\d+) times`).FindStringSubmatch(said)
	if m == nil {
		t.Fatalf("gdb counted nothing:\n%s", said)
	}
	want, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{"--eager", "--lazy"} {
		file := filepath.Join(dir, "mono"+mode+".reel")
		r := realtest.MustCallreel(t, "record", mode, "--lossless", "-o", file, "-m", "mono*", "--", mono, "-O=-aot", exe)
		if r.Stdout != "10\n" {
			t.Errorf("%s: the program said %q", mode, r.Stdout)
		}
		rep := reportOf(t, file)
		for name, calls := range map[string]int64{"mono_magic_trampoline": want, "mono_arch_patch_callsite": want} {
			if got := rep.Report.Calls(name); got != calls {
				t.Errorf("%s: %d calls of %s, gdb counted %d", mode, got, name, calls)
			}
		}
		if rep.Report.Calls("mini_method_compile") == 0 || rep.Report.Calls("mini_method_compile") > want {
			t.Errorf("%s: %d methods compiled in %d trampolines", mode, rep.Report.Calls("mini_method_compile"), want)
		}
	}
}
