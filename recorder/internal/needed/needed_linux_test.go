package needed

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
)

func visited(program string, env map[string]string) (paths []string) {
	Visit(program, func(name string) string { return env[name] }, func(path string, _ *object.Image) bool {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			real = path
		}
		paths = append(paths, real)
		return true
	})
	return paths
}

// listed is what the dynamic loader itself would load.
func listed(t *testing.T, program string, env ...string) (paths []string) {
	t.Helper()
	o, err := object.Open(program)
	realtest.Must(t, err)
	loader := o.Interp()
	realtest.Must(t, o.Close())
	cmd := exec.Command(loader, "--list", program)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.Output()
	realtest.Must(t, err)
	for line := range strings.Lines(string(out)) {
		if _, path, ok := strings.Cut(line, " => "); ok {
			path, _, _ = strings.Cut(strings.TrimSpace(path), " (")
			real, err := filepath.EvalSymlinks(path)
			realtest.Must(t, err)
			paths = append(paths, real)
		}
	}
	return paths
}

// What is found is compared with what the loader finds.
func TestLibrariesAreFoundWhereTheLoaderFindsThem(t *testing.T) {
	realtest.Need(t, realtest.GCC)
	dir := t.TempDir()
	for _, sub := range []string{"own", "deep", "path"} {
		realtest.Must(t, os.Mkdir(filepath.Join(dir, sub), 0o700))
	}
	gcc := realtest.Tool(t, realtest.GCC)
	build := func(out, source string, flags ...string) string {
		t.Helper()
		file, path := filepath.Join(t.TempDir(), "source.c"), filepath.Join(dir, out)
		realtest.Must(t, os.WriteFile(file, []byte(source), 0o600))
		text, err := exec.Command(gcc, append([]string{"-o", path, file}, flags...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", out, err, text)
		}
		return path
	}
	shared := []string{"-shared", "-fPIC"}
	inner := build("deep/libinner.so", "int inner(void) { return 1; }", shared...)
	pathed := build("path/libpathed.so", "int pathed(void) { return 1; }", shared...)
	outer := build("own/libouter.so", "int inner(void); int outer(void) { return inner(); }", append(shared, inner, "-Wl,--disable-new-dtags", "-Wl,-rpath,$ORIGIN/../deep")...)
	program := build("program", "int outer(void); int pathed(void); int main(void) { return outer() + pathed(); }",
		outer, pathed, "-lm", "-Wl,--no-as-needed", "-Wl,--enable-new-dtags", "-Wl,-rpath,$ORIGIN/own", "-Wl,--allow-shlib-undefined")
	// The linker notes files without a SONAME by their paths, as they were given to it.
	library := "LD_LIBRARY_PATH=" + filepath.Join(dir, "path")
	programs := []string{program}
	for _, name := range []string{"ls", "git", "python3", "gcc"} {
		if path, err := exec.LookPath(name); err == nil {
			if o, err := object.Open(path); err == nil && o.Interp() != "" {
				programs = append(programs, path)
				_ = o.Close() // only looked at
			}
		}
	}
	for _, path := range programs {
		got, want := visited(path, map[string]string{"LD_LIBRARY_PATH": filepath.Join(dir, "path")}), listed(t, path, library)
		for _, lib := range want {
			if !slices.Contains(got, lib) {
				t.Errorf("%s: no %s among %v", path, lib, got)
			}
		}
	}
}

func TestAProgramIsTheInterpreterOfAScript(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		realtest.Must(t, os.WriteFile(path, []byte(text), 0o700))
		return path
	}
	sh, err := exec.LookPath("sh")
	realtest.Must(t, err)
	script := put("script", "#! "+sh+" -e\necho\n")
	for path, want := range map[string]string{sh: sh, script: sh, put("of a script", "#!"+script+"\n"): sh} {
		if got, err := Program(path); err != nil || got != want {
			t.Errorf("%s: %s, %v", path, got, err)
		}
	}
	loop := filepath.Join(dir, "loop")
	put("loop", "#!"+loop+"\n")
	if got, err := Program(loop); err == nil {
		t.Errorf("a script of its own: %s", got)
	}
}

func TestFoldersThatDependOnWhereWeAreAreLeftOut(t *testing.T) {
	got := folders("/a:$ORIGIN/../b:relative::${ORIGIN}/c:/$PLATFORM/d;/e", "/x")
	if !slices.Equal(got, []string{"/a", "/x/../b", "/x/c", "/e"}) {
		t.Errorf("%q", got)
	}
}

func FuzzCache(f *testing.F) {
	data := append([]byte(cacheMagic), make([]byte, cacheHeader-len(cacheMagic)+cacheEntry)...)
	order := binary.LittleEndian
	order.PutUint32(data[len(cacheMagic):], 1)
	order.PutUint32(data[cacheHeader+4:], uint32(len(data)))
	order.PutUint32(data[cacheHeader+8:], uint32(len(data)+2))
	f.Add(append(data, "a\x00/lib/a\x00"...))
	f.Fuzz(func(t *testing.T, data []byte) {
		for name, paths := range parseCache(data) {
			for _, path := range append(paths, name) {
				if !bytes.Contains(data, []byte(path)) || len(paths) > maxSameName {
					t.Errorf("%q: %q", name, paths)
				}
			}
		}
	})
}
