package crash

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/sampler"
	"github.com/callreel/callreel/sampler/corefile"
	"github.com/callreel/callreel/symbols"
	"github.com/callreel/callreel/symbols/symbolize"
)

// processors are those whose stacks are walked, each with what runs its programs.
var processors = []struct {
	name, target string
	run          []string
	needs        []realtest.Capability
}{
	{"amd64", "x86_64-linux-gnu", nil, nil},
	{"386", "i386-linux-gnu", nil, []realtest.Capability{realtest.I386}},
	{"arm64", "aarch64-linux-gnu", []string{"qemu-aarch64-static"}, []realtest.Capability{realtest.QEMUARM64}},
}

// coreOf builds deep.c for a processor, lets it crash, and returns the program and its core.
func coreOf(t *testing.T, target string, run []string, flags ...string) (program string, core []byte) {
	t.Helper()
	if len(run) == 0 { // QEMU writes them itself
		needCores(t)
	}
	dir := t.TempDir()
	program = filepath.Join(dir, "deep")
	words := append([]string{"--target=" + target, "-g", "-O1", "-fno-stack-protector", "-fasynchronous-unwind-tables", "-nostdlib", "-static",
		"-fuse-ld=lld", "-Wl,--build-id=sha1", "-o", program, filepath.Join("testdata", "deep.c")}, flags...)
	if out, err := exec.Command("clang-19", words...).CombinedOutput(); err != nil {
		t.Fatalf("clang-19: %v\n%s", err, out)
	}
	c := exec.Command("sh", append([]string{"-c", `ulimit -c unlimited; "$@"`, "sh"}, append(run, program)...)...)
	c.Dir = dir
	out, _ := c.CombinedOutput() // it crashes
	name := "core*"
	if len(run) > 0 { // an emulator crashes, too, behind its program
		name = "qemu_*.core"
	}
	list, _ := filepath.Glob(filepath.Join(dir, name))
	if len(list) != 1 {
		t.Fatalf("%d cores: %s", len(list), out)
	}
	core, err := os.ReadFile(list[0])
	realtest.Must(t, err)
	return program, core
}

// imageOf describes a program that is loaded where it is linked to.
func imageOf(t *testing.T, program string) dumpImage {
	t.Helper()
	im, err := object.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	out := dumpImage{path: program, load: im.BaseAddr(), id: bytes.Clone(im.BuildID())}
	for _, s := range im.Segments() {
		if s.Type == object.SegmentLoad {
			out.size = max(out.size, uint32(s.Addr+s.MemSize-out.load))
		}
	}
	return out
}

func stackOf(t *testing.T, data []byte, o Options) (*Report, []string, []By) {
	t.Helper()
	r, err := Read("dump", bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	files := &symbolize.Files{Finder: &symbols.Finder{DebugDirs: o.DebugDirs}}
	t.Cleanup(func() { _, _ = r.Close(), files.Close() })
	o.Symbols = files
	if err := r.Resolve(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	var names []string
	var by []By
	for _, f := range r.Threads[0].Frames {
		names, by = append(names, f.Function), append(by, f.By)
	}
	return r, names, by
}

func TestMinidumpsOfAllProcessorsAreWalkedByCFIFramePointersAndScan(t *testing.T) {
	want := "deepest middle outer begin _start"
	for _, p := range processors {
		t.Run(p.name, func(t *testing.T) {
			realtest.Need(t, append(p.needs, realtest.Clang)...)
			program, core := coreOf(t, p.target, p.run, "-fomit-frame-pointer")
			f, err := corefile.Parse("core", core)
			if err != nil {
				t.Fatal(err)
			}
			im := imageOf(t, program)
			dump := dumpOf(f, im)
			r, names, by := stackOf(t, dump, Options{})
			if strings.Join(names, " ") != want || r.Threads[0].End != "complete" || r.Arch != p.name {
				t.Errorf("%v: %v %v (%v), want %v", r.Arch, names, r.Threads[0].End, r.Threads[0].EndSays, want)
			}
			for k, b := range by {
				if k == 0 && b != ByContext || k > 0 && b != ByCFI {
					t.Errorf("frame %d was found by %v", k, b)
				}
			}
			if r.Reason.Text != "SIGSEGV (SEGV_MAPERR) at 0x10" || len(r.Code) == 0 {
				t.Errorf("the reason is %q; %d instructions", r.Reason.Text, len(r.Code))
			}
			// Without the image, and without frame pointers: by scans, which find the same callers.
			gone := im
			gone.path = "/nonexistent/deep"
			r, _, by = stackOf(t, dumpOf(f, gone), Options{})
			if missing := r.Missing(); len(missing) != 1 || missing[0].ID != hex.EncodeToString(im.id) {
				t.Errorf("missing is %+v", missing)
			}
			if !containsBy(by, ByScan) || containsBy(by, ByCFI) {
				t.Errorf("without the image the frames were found by %v", by)
			}
			// With frame pointers.
			program, core = coreOf(t, p.target, p.run, "-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer")
			if f, err = corefile.Parse("core", core); err != nil {
				t.Fatal(err)
			}
			im = imageOf(t, program)
			_, cfiNames, _ := stackOf(t, dumpOf(f, im), Options{})
			gone = im
			gone.path = "/nonexistent/deep"
			_, _, by = stackOf(t, dumpOf(f, gone), Options{})
			// The outermost frame has no frame pointer any more, and only a scan finds it.
			if !containsBy(by, ByFramePointer) || containsBy(by[:len(by)-1], ByScan) || len(by) != len(cfiNames) {
				t.Errorf("by frame pointers %d frames (%v), by CFI %d", len(by), by, len(cfiNames))
			}
		})
	}
}

// Emulators don't write which files are mapped; the images' own headers tell their IDs.
func TestCoreThatNamesNoFilesFindsThemByTheirIDs(t *testing.T) {
	p := processors[2]
	realtest.Need(t, append(p.needs, realtest.Clang)...)
	program, core := coreOf(t, p.target, p.run)
	r, names, _ := stackOf(t, core, Options{})
	if missing := r.Missing(); len(missing) != 1 || missing[0].ID != hex.EncodeToString(imageOf(t, program).id) || missing[0].Name() != "deep" {
		t.Errorf("missing is %+v, the stack %v", missing, names)
	}
	r, names, _ = stackOf(t, core, Options{DebugDirs: []string{filepath.Dir(program)}})
	if strings.Join(names, " ") != "deepest middle outer begin _start" || r.Threads[0].End != "complete" {
		t.Errorf("the stack is %v (%v)", names, r.Threads[0].EndSays)
	}
	// The first instruction finds the stack used up, with the return address in its register.
	program, core = coreOf(t, p.target, p.run, "-DOVERFLOW", "-O2", "-fomit-frame-pointer")
	r, names, _ = stackOf(t, core, Options{DebugDirs: []string{filepath.Dir(program)}})
	if len(names) < 1000 || names[1] != "overflow" || names[len(names)-2] != "begin" || r.Threads[0].End != "complete" {
		t.Errorf("%d frames: %v … (%v)", len(names), names[:min(len(names), 5)], r.Threads[0].EndSays)
	}
}

func containsBy(list []By, want By) bool {
	for _, b := range list {
		if b == want {
			return true
		}
	}
	return false
}

// A core has the stacks that the verb for stacks shows of it.
func TestCoresHaveTheStacksThatSamplerTakes(t *testing.T) {
	for _, p := range processors[:2] {
		t.Run(p.name, func(t *testing.T) {
			realtest.Need(t, append(p.needs, realtest.Clang)...)
			program, core := coreOf(t, p.target, p.run)
			path := filepath.Join(t.TempDir(), "core")
			if err := os.WriteFile(path, core, 0o600); err != nil {
				t.Fatal(err)
			}
			want, err := sampler.Core(context.Background(), path, sampler.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer want.Close()
			r, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			files := &symbolize.Files{Finder: &symbols.Finder{}}
			defer files.Close()
			defer r.Close()
			if err := r.Resolve(context.Background(), Options{Symbols: files}); err != nil {
				t.Fatal(err)
			}
			if im := r.image(imageOf(t, program).load); im == nil || im.ID != hex.EncodeToString(imageOf(t, program).id) {
				t.Errorf("the program's image is %+v", im)
			}
			if r.Format != ELFCore || r.Reason.Text != "SIGSEGV (SEGV_MAPERR) at 0x10" || len(r.Threads) != len(want.Threads) || !r.Threads[0].Crashed {
				t.Errorf("%v, reason %+v, %d threads", r.Format, r.Reason, len(r.Threads))
			}
			got, frames := r.Threads[0], want.Threads[0].Frames
			if len(got.Frames) != len(frames) || got.End != want.Threads[0].End.Reason.String() {
				t.Fatalf("%d frames (%v), want %d (%v)", len(got.Frames), got.End, len(frames), want.Threads[0].End.Reason)
			}
			for k := range frames {
				if g, w := got.Frames[k], frames[k]; g.Address != w.Address || g.Function != w.Function || g.Offset != w.Offset || g.Image == nil || g.Image.Path != w.Image.Path {
					t.Errorf("frame %d is %+v, want %+v", k, g, w)
				}
			}
		})
	}
}

// needCores returns if the kernel writes cores into the working folder.
func needCores(t *testing.T) {
	t.Helper()
	pattern, err := os.ReadFile("/proc/sys/kernel/core_pattern")
	if err == nil && !strings.HasPrefix(string(pattern), "core") {
		err = fmt.Errorf("kernel.core_pattern is %q", pattern)
	}
	realtest.NeedThat(t, "cores in the working folder", err)
}
