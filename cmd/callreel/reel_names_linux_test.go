package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/symbols"
	"github.com/callreel/callreel/symbols/reelnames"
)

// A stripped program is recorded, named by its debug file, and compared with a recording of the program as it was built:
// functions that both have are called the same. (They have not quite the same: without symbols some aren't found.)
func TestNamesOfAStrippedProgramAreThoseOfTheWhole(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace, realtest.GCC, realtest.Objcopy)
	for _, target := range []string{"cxx", "throws", "panics"} {
		if target == "panics" {
			realtest.Need(t, realtest.Rustc)
		}
		flags := []string{"-Wl,--build-id", "-g"}
		if target == "panics" {
			flags = []string{"-Clink-arg=-Wl,--build-id"}
		}
		whole := realtest.Build(t, target, flags...)
		dir := t.TempDir()
		stripped, debugDir := filepath.Join(dir, filepath.Base(whole)), filepath.Join(dir, "debug")
		realtest.Must(t, os.Mkdir(debugDir, 0o700))
		objcopy := realtest.Tool(t, realtest.Objcopy)
		realtest.Must(t, exec.Command(objcopy, "--strip-all", whole, stripped).Run())
		realtest.Must(t, exec.Command(objcopy, "--only-keep-debug", whole, filepath.Join(debugDir, filepath.Base(whole)+".debug")).Run())
		want, got := namesOfAll(t, whole), namesOfAll(t, stripped, debugDir)
		same := 0
		for addr, name := range got {
			if w, ok := want[addr]; ok && w == name {
				same++
			} else if ok {
				t.Errorf("%s: %#x is %q, in the whole program %q", target, addr, name, w)
			}
		}
		t.Logf("%s: %d functions, %d of the whole program, %d have the same names", target, len(got), len(want), same)
		if same < 10 || same < len(want)/2 {
			t.Errorf("%s: only %d of %d functions have the names of the whole program's %d", target, same, len(got), len(want))
		}
	}
}

// namesOfAll records a program for a while and returns what the functions of its own image are called, by address.
func namesOfAll(t *testing.T, path string, debugDirs ...string) map[uint64]string {
	t.Helper()
	p := realtest.Start(t, path)
	r := realtest.StartRecording(t, "-p", strconv.Itoa(p.Pid()), "-m", filepath.Base(path), "--eager")
	p.Go()
	time.Sleep(200 * time.Millisecond) // of work; what was called doesn't matter
	r.Stop()
	f, err := reel.Open(r.File)
	realtest.Must(t, err)
	defer f.Close()
	names := reelnames.New(t.Context(), &symbols.Finder{DebugDirs: debugDirs})
	defer names.Close()
	if len(debugDirs) > 0 {
		f.NameBy(names)
	}
	list := map[uint64]string{}
	for _, fn := range f.Functions {
		list[fn.Addr] = fn.Name
	}
	return list
}
