package sampler_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/sampler"
	"github.com/callreel/callreel/unwind"
)

// start starts a target, which ends with the test.
func start(t testing.TB, path string, args ...string) (pid int) {
	t.Helper()
	p := startShell(t, path, args...)
	children := realtest.Children(p.Pid())
	if len(children) != 1 {
		t.Fatalf("the shell has %d children", len(children))
	}
	t.Cleanup(func() { p.Finish() })
	return children[0]
}

// gdbFrame is a frame as gdb has it, without those that it makes up for inlined calls
// and tail calls.
type gdbFrame struct {
	pc     uint64
	signal bool
	name   string
}

const gdbScript = `
import gdb
for t in gdb.selected_inferior().threads():
    t.switch()
    f = gdb.newest_frame()
    while f is not None:
        if f.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
            print("FRAME %d %#x %d %s" % (t.ptid[1], f.pc(), f.type() == gdb.SIGTRAMP_FRAME, f.name() or ""))
        f = f.older()
`

// gdbCore writes a core of the process.
func gdbCore(t testing.TB, pid int) string {
	t.Helper()
	realtest.Need(t, realtest.GDB)
	path := filepath.Join(t.TempDir(), "core")
	runGDB(t, "-p", strconv.Itoa(pid), "-ex", "generate-core-file "+path)
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// gdbStacks are the stacks of a core, by thread, as gdb sees them.
func gdbStacks(t testing.TB, program, core string) map[int][]gdbFrame {
	t.Helper()
	script := filepath.Join(t.TempDir(), "frames.py")
	if err := os.WriteFile(script, []byte(gdbScript), 0o600); err != nil {
		t.Fatal(err)
	}
	out := map[int][]gdbFrame{}
	said := runGDB(t, "-ex", "set backtrace past-main on", "-x", script, program, core)
	for line := range strings.Lines(said) {
		var tid, signal int
		var f gdbFrame
		words := strings.SplitN(strings.TrimSpace(line), " ", 5)
		if words[0] != "FRAME" {
			continue
		}
		if _, err := fmt.Sscan(strings.Join(words[1:4], " "), &tid, &f.pc, &signal); err != nil {
			t.Fatalf("gdb: %q: %v", line, err)
		}
		if f.signal = signal == 1; len(words) == 5 {
			f.name = words[4]
		}
		out[tid] = append(out[tid], f)
	}
	if len(out) == 0 {
		t.Fatalf("gdb shows no stack:\n%s", said)
	}
	return out
}

// runGDB runs it without the user's settings, and without debug information that this
// test knows nothing of.
func runGDB(t testing.TB, args ...string) string {
	t.Helper()
	all := append([]string{"-nx", "-batch", "-iex", "set debug-file-directory /nonexistent", "-iex", "set debuginfod enabled off", "-ex", "set confirm off"}, args...)
	out, err := exec.Command("gdb", all...).CombinedOutput()
	if err != nil {
		t.Fatalf("gdb %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// compare compares a capture of a core with gdb's stacks.
func compare(t *testing.T, c *sampler.Capture, want map[int][]gdbFrame, coroutine bool) {
	t.Helper()
	if len(c.Threads) != len(want) {
		t.Errorf("%d threads, gdb has %d", len(c.Threads), len(want))
	}
	for k := range c.Threads {
		th := &c.Threads[k]
		if !th.End.Complete() {
			t.Errorf("thread %d: %v", th.TID, th.End)
		}
		theirs := want[th.TID]
		for len(theirs) > 1 && theirs[len(theirs)-1].pc == 0 {
			theirs = theirs[:len(theirs)-1] // gdb shows the zero where a return address would be
		}
		ours := frames(th)
		if coroutine && len(theirs) > len(ours) {
			// glibc's code below a coroutine has wrong CFI, which gdb follows to nowhere.
			if name := ours[len(ours)-2].Function; name != "coroutine" && name != "" {
				t.Errorf("the walk ended in %s\n%s", name, listing(th))
			}
			theirs = theirs[:len(ours)]
		}
		if len(ours) != len(theirs) {
			t.Errorf("thread %d: %d frames, gdb has %d\n%s\n%v", th.TID, len(ours), len(theirs), listing(th), theirs)
			continue
		}
		for i, f := range ours {
			if f.Address != theirs[i].pc || f.Flags.Has(unwind.SignalFrame) != theirs[i].signal {
				t.Errorf("thread %d: frame %d is %#x, gdb has %+v\n%s", th.TID, i, f.Address, theirs[i], listing(th))
				break
			}
			// Of names for one address gdb may choose another.
			if name := theirs[i].name; f.Function == "" && name != "" {
				t.Errorf("thread %d: frame %d at %#x has no name, gdb has %s", th.TID, i, f.Address, name)
			}
		}
	}
}

// frames are a thread's frames without inlined calls.
func frames(th *sampler.Thread) []sampler.Frame {
	var out []sampler.Frame
	for _, f := range th.Frames {
		if !f.Inlined {
			out = append(out, f)
		}
	}
	return out
}

func listing(th *sampler.Thread) string {
	var b strings.Builder
	for _, f := range th.Frames {
		fmt.Fprintf(&b, "%#x %s (%v)\n", f.Address, f.Function, f.By)
	}
	return b.String()
}

func coreOf(t *testing.T, path string) *sampler.Capture {
	t.Helper()
	c, err := sampler.Core(context.Background(), path, sampler.Options{})
	return closing(t, c, err)
}

func TestCoreOfHandlersAndCoroutinesIsAsGDBSeesIt(t *testing.T) {
	realtest.Need(t, realtest.GCC, realtest.GDB)
	variants := map[string][]string{"O2": nil, "stripped": {"-s"}, "static": {"-static"}, "frame pointers": {"-fno-omit-frame-pointer"}}
	for mode, names := range map[string][]string{
		"handler":   {"O2", "frame pointers"},
		"altstack":  {"O2", "static"},
		"nested":    {"O2"},
		"null":      {"O2", "stripped"},
		"coroutine": {"O2", "stripped", "frame pointers"},
		"threads":   {"O2", "static"},
	} {
		for _, name := range names {
			t.Run(mode+"/"+name, func(t *testing.T) {
				t.Parallel()
				path := realtest.Build(t, "handlers", variants[name]...)
				pid := start(t, path, mode)
				core := gdbCore(t, pid)
				c := coreOf(t, core)
				compare(t, c, gdbStacks(t, path, core), mode == "coroutine")
				compareLive(t, c, pid)
			})
		}
	}
}

// compareLive checks the stacks of the waiting process against those of its core.
func compareLive(t *testing.T, core *sampler.Capture, pid int) {
	t.Helper()
	live, err := sampler.Stacks(context.Background(), pid, sampler.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := live.Close(); err != nil {
			t.Error(err)
		}
	}()
	byTID := map[int]*sampler.Thread{}
	for k := range core.Threads {
		byTID[core.Threads[k].TID] = &core.Threads[k]
	}
	for k := range live.Threads {
		th := &live.Threads[k]
		want := byTID[th.TID]
		if want == nil {
			t.Errorf("thread %d is not in the core", th.TID)
			continue
		}
		if got, want := listing(th), listing(want); got != want || !th.End.Complete() {
			t.Errorf("thread %d: %v\n%s\nin the core:\n%s", th.TID, th.End, got, want)
		}
		if th.Stopped <= 0 {
			t.Errorf("thread %d was stopped for %v", th.TID, th.Stopped)
		}
	}
}
