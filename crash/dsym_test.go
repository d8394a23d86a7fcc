package crash

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/symbols"
	"github.com/callreel/callreel/symbols/symbolize"
)

// opened walks and names a report.
func opened(t *testing.T, path string, debugDirs ...string) *Report {
	t.Helper()
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	files := &symbolize.Files{Finder: &symbols.Finder{DebugDirs: debugDirs}}
	t.Cleanup(func() { _, _ = r.Close(), files.Close() })
	if err := r.Resolve(context.Background(), Options{Symbols: files, DebugDirs: debugDirs}); err != nil {
		t.Fatal(err)
	}
	return r
}

// A report of Apple's is named by a dSYM bundle with the image's UUID, as llvm-symbolizer names
// the same places; one of the same name and another UUID is passed over.
func TestAppleReportIsNamedByTheDSYMOfItsUUID(t *testing.T) {
	realtest.Need(t, realtest.Clang, realtest.LD64, realtest.Dsymutil, realtest.Symbolizer)
	const source = "volatile int *nowhere;\nstatic inline __attribute__((always_inline)) void deepest(int n) {\n\t*nowhere = n;\n}\n" +
		"__attribute__((noinline)) void middle(int n) {\n\tdeepest(n + 1);\n\tnowhere++;\n}\nint main(int argc, char **argv) {\n\tmiddle(argc);\n\treturn *nowhere;\n}\n"
	dirs := map[string]string{}
	for _, kind := range []string{"other", "right"} { // from different sources, so of different UUIDs
		dir := t.TempDir()
		text := source
		if kind == "other" {
			text = strings.Replace(source, "n + 1", "n + 2", 1)
		}
		realtest.Must(t, os.WriteFile(filepath.Join(dir, "Prog.c"), []byte(text), 0o600))
		realtest.Output(t, dir, realtest.Clang, "-target", "arm64-apple-macos11", "-g", "-O1", "-ffreestanding", "-c", "Prog.c")
		realtest.Output(t, dir, realtest.LD64, "-arch", "arm64", "-platform_version", "macos", "11.0", "11.0", "-e", "_main",
			"-undefined", "dynamic_lookup", "-o", "Prog", "Prog.o")
		realtest.Output(t, dir, realtest.Dsymutil, "Prog", "-o", "Prog.app.dSYM")
		realtest.Must(t, os.Remove(filepath.Join(dir, "Prog.o")))
		dirs[kind] = dir
	}
	im, err := object.Open(filepath.Join(dirs["right"], "Prog"))
	realtest.Must(t, err)
	id, base := im.ID(), im.BaseAddr()
	list, err := im.Symbols()
	realtest.Must(t, err)
	at := map[string]uint64{}
	for _, s := range list {
		at[s.Name] = s.Addr
	}
	realtest.Must(t, im.Close())
	for _, dir := range dirs { // the bundles are all there is
		realtest.Must(t, os.Remove(filepath.Join(dir, "Prog")))
	}
	pc, ra := at["_middle"]+8, at["_main"]+12
	const load = 0x104a3c000
	uuid := strings.ToUpper(fmt.Sprintf("%s-%s-%s-%s-%s", id[:8], id[8:12], id[12:16], id[16:20], id[20:]))
	report := fmt.Sprintf(`{"app_name":"Prog","bug_type":"309","name":"Prog"}
{"pid":7,"procName":"Prog","cpuType":"ARM-64","osVersion":{"train":"macOS 12.1"},"faultingThread":0,"exception":{"type":"EXC_BAD_ACCESS","signal":"SIGSEGV"},
"threads":[{"id":1,"triggered":true,"frames":[{"imageIndex":0,"imageOffset":%d},{"imageIndex":0,"imageOffset":%d}]}],
"usedImages":[{"uuid":"%s","base":%d,"size":65536,"path":"/Applications/Prog.app/Prog","name":"Prog","arch":"arm64"}]}`, pc-base, ra-base, uuid, uint64(load))
	path := filepath.Join(t.TempDir(), "Prog.ips")
	realtest.Must(t, os.WriteFile(path, []byte(report), 0o600))
	r := opened(t, path, dirs["other"])
	if missing := r.Missing(); len(missing) != 1 || missing[0].ID != id || r.Threads[0].Frames[0].Function != "" {
		t.Errorf("by another one's dSYM: missing is %+v, the first frame %+v", missing, r.Threads[0].Frames[0])
	}
	r = opened(t, path, dirs["other"], dirs["right"])
	var got strings.Builder
	for _, f := range r.Threads[0].Frames {
		fmt.Fprintf(&got, "%s\n%s:%d\n", f.Function, f.File, f.Line)
	}
	dsym := filepath.Join(dirs["right"], "Prog.app.dSYM", "Contents", "Resources", "DWARF", "Prog")
	out := realtest.Output(t, ".", realtest.Symbolizer, "--obj="+dsym, "--no-demangle", fmt.Sprintf("%#x", pc), fmt.Sprintf("%#x", ra-4))
	var want strings.Builder
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if strings.HasPrefix(line, "/") {
			line = line[:strings.LastIndexByte(line, ':')] // without the column
		}
		want.WriteString(strings.TrimPrefix(line, "_") + "\n")
	}
	if got.String() != want.String() || len(r.Threads[0].Frames) < 3 || len(r.Missing()) != 0 {
		t.Errorf("the stack is\n%s, want\n%s", got.String(), want.String())
	}
}
