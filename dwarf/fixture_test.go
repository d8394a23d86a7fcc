package dwarf

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
)

// fixtures holds what make has built, for all tests of the run.
var fixtures struct {
	dir string
	sync.Mutex
	paths map[string]*fixture
}

// fixture is one file, built by the first who wants it.
type fixture struct {
	once sync.Once
	path string
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "dwarf")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fixtures.dir, fixtures.paths = dir, make(map[string]*fixture)
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// run runs a program in a folder and returns what it writes.
func run(t testing.TB, dir string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a tool that hangs must not take the others with it
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

// build compiles a source of testdata in a folder of its own, once, and returns
// the path of the result, which must not be changed.
func build(t testing.TB, compiler realtest.Capability, name string, flags ...string) string {
	t.Helper()
	if _, err := compiler.Find(); err != nil && compiler == realtest.Rustc {
		t.Skip(err) // an extra sample, on which nothing depends
	}
	cc := realtest.Tool(t, compiler)
	if slices.Contains(flags, "-m32") {
		realtest.Need(t, realtest.AMD64)
	}
	if slices.Contains(flags, "-fuse-ld=lld") {
		realtest.Need(t, realtest.LD64) // which comes with LLVM's linker of ELF
	}
	key := strings.Join(append([]string{cc, name}, flags...), " ")
	fixtures.Lock()
	f := fixtures.paths[key]
	if f == nil {
		f = new(fixture)
		fixtures.paths[key] = f
	}
	fixtures.Unlock()
	f.once.Do(func() { f.path = compile(t, cc, compiler, name, flags) })
	if f.path == "" {
		t.Fatalf("%s could not be built", key)
	}
	return f.path
}

func compile(t testing.TB, cc string, compiler realtest.Capability, name string, flags []string) string {
	t.Helper()
	dir, err := os.MkdirTemp(fixtures.dir, "build")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), text, 0o666); err != nil {
		t.Fatal(err)
	}
	// Files must have the same names in builds that are compared.
	args := []string{cc}
	if compiler != realtest.Rustc {
		args = append(args, "-fdebug-prefix-map="+dir+"=/build")
	}
	run(t, dir, append(append(args, flags...), "-o", "out", name)...)
	return filepath.Join(dir, "out")
}

// openImage opens an image for the length of the test.
func openImage(t testing.TB, path string) *object.Image {
	t.Helper()
	im, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := im.Close(); err != nil {
			t.Error(err)
		}
	})
	return im
}

// parseData opens the DWARF of an image that a test has made, named x.
func parseData(t testing.TB, data []byte) *Data {
	t.Helper()
	im, err := object.Parse("x", data)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Open(t.Context(), im, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// openData opens the DWARF of a file, which must be without problems.
func openData(t testing.TB, path string, opts Options) *Data {
	t.Helper()
	d, err := Open(context.Background(), openImage(t, path), opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range d.Problems() {
		t.Error(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}
