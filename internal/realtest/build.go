package realtest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// A recipe says how one target of testdata/targets is built.
type recipe struct {
	sources []string // in testdata/targets
	by      Capability
	flags   []string // before the caller's flags
	libs    []string // after the sources
	amd64   bool     // it is about that processor's registers and instructions
}

// recipeOf knows the targets that are more than one C file.
func recipeOf(target string) recipe {
	r := recipe{by: GCC, sources: []string{target + ".c"}, flags: []string{"-O2", "-g", "-pthread"}, libs: []string{"-lm"}}
	switch target {
	case "state":
		r.sources = []string{"state.c", "state.S", "shapes.S"}
		if runtime.GOARCH == "arm64" {
			r.sources = []string{"state_arm64.c", "state_arm64.S"}
		}
	case "abi":
		r.sources, r.amd64 = []string{"abi.c", "abi_control.c", "abi_signal.c"}, true
	case "cxx", "cancel", "throws", "faults":
		r.by, r.sources = GXX, []string{target + ".cc"}
	case "coroutines_boost":
		r.by, r.sources, r.libs = GXX, []string{target + ".cc"}, []string{"-lboost_context"}
	case "says_cxx":
		r.by, r.sources = GXX, []string{"says.cc"}
	case "arguments_cxx":
		r.by, r.sources, r.libs = GXX, []string{"arguments.cc"}, []string{"-lstdc++"}
	case "panics":
		r = recipe{by: Rustc, sources: []string{"panics.rs"}, flags: []string{"-O", "-g"}}
	case "deep":
		r.by, r.sources, r.libs = GXX, []string{"deep.cc"}, nil
	case "bare":
		r = recipe{by: GCC, sources: []string{target + ".c"}, flags: []string{"-O2", "-g", "-nostdlib", "-static", "-ffreestanding", "-fno-stack-protector"}}
	case "hostile_sparse":
		r = recipe{by: GCC, sources: []string{target + ".S"}, flags: []string{"-nostdlib", "-static", "-no-pie"}}
	case "tiny32":
		// Neither a 32-bit compiler nor its headers: the assembler and the
		// linker of x86-64 make i386 programs by themselves.
		r = recipe{by: GCC, sources: []string{"tiny32.S"}, flags: []string{"-nostdlib", "-static", "-m32"}}
	}
	return r
}

// Build compiles the target of testdata/targets named target ("threads",
// "state", …) with -O2 -g and then flags, and returns the path of the binary.
// Binaries are kept between runs, by the content of their sources, the flags
// and the compiler; the caller must not write to the file. The flag
// "cc=musl-gcc" chooses another compiler of the same manner.
func Build(t testing.TB, target string, flags ...string) string {
	t.Helper()
	r := recipeOf(target)
	if r.amd64 {
		Need(t, AMD64)
	}
	for i, f := range flags {
		if name, ok := strings.CutPrefix(f, "cc="); ok {
			r.by = Capability(name)
			flags = slices.Delete(slices.Clone(flags), i, i+1)
			break
		}
	}
	cc := Tool(t, r.by)
	path, err := build(cc, target, r, flags)
	if err != nil {
		t.Fatalf("realtest: %v", err)
	}
	return path
}

func build(cc, target string, r recipe, flags []string) (string, error) {
	folder := filepath.Join(Root(), "testdata", "targets")
	args := slices.Concat(r.flags, flags)
	var sources []string
	for _, s := range r.sources {
		sources = append(sources, filepath.Join(folder, s))
	}
	key, err := buildKey(cc, folder, slices.Concat(args, r.sources, r.libs))
	if err != nil {
		return "", fmt.Errorf("build %s: %w", target, err)
	}
	cache, err := cacheDir()
	if err != nil {
		return "", fmt.Errorf("build %s: %w", target, err)
	}
	out := filepath.Join(cache, target+"-"+key)
	if _, err := os.Stat(out); err == nil {
		return out, nil
	}
	return out, publish(out, os.Link, func(temp string) error {
		cmd := exec.Command(cc, slices.Concat(args, []string{"-o", temp}, sources, r.libs)...)
		if said, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, said)
		}
		return nil
	})
}

// publish lets several tests make the same file at once: each makes its own and
// puts it in place, by os.Rename or by os.Link, so that nobody ever runs a
// half-written one. By os.Link the first stays: a process that runs it already
// must not find its file deleted.
func publish(out string, place func(temp, out string) error, make func(temp string) error) error {
	f, err := os.CreateTemp(filepath.Dir(out), filepath.Base(out)+".*.tmp")
	if err != nil {
		return err
	}
	temp := f.Name()
	if err := f.Close(); err != nil {
		return err
	}
	if err := make(temp); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	if err := os.Chmod(temp, 0o755); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	err = place(temp, out)
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	if e := os.Remove(temp); err == nil && !errors.Is(e, fs.ErrNotExist) {
		err = e
	}
	return err
}

// buildKey hashes what decides the bytes of a binary. Every file of the folder
// goes in, since sources include headers, and the folder itself, since DWARF
// names it.
func buildKey(cc, folder string, words []string) (string, error) {
	h := sha256.New()
	version, err := exec.Command(cc, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", cc, err)
	}
	fmt.Fprintf(h, "%s\x00%s\x00%s\x00%s\x00%s\x00", runtime.GOARCH, cc, version, folder, strings.Join(words, "\x00"))
	names, err := os.ReadDir(folder)
	if err != nil {
		return "", err
	}
	for _, entry := range names {
		if entry.IsDir() { // a Go program's
			continue
		}
		f, err := os.Open(filepath.Join(folder, entry.Name()))
		if err != nil {
			return "", err
		}
		_, err = io.Copy(h, f)
		if err = errors.Join(err, f.Close()); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}

// cacheDir is where binaries are kept; a machine without a home has a
// temporary folder.
func cacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir()
	}
	dir := filepath.Join(base, "callreel-test")
	return dir, os.MkdirAll(dir, 0o755)
}

// Root returns the folder of go.mod. It is found from the working folder, which
// go test sets to the package's.
func Root() string {
	dir, err := os.Getwd()
	if err != nil {
		return "."
	}
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "go.mod")); err == nil {
			return d
		}
		if d == filepath.Dir(d) {
			return dir
		}
	}
}
