package main

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/recorder"
)

// promisedFunctions has exactly the keys of functions --json.
type promisedFunctions struct {
	Functions []listedFunction `json:"functions"`
	Images    []coveredImage   `json:"images"`
}

func TestFunctionsJSONHasThePromisedKeys(t *testing.T) {
	list := []recorder.Function{
		{Name: "f", Module: "prog", Address: 0x401000, Size: 64, Tier: "exit-site"},
		{Name: "g", Module: "prog", Address: 0x401040, Size: 1, Reason: "entry-too-short"},
	}
	var b bytes.Buffer
	realtest.Must(t, functionsJSON(&b, &recorder.Listing{Functions: list}))
	got := realtest.DecodeExactly[promisedFunctions](t, b.String())
	want := []listedFunction{{"f", "prog", "0x401000", 64, "exit-site", "", ""}, {"g", "prog", "0x401040", 1, "", "entry-too-short", ""}}
	if !slices.Equal(got.Functions, want) {
		t.Errorf("%+v, want %+v", got.Functions, want)
	}
	for _, key := range []string{`"name":`, `"module":`, `"address":"0x`, `"size":`, `"tier":`, `"reason":`} {
		if n := strings.Count(b.String(), key); n != len(list) {
			t.Errorf("%s stands %d times in %s", key, n, b.String())
		}
	}
}

func TestFunctionsJSONOfNoneIsAnEmptyList(t *testing.T) {
	var b bytes.Buffer
	realtest.Must(t, functionsJSON(&b, &recorder.Listing{}))
	if got := realtest.DecodeExactly[promisedFunctions](t, b.String()); got.Functions == nil || len(got.Functions) != 0 {
		t.Errorf("%s", b.String())
	}
}

func TestFunctionsTextSumsUpAndIsSafeForATerminal(t *testing.T) {
	list := []recorder.Function{{Name: "f", Module: "prog", Size: 64, Tier: "exit-site"}}
	for _, name := range hostileNames {
		list = append(list, recorder.Function{Name: name, Module: name, Reason: "linkage"})
	}
	var b bytes.Buffer
	realtest.Must(t, functionsText(&b, &recorder.Listing{Functions: list}))
	checkTerminalSafe(t, b.String())
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != len(list)+2 {
		t.Fatalf("%d lines for %d functions:\n%s", len(lines), len(list), b.String())
	}
	if want := "1 of 16 functions can be traced (6.2 %)"; lines[len(list)] != want {
		t.Errorf("%q, want %q", lines[len(list)], want)
	}
	if f := strings.Fields(lines[len(list)+1]); !slices.Equal(f, []string{"15", "linkage"}) {
		t.Errorf("reasons: %q", f)
	}
}

// compile makes a program of C++ source with names of all kinds.
func compile(t *testing.T, source string) string {
	t.Helper()
	cc, err := exec.LookPath("g++")
	if err != nil || runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		if os.Getenv("CI") != "" {
			t.Fatalf("missing capability: g++ for linux/amd64 (%v)", err)
		}
		t.Skipf("missing capability: g++ for linux/amd64 (%v)", err)
	}
	dir := t.TempDir()
	out := filepath.Join(dir, "prog")
	if said, err := exec.Command(cc, "-O2", "-o", out, write(t, dir, "prog.cc", []byte(source))).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	return out
}

func TestFunctionsOfAFileAreChosenByGlobs(t *testing.T) {
	prog := compile(t, `
namespace ns {
struct box { int v[4]; __attribute__((noinline)) int &operator[](int i) { asm volatile("" ::: "memory"); return v[i & 3]; } };
template <class T> __attribute__((noinline)) T twice(T x) { asm volatile("" ::: "memory"); return x + x; }
}
extern "C" __attribute__((noinline)) int by_slash(int x) asm("\"pkg/sub.Func\"");
extern "C" __attribute__((noinline)) int by_slash(int x) { asm volatile("" ::: "memory"); return x * 3; }
int main(int argc, char **) { ns::box b{}; b[argc] = ns::twice<int>(argc); return b[1] + (int)ns::twice<double>(argc) + by_slash(argc); }
`)
	for _, c := range []struct {
		args []string
		want []string // demangled names, as the text has them
	}{
		{[]string{"-f", "main"}, []string{"main"}},
		{[]string{"-f", "pkg/*"}, []string{"pkg/sub.Func"}},
		{[]string{"-f", "*Func"}, []string{"pkg/sub.Func"}},
		{[]string{"-f", "*twice<*"}, []string{"double ns::twice<double>(double)", "int ns::twice<int>(int)"}},
		{[]string{"-f", "ns::twice"}, []string{"double ns::twice<double>(double)", "int ns::twice<int>(int)"}},
		{[]string{"-f", "ns::*", "-x", "*twice*"}, []string{"ns::box::operator[](int)"}},
		{[]string{"-f", "_ZN2ns3box*"}, []string{"ns::box::operator[](int)"}},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			a := callreel("", append([]string{"functions", prog}, c.args...)...)
			var got []string
			for line := range strings.Lines(a.stdout) {
				if _, name, found := strings.Cut(line, " prog!"); found {
					got = append(got, strings.TrimSpace(name))
				}
			}
			slices.Sort(got)
			if a.code != exitDone || !slices.Equal(got, c.want) {
				t.Errorf("code %d, %q, want %q\n%s", a.code, got, c.want, a.stderr)
			}
		})
	}
	if a := callreel("", "functions", prog, "-f", "mian"); a.code != exitUsage || !strings.Contains(a.stderr, "main") {
		t.Errorf("code %d, %q", a.code, a.stderr)
	}
	checkAddress(t, prog)
}

// checkAddress checks the address and size that functions --json gives for main against the symbol table.
func checkAddress(t *testing.T, prog string) {
	t.Helper()
	f, err := elf.Open(prog)
	realtest.Must(t, err)
	defer f.Close()
	symbols, err := f.Symbols()
	realtest.Must(t, err)
	list := realtest.DecodeExactly[promisedFunctions](t, callreel("", "functions", prog, "-f", "main", "--json").stdout).Functions
	for _, s := range symbols {
		if s.Name != "main" {
			continue
		}
		if len(list) != 1 || list[0].Address != "0x"+strconv.FormatUint(s.Value, 16) || list[0].Size != s.Size || list[0].Tier == "" {
			t.Errorf("main is %+v, the symbol table has it at %#x, %d bytes", list, s.Value, s.Size)
		}
		return
	}
	t.Error("no symbol main")
}

func TestFunctionsOfAFileOfARM64AreListedOnAnyMachine(t *testing.T) {
	realtest.Need(t, realtest.Clang, realtest.LLD)
	source := filepath.Join(t.TempDir(), "prog.c")
	realtest.Must(t, os.WriteFile(source, []byte(`
__attribute__((noinline)) int leaf(int n) { asm volatile("" ::: "memory"); return n * 3; }
__attribute__((noinline)) int tail(int n) { asm volatile("" ::: "memory"); return leaf(n + 1); }
void _start(void) { for (;;) tail(2); }
`), 0o600))
	prog := filepath.Join(t.TempDir(), "prog")
	if text, err := exec.Command("clang-19", "--target=aarch64-linux-gnu", "-O2", "-nostdlib", "-static", "-fuse-ld=lld-19", "-o", prog, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	a := callreel("", "functions", prog, "--json")
	list := realtest.DecodeExactly[promisedFunctions](t, a.stdout).Functions
	if a.code != exitDone || len(list) != 3 {
		t.Fatalf("code %d, %d functions: %s", a.code, len(list), a.stderr)
	}
	for _, f := range list {
		if f.Tier != "exit-site" || f.Reason != "" {
			t.Errorf("%s: %q, %q", f.Name, f.Tier, f.Reason)
		}
	}
}
