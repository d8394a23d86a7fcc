package crash

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
)

// crashed runs a program until it has crashed, and opens its core.
func crashed(t *testing.T, program string, arguments ...string) (*Report, string) {
	t.Helper()
	core := coreFile(t, program, arguments...)
	return opened(t, core), core
}

// coreFile runs a program until it has crashed.
func coreFile(t *testing.T, program string, arguments ...string) string {
	t.Helper()
	needCores(t)
	c := exec.Command("sh", append([]string{"-c", `ulimit -c unlimited; "$@"`, "sh", program}, arguments...)...)
	c.Dir = t.TempDir()
	out, _ := c.CombinedOutput() // it crashes
	list, _ := filepath.Glob(filepath.Join(c.Dir, "core*"))
	if len(list) != 1 {
		t.Fatalf("%d cores: %s", len(list), out)
	}
	return list[0]
}

// gdbFrame is a line that the command frames of gdbStack prints for a frame.
var gdbFrame = regexp.MustCompile(`(?m)^\$\d+ = (0x[0-9a-f]+)`)

// gdbStack is where gdb finds the frames of the crashed thread.
func gdbStack(t *testing.T, program, core string) (list []string, cut bool) {
	t.Helper()
	out, err := exec.Command("gdb", "-batch", "-nx", "-iex", "set debuginfod enabled off", "-ex", "set backtrace past-main on",
		"-ex", "frame apply 500 -q print/x (unsigned long)$pc", program, core).Output()
	if err != nil {
		t.Fatalf("gdb: %v\n%s", err, out)
	}
	for _, m := range gdbFrame.FindAllStringSubmatch(string(out), -1) {
		list = append(list, m[1])
	}
	return slices.Compact(list), len(list) == 500 // inlined calls stand where they were inlined
}

func TestCoresHaveTheStacksThatGDBFinds(t *testing.T) {
	realtest.Need(t, realtest.GCC, realtest.GDB)
	program := filepath.Join(t.TempDir(), "ways")
	if out, err := exec.Command("gcc", "-g", "-O2", "-pthread", "-fno-stack-protector", "-o", program, filepath.Join("testdata", "ways.c")).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	for _, way := range []struct{ name, stack string }{
		{"null", "reads between null main"}, {"nowhere", " nowhere main"}, {"overflow", "overflow overflow overflow"}, {"handler", "reads handles"},
		{"vdso", "gettimeofday vdso main"}, {"thread", "reads between null starts"},
	} {
		t.Run(way.name, func(t *testing.T) {
			r, core := crashed(t, program, way.name)
			if r.Process.Path != program || r.Process.Name != "ways" {
				t.Errorf("the process is %+v", r.Process)
			}
			var names, places []string
			for _, f := range r.Threads[0].Frames {
				name := strings.TrimPrefix(strings.TrimPrefix(f.Function, "__vdso_"), "__kernel_") // the latter on arm64
				names, places = append(names, name), append(places, fmt.Sprintf("%#x", f.Address))
			}
			if got := strings.Join(names, " ") + " "; !strings.HasPrefix(got, way.stack+" ") || r.Threads[0].End != "complete" {
				t.Errorf("the stack is %.200s (%v), want %v", got, r.Threads[0].EndSays, way.stack)
			}
			if way.name == "vdso" && runtime.GOARCH == "arm64" {
				return // there gdb 13 takes a signed return address for one, and leaves main out
			}
			want, cut := gdbStack(t, program, core)
			got := slices.Compact(places)
			if cut {
				got = got[:min(len(got), len(want))]
			}
			if !slices.Equal(got, want) {
				t.Errorf("frames are at %.500s, gdb's at %.500s", got, want)
			}
			if want := map[string]int{"thread": 102}[way.name]; want != 0 && len(r.Threads) != want {
				t.Errorf("%d threads, want %d", len(r.Threads), want)
			}
		})
	}
	t.Run("smashed", func(t *testing.T) {
		r, _ := crashed(t, program, "smashed")
		if runtime.GOARCH == "arm64" { // which gets to where no code is
			if th := r.Threads[0]; th.Frames[0].Address != 0x414141414141 || th.Frames[0].Function != "" {
				t.Errorf("the stack begins with %+v", th.Frames[0])
			}
			return
		}
		if th := r.Threads[0]; th.Frames[0].Function != "smashed" || th.End != "bad-return-address" || !strings.Contains(th.EndSays, "0x4141414141414141") {
			t.Errorf("the stack begins with %+v and ends %v: %v", th.Frames[0], th.End, th.EndSays)
		}
	})
}

func TestCoreOfARunningProcessIsOfNoCrash(t *testing.T) {
	realtest.Need(t, realtest.GDB, realtest.LivePtrace)
	sleeper := exec.Command("sleep", "600")
	realtest.Must(t, sleeper.Start())
	defer func() { _, _ = sleeper.Process.Kill(), sleeper.Wait() }()
	dir := t.TempDir()
	if out, err := exec.Command("gcore", "-o", filepath.Join(dir, "core"), strconv.Itoa(sleeper.Process.Pid)).CombinedOutput(); err != nil {
		t.Fatalf("gcore: %v\n%s", err, out)
	}
	r := opened(t, filepath.Join(dir, fmt.Sprintf("core.%d", sleeper.Process.Pid)))
	if len(r.Threads) != 1 || r.Threads[0].Crashed || len(r.Threads[0].Frames) < 2 || r.Threads[0].End != "complete" || r.Reason.Signal != "" {
		t.Errorf("the reason is %+v, threads are %+v", r.Reason, r.Threads)
	}
}

// The first pages of images are in a core, and tell which files it is of.
func TestCoreTakesNoOtherFileForItsProgram(t *testing.T) {
	realtest.Need(t, realtest.GCC)
	program := filepath.Join(t.TempDir(), "ways")
	if out, err := exec.Command("gcc", "-g", "-O2", "-pthread", "-o", program, filepath.Join("testdata", "ways.c")).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	core := coreFile(t, program, "null")
	im, err := object.Open(program)
	realtest.Must(t, err)
	id := im.ID()
	realtest.Must(t, im.Close())
	moved := filepath.Join(t.TempDir(), "ways")
	realtest.Must(t, os.Rename(program, moved))
	other, err := os.ReadFile("/bin/true")
	realtest.Must(t, err)
	for _, there := range []bool{false, true} {
		if there {
			realtest.Must(t, os.WriteFile(program, other, 0o700))
		}
		r := opened(t, core)
		if missing := r.Missing(); len(missing) != 1 || missing[0].ID != id || r.Threads[0].Frames[0].Function != "" {
			t.Errorf("with another file there: %v, missing is %+v, the first frame %+v", there, missing, r.Threads[0].Frames[0])
		}
		r = opened(t, core, filepath.Dir(moved))
		if missing := r.Missing(); len(missing) != 0 || r.Threads[0].Frames[0].Function != "reads" {
			t.Errorf("with the program in a debug folder missing is %+v, the first frame %+v", missing, r.Threads[0].Frames[0])
		}
	}
}

// The runtime turns a fault into a panic, and that into a signal; the stack leads through both to
// the code at fault.
func TestCoreOfGoProgramLeadsToTheFault(t *testing.T) {
	realtest.Need(t, realtest.GoTool)
	dir := t.TempDir()
	source, err := os.ReadFile(filepath.Join("testdata", "ways.go.txt"))
	realtest.Must(t, err)
	realtest.Must(t, os.WriteFile(filepath.Join(dir, "ways.go"), source, 0o600))
	for _, flags := range []string{"", "-s -w"} {
		c := exec.Command("go", "build", "-ldflags", flags, "-o", "ways", "ways.go")
		c.Dir, c.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("go build: %v\n%s", err, out)
		}
		r, _ := crashed(t, filepath.Join(dir, "ways"))
		th, signals := r.Threads[0], 0
		var names []string
		for _, f := range th.Frames {
			if names = append(names, f.Function); f.Signal {
				signals++
			}
		}
		got := strings.Join(names, " ")
		const want = "runtime.sigpanic main.reads main.between main.main.func1 runtime.goexit"
		if !strings.Contains(got, want) || signals != 1 || th.End != "complete" {
			t.Errorf("with %q the stack is %v (%v), %d signals; want %v", flags, got, th.EndSays, signals, want)
		}
		if k := slices.Index(names, "main.reads"); k >= 0 && th.Frames[k].Line != 6 {
			t.Errorf("with %q the fault is at line %d", flags, th.Frames[k].Line)
		}
	}
}
