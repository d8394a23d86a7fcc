package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/symbols"
)

// inlining has C++ names, calls that are inlined, and a name that does harm in a terminal.
const inlining = `
namespace ns {
template <class T> __attribute__((noinline)) T twice(T x) { asm volatile("" ::: "memory"); return x + x; }
static inline __attribute__((always_inline)) int low(int x) { return x * 3 + twice(x); }
static inline __attribute__((always_inline)) int middle(int x) { return low(x) +
	low(x + 1); }
__attribute__((noinline)) int top(int x) { return middle(x) - 7; }
struct box { int v[4]; __attribute__((noinline)) int &operator[](int i) { asm volatile("" ::: "memory"); return v[i & 3]; } };
}
` + hostileFunction + `
int main(int argc, char **argv) { ns::box b{}; return ns::top(argc) + b[argc] + hostile(argc); }
`

const hostileFunction = `
extern "C" __attribute__((noinline)) int hostile(int x) asm("\"ev\033[31mil\"");
extern "C" __attribute__((noinline)) int hostile(int x) { asm volatile("" ::: "memory"); return x * 5; }
`

// module is C, whose code is all in .text. llvm-symbolizer mixes sections up in relocatable files.
const module = `
int sink;
static inline __attribute__((always_inline)) int low(int x) { sink += x; return x * 3; }
static inline __attribute__((always_inline)) int middle(int x) { return low(x) +
	low(x + 1); }
__attribute__((noinline)) int _ZN2ns3topEi(int x) { return middle(x) - 7; }
int _ZN2ns4initEv(int x) { int y = _ZN2ns3topEi(x); y += _ZN2ns3topEi(y); return middle(y); }
`

// compileDebug makes a program with DWARF, and keeps the cache of the test apart.
func compileDebug(t *testing.T, args ...string) string {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("DEBUGINFOD_URLS", "")
	dir := t.TempDir()
	write(t, dir, "prog.cc", []byte(inlining))
	realtest.Output(t, dir, realtest.GXX, slices.Concat([]string{"-g", "-O1", "-o", "prog", "prog.cc"}, args)...)
	return filepath.Join(dir, "prog")
}

// functionAddresses are the addresses of every byte of the image's own functions.
func functionAddresses(t *testing.T, path string) []uint64 {
	t.Helper()
	im, err := object.Open(path)
	realtest.Must(t, err)
	defer im.Close()
	list, err := im.FunctionSymbols()
	realtest.Must(t, err)
	var addrs []uint64
	for _, s := range list {
		if im.Type == object.Relocatable && im.Sections()[s.Section].Name != ".text" {
			continue
		}
		if strings.Contains(s.Name, "2ns") || s.Name == "main" || s.Name == "_main" {
			for a := s.Addr; a < s.Addr+s.Size; a++ {
				addrs = append(addrs, a)
			}
		}
	}
	if len(addrs) < 50 {
		t.Fatalf("%s: %d addresses", path, len(addrs))
	}
	return addrs
}

// lookedUp has exactly the keys that lookup --json promises.
type lookedUp struct {
	Address string      `json:"address"`
	Frames  []callFrame `json:"frames"`
	Reason  string      `json:"reason"`
}

type callFrame struct {
	Function string `json:"function"`
	Linkage  string `json:"linkage_name"`
	File     string `json:"file"`
	Line     int    `json:"line"`
	Inlined  bool   `json:"inlined"`
}

// text is a frame as symbolizerTruth has it.
func (f *callFrame) text() string {
	file := f.File
	if file == "" {
		file = "??"
	}
	return fmt.Sprintf("%s %s:%d", f.Linkage, file, f.Line)
}

// symbolizerTruth asks llvm-symbolizer: "linkage-name file:line" of each frame of each address.
func symbolizerTruth(t *testing.T, image string, addrs []uint64) [][]string {
	t.Helper()
	realtest.Need(t, realtest.Symbolizer)
	path, err := realtest.Symbolizer.Find()
	realtest.Must(t, err)
	cmd := exec.Command(path, "--no-demangle", "--obj="+image)
	cmd.Stdin = strings.NewReader(addressLines(addrs))
	out, err := cmd.Output()
	realtest.Must(t, err)
	var all [][]string
	for block := range strings.SplitSeq(strings.TrimSuffix(string(out), "\n\n"), "\n\n") {
		lines := strings.Split(strings.TrimSpace(block), "\n")
		var frames []string
		for k := 0; k+1 < len(lines); k += 2 {
			frames = append(frames, lines[k]+" "+lines[k+1][:strings.LastIndexByte(lines[k+1], ':')])
		}
		all = append(all, frames)
	}
	if len(all) != len(addrs) {
		t.Fatalf("llvm-symbolizer answered %d of %d addresses", len(all), len(addrs))
	}
	return all
}

func addressLines(addrs []uint64) string {
	var b strings.Builder
	for _, a := range addrs {
		fmt.Fprintf(&b, "%#x\n", a)
	}
	return b.String()
}

// checkLookup checks lookup's answers against llvm-symbolizer's.
func checkLookup(t *testing.T, file, truth string, addrs []uint64, args ...string) {
	t.Helper()
	want := symbolizerTruth(t, truth, addrs)
	a := callreel(addressLines(addrs), append([]string{"symbols", "lookup", file, "--json"}, args...)...)
	if a.code != exitDone {
		t.Fatalf("code %d: %s", a.code, a.stderr)
	}
	lines := strings.Split(strings.TrimSuffix(a.stdout, "\n"), "\n")
	if len(lines) != len(addrs) {
		t.Fatalf("%d lines for %d addresses", len(lines), len(addrs))
	}
	wrong := 0
	for k, line := range lines {
		got := realtest.DecodeExactly[lookedUp](t, line)
		var frames []string
		for n := range got.Frames {
			frames = append(frames, got.Frames[n].text())
			if got.Frames[n].Inlined != (n < len(got.Frames)-1) {
				t.Errorf("%s: frame %d is inlined: %v", got.Address, n, got.Frames[n].Inlined)
			}
		}
		if got.Address != fmt.Sprintf("%#x", addrs[k]) || !slices.Equal(frames, want[k]) {
			if wrong++; wrong < 5 {
				t.Errorf("%#x: %s %q, want %q", addrs[k], got.Address, frames, want[k])
			}
		}
	}
}

func TestLookupAnswersAsLLVMDoes(t *testing.T) {
	for _, flags := range [][]string{{"-pie", "-fPIE"}, {"-no-pie", "-fno-pie"}, {"-gdwarf-4"}, {"-gz=zlib"}} {
		t.Run(flags[0], func(t *testing.T) {
			path := compileDebug(t, flags...)
			t.Chdir(t.TempDir())
			addrs := functionAddresses(t, path)
			checkLookup(t, path, path, addrs)
			if a := callreel("", "symbols", "build", path); a.code != exitDone || !strings.HasPrefix(a.stdout, "prog.symmap: ") {
				t.Fatalf("%+v", a)
			}
			checkLookup(t, "prog.symmap", path, addrs)
		})
	}
}

func TestLookupOfRelocatableFilesIsByOffsetInText(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "module.c", []byte(module))
	for _, flags := range [][]string{{"-g"}, {"-gdwarf-4"}, {"-g", "-mcmodel=kernel", "-fno-pie"}} {
		realtest.Output(t, dir, realtest.GCC, append(flags, "-O1", "-c", "module.c", "-o", "module.ko")...)
		path := filepath.Join(dir, "module.ko")
		checkLookup(t, path, path, functionAddresses(t, path))
	}
}

func TestLookupFindsTheSeparateDebugFile(t *testing.T) {
	path := compileDebug(t)
	addrs := functionAddresses(t, path)
	whole := path + ".whole"
	realtest.Must(t, os.Rename(path, whole))
	dirs := map[string][]string{"": nil, "elsewhere": {"--debug-dir", filepath.Join(filepath.Dir(path), "elsewhere")}}
	for sub, args := range dirs {
		folder := filepath.Join(filepath.Dir(path), sub)
		realtest.Must(t, os.MkdirAll(folder, 0o755))
		debug := filepath.Join(folder, "prog.debug")
		realtest.Output(t, folder, realtest.Objcopy, "--only-keep-debug", whole, debug)
		realtest.Output(t, folder, realtest.Objcopy, "--strip-all", "--add-gnu-debuglink="+debug, whole, path)
		checkLookup(t, path, whole, addrs, args...)
		realtest.Must(t, os.Remove(debug))
	}
}

func TestLookupOfMachOTakesThePartOfAFatFile(t *testing.T) {
	realtest.Need(t, realtest.Clang, realtest.LD64, realtest.Dsymutil)
	dir := t.TempDir()
	source := strings.NewReplacer(hostileFunction, "", " + hostile(argc)", "").Replace(inlining) // no such name in Mach-O
	write(t, dir, "prog.cc", []byte(source))
	for arch, target := range map[string]string{"arm64": "arm64-apple-macos11", "x86_64": "x86_64-apple-macos10.15"} {
		realtest.Output(t, dir, realtest.Clang, "-target", target, "-g", "-O1", "-nostdinc", "-ffreestanding", "-c", "prog.cc", "-o", arch+".o")
		realtest.Output(t, dir, realtest.LD64, "-arch", arch, "-platform_version", "macos", "11.0", "11.0", "-e", "_main", "-undefined", "dynamic_lookup",
			"-o", arch, arch+".o")
		realtest.Output(t, dir, realtest.Dsymutil, arch, "-o", arch+".dSYM")
	}
	lipo, err := exec.LookPath("llvm-lipo-19")
	if err != nil {
		t.Skip("missing capability: llvm-lipo-19")
	}
	fat := filepath.Join(dir, "fat")
	realtest.Must(t, exec.Command(lipo, "-create", filepath.Join(dir, "arm64"), filepath.Join(dir, "x86_64"), "-output", fat).Run())
	for _, arch := range []string{"arm64", "x86_64"} {
		addrs := functionAddresses(t, filepath.Join(dir, arch))
		dsym := filepath.Join(dir, arch+".dSYM", "Contents", "Resources", "DWARF", arch)
		var aligned []uint64
		for _, a := range addrs {
			if a%4 == 0 {
				aligned = append(aligned, a)
			}
		}
		checkLookup(t, fat, dsym, aligned, "--arch", arch, "--debug-dir", dir)
	}
	if a := callreel("", "symbols", "lookup", fat, "0"); a.code != exitUsage || !strings.Contains(a.stderr, "--arch") || !strings.Contains(a.stderr, "x86_64") {
		t.Errorf("%+v", a)
	}
	if a := callreel("", "symbols", "build", "--arch", "ppc", "-o", filepath.Join(dir, "out"), fat); a.code != exitUsage || !strings.Contains(a.stderr, "ppc") {
		t.Errorf("%+v", a)
	}
	info := realtest.DecodeExactly[fileInfo](t, callreel("", "symbols", "info", fat, "--json").stdout)
	if slices.Sort(info.Slices); !slices.Equal(info.Slices, []string{"arm64", "x86_64"}) {
		t.Errorf("%+v", info)
	}
}

func TestLookupForPeopleIsSafeForATerminal(t *testing.T) {
	path := compileDebug(t)
	var addr uint64
	im, err := object.Open(path)
	realtest.Must(t, err)
	defer im.Close()
	list, err := im.Symbols()
	realtest.Must(t, err)
	for _, s := range list {
		if strings.Contains(s.Name, "\x1b") {
			addr = s.Addr
		}
	}
	top := functionAddresses(t, path)[0]
	a := callreel("", "symbols", "lookup", path, fmt.Sprintf("%x", addr), fmt.Sprintf("0x%X", top), "fff0000000000000")
	checkTerminalSafe(t, a.stdout)
	lines := strings.Split(a.stdout, "\n")
	if a.code != exitDone || !strings.HasPrefix(lines[0], fmt.Sprintf(`%#x: ev\x1b[31mil at `, addr)) || !strings.Contains(a.stdout, fmt.Sprintf("\n%#x: ", top)) ||
		!strings.Contains(a.stdout, "\n0xfff0000000000000: ?? ") {
		t.Errorf("%+v", a)
	}
	j := callreel("", "symbols", "lookup", path, fmt.Sprintf("%x", addr), "--json")
	checkTerminalSafe(t, j.stdout)
	if got := realtest.DecodeExactly[lookedUp](t, j.stdout); len(got.Frames) != 1 || got.Frames[0].Linkage != "ev\x1b[31mil" {
		t.Errorf("%s", j.stdout)
	}
}

func TestLookupAnswersEachLineBeforeItAsksForMore(t *testing.T) {
	path := compileDebug(t)
	addr := functionAddresses(t, path)[0]
	m, err := openMap(t.Context(), newStatus(io.Discard), path, "", memoryLimit{}, nil)
	realtest.Must(t, err)
	defer m.Close()
	for _, asJSON := range []bool{false, true} {
		in, out := io.Pipe()
		answers, w := io.Pipe()
		done := make(chan error, 1)
		go func() {
			l := newLookup(m, w, asJSON)
			done <- l.lines(in)
			w.Close()
		}()
		buf := make([]byte, 1<<16)
		for range 3 {
			_, err := fmt.Fprintf(out, "%x\n", addr)
			realtest.Must(t, err)
			n, err := answers.Read(buf)
			if err != nil || !strings.Contains(string(buf[:n]), fmt.Sprintf("%#x", addr)) || buf[n-1] != '\n' {
				t.Fatalf("%q, %v", buf[:n], err)
			}
		}
		realtest.Must(t, out.Close())
		realtest.Must(t, <-done)
	}
}

func TestLookupGoesOnBehindLinesThatAreNoAddress(t *testing.T) {
	path := compileDebug(t)
	addr := functionAddresses(t, path)[0]
	in := fmt.Sprintf("%x\r\n\n  zz \n%s\n-1\n12345678901234567\n%#x", addr, strings.Repeat("9", 200_000), addr)
	for _, args := range [][]string{{"symbols", "lookup", path}, {"symbols", "lookup", path, "--json"}} {
		a := callreel(in, args...)
		checkTerminalSafe(t, a.stdout)
		if a.code != exitFailed || strings.Count(a.stdout, fmt.Sprintf("%#x", addr)) != 2 || strings.Count(a.stdout, "not an address") != 4 || !strings.Contains(a.stderr, "4 lines") {
			t.Errorf("%+v", a)
		}
	}
}

func TestHundredThousandAddressesAreAnsweredInOneGo(t *testing.T) {
	path := compileDebug(t)
	addrs := functionAddresses(t, path)
	many := make([]uint64, 100_000)
	for k := range many {
		many[k] = addrs[k*31%len(addrs)]
	}
	start := time.Now()
	a := callreel(addressLines(many), "symbols", "lookup", path, "--json")
	t.Logf("%v", time.Since(start))
	if n := strings.Count(a.stdout, "\n"); a.code != exitDone || n != len(many) {
		t.Errorf("code %d, %d lines", a.code, n)
	}
	d := json.NewDecoder(strings.NewReader(a.stdout))
	for k := range many {
		var got lookedUp
		realtest.Must(t, d.Decode(&got))
		if got.Address != fmt.Sprintf("%#x", many[k]) || len(got.Frames) == 0 {
			t.Fatalf("line %d: %+v, want %#x", k, got, many[k])
		}
	}
}

func TestBuildReplacesNothingWithoutForce(t *testing.T) {
	path := compileDebug(t)
	t.Chdir(t.TempDir())
	out := write(t, ".", "prog.symmap", []byte("precious"))
	if a := callreel("", "symbols", "build", path); a.code != exitUsage || !strings.Contains(a.stderr, "--force") {
		t.Errorf("%+v", a)
	}
	if text, _ := os.ReadFile(out); string(text) != "precious" {
		t.Errorf("%q", text)
	}
	if a := callreel("", "symbols", "build", "-f", path); a.code != exitDone || a.stderr != "" {
		t.Errorf("%+v", a)
	}
	m, err := symbols.Open(out)
	realtest.Must(t, err)
	realtest.Must(t, m.Close())
	if a := callreel("", "symbols", "build", "-f", "--json", path); a.code != exitDone {
		t.Errorf("%+v", a)
	} else if got := realtest.DecodeExactly[builtMap](t, a.stdout); got.Map != out || got.Functions == 0 || got.Inlines == 0 || got.DWARF == 0 || got.Problems != 0 {
		t.Errorf("%+v", got)
	}
	if a := callreel("", "symbols", "build", "-o", "-", path); a.code != exitDone || !symbols.IsMap([]byte(a.stdout)) {
		t.Errorf("code %d, %d bytes, %s", a.code, len(a.stdout), a.stderr)
	}
	if a := callreel("", "symbols", "build", "-f", "-o", path, path); a.code != exitUsage || !strings.Contains(a.stderr, "the image itself") {
		t.Errorf("%+v", a)
	}
	left, err := os.ReadDir(".")
	realtest.Must(t, err)
	if len(left) != 1 {
		t.Errorf("%v", left)
	}
}

func TestBuildOfAFolderFillsAStore(t *testing.T) {
	path := compileDebug(t, "-Wl,--build-id=0xabcdef01")
	tree, store := t.TempDir(), filepath.Join(t.TempDir(), "store")
	realtest.Must(t, os.MkdirAll(filepath.Join(tree, "bin", "deep"), 0o755))
	realtest.Must(t, os.MkdirAll(filepath.Join(tree, "debug"), 0o755))
	// Stripped file and debug file lie apart, and nothing but their ID says that they belong together.
	realtest.Output(t, tree, realtest.Objcopy, "--strip-all", path, filepath.Join(tree, "bin", "deep", "prog"))
	realtest.Output(t, tree, realtest.Objcopy, "--only-keep-debug", path, filepath.Join(tree, "debug", "other.name"))
	noID := compileDebug(t, "-Wl,--build-id=none")
	realtest.Must(t, os.Rename(noID, filepath.Join(tree, "noid")))
	write(t, tree, "Class.class", []byte("\xca\xfe\xba\xbe\x00\x00\x00\x34junk"))
	write(t, tree, "notes", []byte("no image"))

	a := callreel("", "symbols", "build", "-o", store, tree)
	if a.code != exitDone || !strings.Contains(a.stdout, "1 map made, 0 there already, 0 failed") || !strings.Contains(a.stderr, "without an ID") {
		t.Errorf("%+v", a)
	}
	s, err := symbols.OpenStore(store)
	realtest.Must(t, err)
	m, err := s.Get("abcdef01")
	realtest.Must(t, err)
	if !m.HasDWARF() {
		t.Error("made without the debug file")
	}
	realtest.Must(t, m.Close())

	bad := write(t, tree, "ba\x1bd", []byte("\x7fELF\x02\x01\x01"))
	a = callreel("", "symbols", "build", "-o", store, tree)
	if a.code != exitFailed || !strings.Contains(a.stdout, "0 maps made, 1 there already, 1 failed") || !strings.Contains(a.stderr, printable(bad)) {
		t.Errorf("%+v", a)
	}
	checkTerminalSafe(t, a.stderr)
	if a = callreel("", "symbols", "build", "-f", "-o", store, tree); !strings.Contains(a.stdout, "1 map made") {
		t.Errorf("%+v", a)
	}
	a = callreel("", "symbols", "build", "--json", "-o", store, tree)
	if got := realtest.DecodeExactly[builtStore](t, a.stdout); a.code != exitFailed || got != (builtStore{Store: store, There: 1, Failed: 1}) {
		t.Errorf("%+v", a)
	}
	// Without -o it is the store that symbolize asks.
	if a = callreel("", "symbols", "build", filepath.Join(tree, "bin"), "--debug-dir", filepath.Join(tree, "debug")); a.code != exitDone {
		t.Errorf("%+v", a)
	}
	dir, err := defaultStore()
	realtest.Must(t, err)
	if _, err := os.Stat(filepath.Join(dir, "ab", "cdef01.symmap")); err != nil {
		t.Error(err)
	}
}

func TestInfoHasThePromisedKeys(t *testing.T) {
	path := compileDebug(t, "-gdwarf-4", "-Wl,--build-id=0xabcdef01", "-gz=zlib")
	a := callreel("", "symbols", "info", path, "--json")
	for _, key := range []string{`"format":"ELF"`, `"arch":"amd64"`, `"id":"abcdef01"`, `"segments":[{`, `"debug":{`, `"dwarf_versions":[4]`, `"units":`, `"companions":[`} {
		if !strings.Contains(a.stdout, key) {
			t.Errorf("no %s in %s", key, a.stdout)
		}
	}
	info := realtest.DecodeExactly[fileInfo](t, a.stdout)
	if !info.Debug.Compressed || info.Debug.Units != 1 || info.Debug.Symbols == 0 || len(info.Segments) < 2 {
		t.Errorf("%+v", info)
	}
	headers := realtest.Output(t, ".", realtest.Objdump, "-p", path)
	if got, want := len(info.Segments), strings.Count(headers, "LOAD off"); got != want {
		t.Errorf("%d segments, objdump has %d", got, want)
	}
	out := filepath.Join(t.TempDir(), "map")
	if b := callreel("", "symbols", "build", "-o", out, path); b.code != exitDone {
		t.Fatalf("%+v", b)
	}
	if m := realtest.DecodeExactly[fileInfo](t, callreel("", "symbols", "info", out, "--json").stdout); m.ID != "abcdef01" || m.Map == nil || m.Map.Functions == 0 || m.Arch != "amd64" {
		t.Errorf("%+v", m)
	}
	for _, file := range []string{path, out} {
		text := callreel("", "symbols", "info", file)
		checkTerminalSafe(t, text.stdout)
		if !strings.Contains(text.stdout, "abcdef01") {
			t.Errorf("%+v", text)
		}
	}
}

func TestSymbolsUsageIsSaidInWords(t *testing.T) {
	path := compileDebug(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"symbols"}, "Verbs:"},
		{[]string{"symbols", "bild"}, "build"},
		{[]string{"symbols", "build"}, "one FILE"},
		{[]string{"symbols", "build", "a", "b"}, "one FILE"},
		{[]string{"symbols", "build", "--arch", "arm64", t.TempDir()}, "is a folder"},
		{[]string{"symbols", "build", "-o", "-", t.TempDir()}, "not stdout"},
		{[]string{"symbols", "build", "-o", t.TempDir(), path}, "is a directory"},
		{[]string{"symbols", "lookup"}, "a MAP or a FILE"},
		{[]string{"symbols", "lookup", path, "xyz"}, "not a hexadecimal address"},
		{[]string{"symbols", "lookup", path, "11112222333344445"}, "not a hexadecimal address"},
		{[]string{"symbols", "info"}, "one FILE"},
		{[]string{"symbols", "serve"}, "one STORE"},
		{[]string{"symbols", "serve", t.TempDir(), "--public", "push"}, "is no service"},
		{[]string{"symbols", "serve", t.TempDir(), "--log", "xml"}, "text or json"},
		{[]string{"symbols", "serve", t.TempDir(), "--log-level", "loud"}, "debug, info"},
		{[]string{"symbols", "serve", t.TempDir(), "--tls-cert", "x"}, "go together"},
		{[]string{"symbols", "serve", t.TempDir(), "--token-file", "/dev/null"}, "has no token"},
		{[]string{"symbols", "push", t.TempDir()}, "--to URL"},
		{[]string{"symbols", "push", t.TempDir(), "--to", "ftp://x"}, "http or https"},
		{[]string{"symbols", "prune", t.TempDir()}, "--max-age"},
		{[]string{"symbols", "prune", t.TempDir(), "--max-age", "-1d"}, "is not an age"},
		{[]string{"symbolize", "a", "b"}, "one FILE"},
		{[]string{"symbolize", "--wibble"}, "symbolize --help"},
	} {
		a := callreel("", c.args...)
		if a.code != exitUsage || a.stdout != "" || !strings.Contains(a.stderr, c.want) || !strings.HasPrefix(a.stderr, "callreel") && c.want != "Verbs:" {
			t.Errorf("%q: %+v, want %q", c.args, a, c.want)
		}
	}
	missing := filepath.Join(t.TempDir(), "missing")
	text := write(t, t.TempDir(), "text", []byte("hello\n"))
	for _, file := range []string{missing, text} {
		for _, args := range [][]string{{"symbols", "build", "-o", filepath.Join(t.TempDir(), "out"), file}, {"symbols", "lookup", file, "0"}, {"symbols", "info", file},
			{"symbolize", "--image", file}} {
			if a := callreel("", args...); a.code != exitFailed || a.stdout != "" || !strings.Contains(a.stderr, file) {
				t.Errorf("%q: %+v", args, a)
			}
		}
	}
}

func TestHelpOfEachSymbolsVerbHasAnExample(t *testing.T) {
	for _, verb := range []string{"build", "lookup", "info", "serve", "push", "prune"} {
		a := callreel("", "symbols", verb, "--help")
		for _, want := range []string{"Usage:\n  callreel symbols " + verb, "Examples:\n  callreel symbols " + verb, "Flags:"} {
			if a.code != exitDone || !strings.Contains(a.stdout, want) {
				t.Errorf("%s: no %q in\n%s", verb, want, a.stdout)
			}
		}
	}
}

func FuzzLookupAnswersEveryLine(f *testing.F) {
	f.Add("1f\n\n0x10 \r\nzz\n")
	f.Add("ffffffffffffffff0\n-1\n0X1")
	m := emptyMap(f)
	f.Fuzz(func(t *testing.T, in string) {
		var asked int
		for line := range strings.Lines(in) {
			if strings.TrimSpace(line) != "" {
				asked++
			}
		}
		for _, asJSON := range []bool{false, true} {
			var b bytes.Buffer
			_ = newLookup(m, &b, asJSON).lines(strings.NewReader(in)) // says whether lines were wrong
			if n := strings.Count(b.String(), "\n"); n != asked {
				t.Fatalf("%q: %d answers to %d lines:\n%s", in, n, asked, b.String())
			}
			for line := range strings.Lines(b.String()) {
				controls := strings.IndexFunc(strings.TrimSuffix(line, "\n"), unicode.IsControl) >= 0
				if asJSON && (!json.Valid([]byte(line)) || controls) {
					t.Fatalf("%q: %q", in, line)
				}
			}
			if !asJSON {
				checkTerminalSafe(t, b.String())
			}
		}
	})
}

// emptyMap is the map of the smallest ELF file, which has no code.
func emptyMap(t testing.TB) *symbols.Map {
	t.Helper()
	header := make([]byte, 64)
	copy(header, "\x7fELF\x02\x01\x01")
	header[16], header[18] = 2, 62 // ET_EXEC, EM_X86_64
	im, err := object.Parse("empty", header)
	var b bytes.Buffer
	if err == nil {
		_, err = symbols.Build(t.Context(), im, &b, symbols.BuildOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	m, err := symbols.Parse("empty", b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestProgressTellsRateAndRemainingTime(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "tty"))
	realtest.Must(t, err)
	defer f.Close()
	p := newProgress(&status{w: f, tty: f})
	p.bytes("early", 1, 2)
	p.start = p.start.Add(-10 * time.Second)
	p.bytes("reading\x1b", 25<<20, 100<<20)
	p.clear()
	text, err := os.ReadFile(f.Name())
	realtest.Must(t, err)
	if s := string(text); strings.Contains(s, "early") || !strings.Contains(s, `reading\x1b: 25 %, 2.5 MiB/s, 30s left`) {
		t.Errorf("%q", s)
	}
}
