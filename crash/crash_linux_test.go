package crash_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/crash"
	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/symbols"
	"github.com/callreel/callreel/symbols/symbolize"
)

// crashpad returns the handler that Debian's Chromium comes with.
func crashpad(t *testing.T) string {
	t.Helper()
	realtest.Need(t, realtest.Chromium, realtest.GCC, realtest.LivePtrace)
	const path = "/usr/lib/chromium/chrome_crashpad_handler"
	_, err := os.Stat(path)
	realtest.NeedThat(t, "Crashpad's handler", err)
	return path
}

// build compiles a program of testdata.
func build(t *testing.T, compiler, source string, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), strings.TrimSuffix(filepath.Base(source), ".c"))
	words := append(flags, "-o", out, filepath.Join("testdata", source))
	if text, err := exec.Command(compiler, words...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", compiler, source, err, text)
	}
	return out
}

// resolve opens a report and walks and names it.
func resolve(t *testing.T, r *crash.Report, err error, o crash.Options) *crash.Report {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	files := &symbolize.Files{Finder: &symbols.Finder{DebugDirs: o.DebugDirs}}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if err := files.Close(); err != nil {
			t.Error(err)
		}
	})
	o.Symbols = files
	if err := r.Resolve(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	return r
}

// functions lists the names of a stack, and in parentheses how the frame was found where that is
// not what most are.
func functions(th *crash.Thread, most crash.By) []string {
	var out []string
	for k := range th.Frames {
		f := &th.Frames[k]
		name := f.Function
		if name == "" {
			name = "?"
		}
		if f.By != most && f.By != crash.ByContext {
			name += "(" + string(f.By) + ")"
		}
		out = append(out, name)
	}
	return out
}

func begins(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if len(got) < len(want) || strings.Join(got[:len(want)], " ") != strings.Join(want, " ") {
		t.Errorf("%s: the stack is %v, want %v", what, got, want)
	}
}

// dumpByCrashpad has Crashpad write a minidump of a program that crashes.
func dumpByCrashpad(t *testing.T, program string) string {
	t.Helper()
	database := t.TempDir()
	out, err := exec.Command(program, crashpad(t), database).CombinedOutput()
	list, _ := filepath.Glob(filepath.Join(database, "pending", "*.dmp"))
	if len(list) != 1 {
		t.Fatalf("Crashpad wrote %d dumps: %v\n%s", len(list), err, out)
	}
	return list[0]
}

func TestCrashpadsMinidumpIsWalkedByCFI(t *testing.T) {
	crashpad(t)
	program := build(t, "gcc", "crashes.c", "-g", "-O2", "-pthread")
	r, err := crash.Open(dumpByCrashpad(t, program))
	r = resolve(t, r, err, crash.Options{})
	if r.Format != crash.Minidump || r.OS != "linux" || r.Arch != "amd64" || r.Process.PID == 0 {
		t.Errorf("%v of %v/%v, process %+v", r.Format, r.OS, r.Arch, r.Process)
	}
	if r.Reason.Text != "SIGSEGV (SEGV_MAPERR) at 0x10" {
		t.Errorf("the reason is %+v", r.Reason)
	}
	if when, err := time.Parse(time.RFC3339, r.Time); err != nil || time.Since(when).Abs() > time.Hour {
		t.Errorf("the time is %q", r.Time)
	}
	if !slices.Contains(r.Annotations, crash.Annotation{Name: "prod", Value: "crashes"}) {
		t.Errorf("annotations are %+v", r.Annotations)
	}
	if len(r.Threads) != 2 || !r.Threads[0].Crashed || r.Threads[1].Crashed {
		t.Fatalf("%d threads, want the crashed one first and another", len(r.Threads))
	}
	first := r.Threads[0]
	begins(t, "the crashed thread", functions(first, crash.ByCFI), "deepest", "middle", "outer", "main")
	if first.End != "complete" || !first.Frames[0].Inlined || first.Frames[0].By != crash.ByContext {
		t.Errorf("the stack ends %v %v; the first frame is %+v", first.End, first.EndSays, first.Frames[0])
	}
	if f := first.Frames[1]; filepath.Base(f.File) != "crashes.c" || f.Line == 0 {
		t.Errorf("the line is %+v", f)
	}
	found := false
	for _, name := range functions(r.Threads[1], crash.ByCFI) {
		found = found || name == "waits"
	}
	if !found || r.Threads[1].End != "complete" {
		t.Errorf("the other thread: %v, %v", functions(r.Threads[1], crash.ByCFI), r.Threads[1].EndSays)
	}
	at := 0
	for _, in := range r.Code {
		if in.At {
			at++
			if in.Address != first.Frames[0].Address || !strings.HasPrefix(in.Text, "mov") {
				t.Errorf("the instruction at the PC is %+v", in)
			}
		}
	}
	if at != 1 || len(r.Code) < 8 || len(first.Registers) < 17 {
		t.Errorf("%d instructions, %d of them at the PC; %d registers", len(r.Code), at, len(first.Registers))
	}
	if missing := r.Missing(); len(missing) > 0 {
		t.Errorf("missing is %+v", missing[0])
	}
}

func TestMinidumpWithoutItsImageIsScannedAndSaysWhatIsMissing(t *testing.T) {
	crashpad(t)
	program := build(t, "gcc", "crashes.c", "-g", "-O2", "-pthread")
	dump := dumpByCrashpad(t, program)
	moved := filepath.Join(t.TempDir(), "crashes")
	if err := os.Rename(program, moved); err != nil {
		t.Fatal(err)
	}
	r, err := crash.Open(dump)
	r = resolve(t, r, err, crash.Options{})
	scanned := 0
	for _, f := range r.Threads[0].Frames {
		if f.By == crash.ByScan {
			scanned++
		}
	}
	if missing := r.Missing(); scanned == 0 || len(missing) == 0 || missing[0].ID == "" || missing[0].Name() != "crashes" {
		t.Errorf("%d frames by a scan, missing %+v", scanned, r.Missing())
	}
	// Another file in its place is not taken for it.
	if err := exec.Command("cp", "/bin/true", program).Run(); err != nil {
		t.Fatal(err)
	}
	r, err = crash.Open(dump)
	r = resolve(t, r, err, crash.Options{})
	if missing := r.Missing(); len(missing) == 0 || !strings.Contains(missing[0].Why, "ID") {
		t.Errorf("with another file there, missing is %+v", missing)
	}
	r, err = crash.Open(dump)
	r = resolve(t, r, err, crash.Options{DebugDirs: []string{filepath.Dir(moved)}})
	begins(t, "with --debug-dir", functions(r.Threads[0], crash.ByCFI), "deepest", "middle", "outer", "main")
}
