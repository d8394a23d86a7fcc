package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/reel"
)

// strippedProgram is a program without symbols, and its debug file.
type strippedProgram struct {
	path, id  string
	debugDir  string
	debugFile string
	process   *realtest.Proc
	before    string // what was mapped in it before anybody came
}

// startStripped starts the program "arguments" without its symbols. It calls texts and others until the test ends.
func startStripped(t *testing.T) *strippedProgram {
	t.Helper()
	realtest.Need(t, realtest.LivePtrace, realtest.GCC, realtest.Objcopy)
	realtest.CallreelPath(t) // from the cache that others use, too
	whole := realtest.Build(t, "arguments", "-g", "-Wl,--build-id")
	dir := t.TempDir()
	p := &strippedProgram{path: filepath.Join(dir, "server"), debugDir: filepath.Join(dir, "debug")}
	p.debugFile = filepath.Join(p.debugDir, "server.debug")
	realtest.Must(t, os.Mkdir(p.debugDir, 0o700))
	objcopy := realtest.Tool(t, realtest.Objcopy)
	realtest.Must(t, exec.Command(objcopy, "--strip-all", whole, p.path).Run())
	realtest.Must(t, exec.Command(objcopy, "--only-keep-debug", whole, p.debugFile).Run())
	im, err := object.Open(p.path)
	realtest.Must(t, err)
	p.id = im.ID()
	realtest.Must(t, im.Close())
	p.process = realtest.StartCommand(t, exec.Command(p.path, "1000000000000"))
	time.Sleep(100 * time.Millisecond) // until its libraries are there
	p.before = p.maps(t)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("DEBUGINFOD_URLS", "")
	return p
}

// maps is what the process has mapped, but for how far its heap and its stack reach.
func (p *strippedProgram) maps(t *testing.T) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", p.process.Pid()))
	if err != nil {
		t.Error(err)
	}
	var kept []string
	for line := range strings.Lines(string(text)) {
		if !strings.Contains(line, "[heap]") && !strings.Contains(line, "[stack]") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

// serveDebugFile serves the debug file by its ID, as debuginfod does, and nothing else. When it is asked for, the process must be as it was.
func (p *strippedProgram) serveDebugFile(t *testing.T) (url string, served *atomic.Int32) {
	t.Helper()
	served = new(atomic.Int32)
	var mu sync.Mutex
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if p.maps(t) != p.before {
			t.Error("the process was touched before all was fetched")
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.process.Pid()))
		if err != nil || !strings.Contains(string(status), "TracerPid:\t0\n") {
			t.Errorf("the process is traced while something is fetched: %v", err)
		}
		if r.URL.Path != "/buildid/"+p.id+"/debuginfo" {
			http.NotFound(w, r)
			return
		}
		served.Add(1)
		http.ServeFile(w, r, p.debugFile)
	}))
	t.Cleanup(s.Close)
	return s.URL, served
}

// check asserts that verbs about the process choose, type and show by the debug file.
func (p *strippedProgram) check(t *testing.T, flags ...string) {
	t.Helper()
	pid := strconv.Itoa(p.process.Pid())
	run := func(args ...string) realtest.Result {
		t.Helper()
		return realtest.MustCallreel(t, append(append(args, "-p", pid), flags...)...)
	}
	file := filepath.Join(t.TempDir(), "args.reel")
	if r := run("functions", "-m", "server", "-f", "texts", "--json"); strings.Count(r.Stdout, `"name":"texts"`) != 1 {
		t.Errorf("functions: %s", r.Stdout)
	}
	r := run("record", "-m", "server", "-f", "mixed", "--args", "texts(s, n)", "--ret", "mixed", "-d", "200ms", "-o", file)
	if strings.Contains(r.Stderr, "debug information") || strings.Contains(r.Stderr, "DWARF") {
		t.Errorf("record: %s", r.Stderr)
	}
	p.checkArguments(t, file)
	r = run("record", "-m", "server", "--when", "mixed == 77", "-f", "mixed", "-d", "200ms", "-o", t.TempDir())
	if strings.Contains(r.Stderr, "taken for an int") {
		t.Errorf("record --when: %s", r.Stderr)
	}
	if r := run("stacks", "--json"); !strings.Contains(r.Stdout, `"function":"main"`) || !strings.Contains(r.Stdout, "arguments.c") {
		t.Errorf("stacks: %s", r.Stdout)
	}
	if r := run("sample", "--wall", "-r", "100", "-d", "200ms", "--format", "folded", "-o", "-"); !strings.Contains(r.Stdout, ";main") {
		t.Errorf("sample: %s", r.Stdout)
	}
	if r := run("top", "-m", "server", "-f", "texts", "--once", "--json", "--interval", "200ms"); !strings.Contains(r.Stdout, `"texts"`) {
		t.Errorf("top: %s", r.Stdout)
	}
}

// checkArguments asserts that the reel has typed arguments and results, and the names.
func (p *strippedProgram) checkArguments(t *testing.T, file string) {
	t.Helper()
	f, err := reel.Open(file)
	realtest.Must(t, err)
	defer f.Close()
	names := map[string]uint32{}
	f.Functions(func(id uint32, fn reel.Function) bool { names[fn.Name] = id; return true })
	if names["texts"] == 0 || names["mixed"] == 0 || len(names) != 2 {
		t.Fatalf("functions %v", names)
	}
	got, err := json.Marshal([]any{f.Arguments(names["texts"], false), f.Arguments(names["mixed"], true)})
	realtest.Must(t, err)
	for _, want := range []string{`"Name":"s","Type":"char*"`, `"Name":"n","Type":"int"`, `"Name":"return","Type":"_Bool"`} {
		if !strings.Contains(string(got), want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
}

func TestLiveVerbsNameAndTypeByDebugDir(t *testing.T) {
	p := startStripped(t)
	if r := realtest.Callreel(t, "functions", "-p", strconv.Itoa(p.process.Pid()), "-m", "server", "-f", "texts"); r.Code != exitUsage {
		t.Errorf("without a debug file: %+v", r)
	}
	p.check(t, "--debug-dir", p.debugDir)
}

func TestLiveVerbsNameAndTypeByWhatAServerHas(t *testing.T) {
	p := startStripped(t)
	url, served := p.serveDebugFile(t)
	t.Setenv("DEBUGINFOD_URLS", url)
	p.check(t)
	if served.Load() != 1 {
		t.Errorf("the debug file was fetched %d times", served.Load())
	}
	// Each verb fetches by itself, too.
	pid := strconv.Itoa(p.process.Pid())
	for _, c := range []struct {
		want string
		args []string
	}{
		{`"main"`, []string{"stacks", "--json"}},
		{";main", []string{"sample", "--wall", "-r", "100", "-d", "100ms", "--format", "folded", "-o", "-"}},
		{"texts", []string{"record", "-m", "server", "-f", "texts", "-d", "100ms", "--json", "-o", filepath.Join(t.TempDir(), "texts.reel")}},
	} {
		t.Setenv("XDG_CACHE_HOME", t.TempDir())
		before := served.Load()
		if r := realtest.MustCallreel(t, append(c.args, "-p", pid)...); !strings.Contains(r.Stdout, c.want) || served.Load() != before+1 {
			t.Errorf("%v: fetched %d times: %s%s", c.args, served.Load()-before, r.Stdout, r.Stderr)
		}
	}
}

// A file of another ID names nothing, whatever it is called and whoever has it.
func TestAnotherProgramsDebugFileNamesNothing(t *testing.T) {
	p := startStripped(t)
	other := realtest.Build(t, "count", "-g", "-Wl,--build-id")
	objcopy := realtest.Tool(t, realtest.Objcopy)
	realtest.Must(t, exec.Command(objcopy, "--only-keep-debug", other, p.debugFile).Run())
	url, served := p.serveDebugFile(t)
	t.Setenv("DEBUGINFOD_URLS", url)
	r := realtest.MustCallreel(t, "functions", "-p", strconv.Itoa(p.process.Pid()), "-m", "server", "--debug-dir", p.debugDir, "--json")
	if served.Load() == 0 || strings.Contains(r.Stdout, `"counted`) || strings.Contains(r.Stdout, `"name":"main"`) || !strings.Contains(r.Stdout, `"server+0x`) {
		t.Errorf("%d times: %s%s", served.Load(), r.Stdout, r.Stderr)
	}
	if !strings.Contains(r.Stderr, "names and types may be missing") {
		t.Errorf("it isn't said: %q", r.Stderr)
	}
}

// A server that says nothing costs its limit once, and is told of once; the recording goes on without.
func TestASilentServerDelaysARecordingOnce(t *testing.T) {
	p := startStripped(t)
	address, taken := realtest.SilentServer(t)
	t.Setenv("DEBUGINFOD_URLS", "http://"+address)
	t.Setenv("DEBUGINFOD_TIMEOUT", "1")
	r := realtest.MustCallreel(t, "record", "-p", strconv.Itoa(p.process.Pid()), "--args", "server+0x*", "-d", "100ms", "-o", filepath.Join(t.TempDir(), "x.reel"))
	if n := strings.Count(r.Stderr, "names and types may be missing"); n != 1 || taken.Load() != 1 {
		t.Errorf("told %d times, asked %d times: %s", n, taken.Load(), r.Stderr)
	}
}

// The map that a store has names functions, too.
func TestFunctionsAreNamedByTheStore(t *testing.T) {
	p := startStripped(t)
	built := filepath.Join(t.TempDir(), "built")
	realtest.Must(t, os.Mkdir(built, 0o700))
	realtest.Must(t, os.Rename(p.debugFile, filepath.Join(built, "server.debug")))
	realtest.MustCallreel(t, "symbols", "build", built)
	r := realtest.MustCallreel(t, "functions", "-p", strconv.Itoa(p.process.Pid()), "-m", "server", "-f", "texts", "--json")
	if strings.Count(r.Stdout, `"name":"texts"`) != 1 {
		t.Errorf("%s", r.Stdout)
	}
}

// A name that a stripped file shows to others stays, unless symbols have one with fewer underscores.
func TestNamesForOthersGiveWayToPlainOnes(t *testing.T) {
	realtest.Need(t, realtest.GCC, realtest.Objcopy)
	const source = `
__attribute__((noinline, visibility("hidden"))) int plain(int n) { return n * 3 + 1; }
int __for_others(int n) __attribute__((alias("plain")));
__attribute__((noinline, visibility("hidden"))) int __inner(int n) { return n * 5 + 1; }
int shown(int n) __attribute__((alias("__inner")));
int main(int argc, char **argv) { return __for_others(argc) + shown(argc); }
`
	dir := t.TempDir()
	path, whole := filepath.Join(dir, "names"), filepath.Join(dir, "whole")
	realtest.Must(t, os.WriteFile(whole+".c", []byte(source), 0o600))
	realtest.Must(t, exec.Command(realtest.Tool(t, realtest.GCC), "-O1", "-g", "-rdynamic", "-Wl,--build-id", "-o", whole, whole+".c").Run())
	objcopy := realtest.Tool(t, realtest.Objcopy)
	realtest.Must(t, exec.Command(objcopy, "--strip-all", whole, path).Run())
	realtest.Must(t, exec.Command(objcopy, "--only-keep-debug", whole, path+".debug").Run())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("DEBUGINFOD_URLS", "")
	if a := callreel("", "functions", path, "--json"); !strings.Contains(a.stdout, `"name":"__for_others"`) {
		t.Errorf("stripped: %+v", a)
	}
	a := callreel("", "functions", path, "--json", "--debug-dir", dir)
	if !strings.Contains(a.stdout, `"name":"plain"`) || !strings.Contains(a.stdout, `"name":"shown"`) || strings.Contains(a.stdout, `"name":"__inner"`) {
		t.Errorf("%+v", a)
	}
	if a := callreel("", "functions", path, "--debug-dir", dir, "-f", "__for_others"); a.code != exitDone {
		t.Errorf("the name that it had is none any more: %+v", a)
	}
}
