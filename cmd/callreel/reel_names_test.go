package main

import (
	"compress/gzip"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/internal/madereel"
	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/reel"
)

// strippedReel makes a reel of a program that was stripped, and is gone: counted_a had no name there. What debugDir has
// tells it.
func strippedReel(t *testing.T) (path, debugDir string) {
	t.Helper()
	realtest.Need(t, realtest.GCC, realtest.Objcopy)
	whole := realtest.Build(t, "threads", "-Wl,--build-id")
	dir := t.TempDir()
	debugDir = filepath.Join(dir, "debug")
	realtest.Must(t, os.Mkdir(debugDir, 0o700))
	objcopy, err := realtest.Objcopy.Find()
	realtest.Must(t, err)
	realtest.Must(t, exec.Command(objcopy, "--only-keep-debug", whole, filepath.Join(debugDir, "server.debug")).Run())
	f, err := elf.Open(whole)
	realtest.Must(t, err)
	defer f.Close()
	list, err := f.Symbols()
	realtest.Must(t, err)
	addr := uint64(0)
	for _, s := range list {
		if s.Name == "counted_a" {
			addr = s.Value
		}
	}
	im, err := object.Open(whole)
	realtest.Must(t, err)
	defer im.Close()
	path = filepath.Join(dir, "stripped.reel")
	header := reel.Header{PID: 4242, Exe: "/gone/server", Tool: "callreel test", Clock: madereel.Nanoseconds(1000)}
	w := madereel.Create(t, path, header, reel.Image{Path: "/gone/server", ID: im.ID(), Arch: "amd64"})
	_, err = w.AddFunctions([]reel.Function{{Name: fmt.Sprintf("server+0x%x", addr), Image: 1, Addr: addr, Size: 4}, {Name: "main", Image: 1, Addr: 1 << 40}})
	realtest.Must(t, err)
	madereel.Thread(t, w, reel.Thread{TID: 77, Process: 4242, Name: "main"}, reel.Entry(2000, 0x10000, 2), reel.Entry(2100, 0xff00, 1), reel.Exit(2500, 0xff00, 1), reel.Exit(3000, 0x10000, 2))
	realtest.Must(t, w.Close())
	return path, debugDir
}

func TestReportAndDiffNameFunctionsByDebugFiles(t *testing.T) {
	path, debugDir := strippedReel(t)
	t.Setenv("DEBUGINFOD_URLS", "")
	for _, verb := range [][]string{{"report", path}, {"diff", path, path}} {
		t.Setenv("XDG_CACHE_HOME", t.TempDir()) // with no map of the verb before
		if a := callreel("", append(verb, "--json")...); a.code != exitDone || strings.Contains(a.stdout, "counted_a") || !strings.Contains(a.stdout, `"server+0x`) {
			t.Errorf("%v: %+v", verb, a)
		}
		a := callreel("", append(verb, "--json", "--debug-dir", debugDir, "-f", "counted_a")...)
		var got struct {
			Functions []struct {
				Name, File string
				Line       int
				NameFrom   string `json:"name_from"`
			}
		}
		if err := json.Unmarshal([]byte(a.stdout), &got); err != nil || len(got.Functions) != 1 {
			t.Fatalf("%v: %v: %+v", verb, err, a)
		}
		if f := got.Functions[0]; f.Name != "counted_a" || filepath.Base(f.File) != "threads.c" || f.Line == 0 || verb[0] == "report" && f.NameFrom != "DWARF" {
			t.Errorf("%v: %+v", verb, f)
		}
	}
	if a := callreel("", "report", path, "--debug-dir", debugDir); !strings.Contains(a.stdout, "server!counted_a  (threads.c:") {
		t.Errorf("%s", a.stdout)
	}
	t.Setenv("DEBUGINFOD_URLS", "ftp://example.com")
	for _, verb := range [][]string{{"report", path}, {"diff", path, path}, {"view", path}, {"export", path, "--format", "folded", "-o", "-"}} {
		if a := callreel("", verb...); a.code != exitUsage || !strings.HasPrefix(a.stderr, "callreel "+verb[0]+": ") {
			t.Errorf("%v with a wrong URL: %+v", verb, a)
		}
	}
}

func TestExportsNameFunctionsByDebugFiles(t *testing.T) {
	path, debugDir := strippedReel(t)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("DEBUGINFOD_URLS", "")
	for format := range exportFormats {
		for _, lines := range []bool{false, true} {
			args := []string{"export", path, "--format", format, "--debug-dir", debugDir, "-o", "-"}
			if lines {
				args = append(args, "--lines")
			}
			a := callreel("", args...)
			if format == "folded" && lines {
				if a.code != exitUsage {
					t.Errorf("%v: %+v", args, a)
				}
				continue
			}
			out := a.stdout
			if format == "pprof" {
				z, err := gzip.NewReader(strings.NewReader(out))
				realtest.Must(t, err)
				plain, err := io.ReadAll(z)
				realtest.Must(t, err)
				out = string(plain)
			}
			placed := format != "folded" && (lines || format == "pprof" || format == "speedscope")
			if a.code != exitDone || !strings.Contains(out, "counted_a") || strings.Contains(out, "server+0x") || strings.Contains(out, "threads.c") != placed {
				t.Errorf("%v: code %d, %s%s", args, a.code, a.stderr, out)
			}
		}
	}
}

func TestThePageNamesFunctionsAndSaysByWhat(t *testing.T) {
	path, debugDir := strippedReel(t)
	s := startServing(t, false, []string{"XDG_CACHE_HOME=" + t.TempDir(), "DEBUGINFOD_URLS="}, "view", "--no-open", "--debug-dir", debugDir, path)
	answer, err := http.Get(s.url + "api/names?reel=0&ids=1,2")
	realtest.Must(t, err)
	defer answer.Body.Close()
	var got map[string]struct {
		Name, File string
		Line       int
		NameFrom   string `json:"name_from"`
	}
	realtest.Must(t, json.NewDecoder(answer.Body).Decode(&got))
	if f := got["1"]; f.Name != "counted_a" || f.NameFrom != "DWARF" || filepath.Base(f.File) != "threads.c" || f.Line == 0 {
		t.Errorf("%+v", f)
	}
	if f := got["2"]; f.Name != "main" || f.NameFrom != "" || f.File != "" {
		t.Errorf("%+v", f)
	}
}

func TestDiffSortsNoFunctionByAPercentileThatThereIsNot(t *testing.T) {
	whole := makeReelIn(t, "main", []string{"slower", "open_in_a"}, []reel.Event{
		reel.Entry(2000, 0x10000, 1), reel.Exit(3000, 0x10000, 1), reel.Entry(3100, 0xf000, 2),
	})
	other := makeReelIn(t, "main", []string{"slower", "open_in_a"}, []reel.Event{
		reel.Entry(2000, 0x10000, 1), reel.Exit(4000, 0x10000, 1), reel.Entry(4100, 0xf000, 2), reel.Exit(900_000, 0xf000, 2),
	})
	for _, key := range []string{"p50", "p99", "max"} {
		a := callreel("", "diff", "--sort", key, whole, other)
		if slower, open := strings.Index(a.stdout, "!slower"), strings.Index(a.stdout, "!open_in_a"); slower < 0 || open < slower {
			t.Errorf("--sort %s: %s%s", key, a.stdout, a.stderr)
		}
	}
}

func TestAttachWritesNamesIntoAReel(t *testing.T) {
	path, debugDir := strippedReel(t)
	before, err := os.ReadFile(path)
	realtest.Must(t, err)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("DEBUGINFOD_URLS", "")
	named := filepath.Join(filepath.Dir(path), "named.reel")
	for _, args := range [][]string{{path, "-o", path}, {path, "--force"}, {path, "-o", filepath.Dir(path)}, {}} {
		if a := callreel("", append([]string{"symbols", "attach"}, args...)...); a.code != exitUsage {
			t.Errorf("%v: %+v", args, a)
		}
	}
	a := callreel("", "symbols", "attach", path, "--debug-dir", debugDir, "-o", named, "--json")
	if a.code != exitDone || !strings.Contains(a.stdout, `"functions":1,"of":2`) {
		t.Fatalf("%+v", a)
	}
	if now, err := os.ReadFile(path); err != nil || string(now) != string(before) {
		t.Fatalf("-o has changed the reel: %v", err)
	}
	other, err := os.Open(path)
	realtest.Must(t, err)
	realtest.Must(t, unix.Flock(int(other.Fd()), unix.LOCK_EX))
	if a := callreel("", "symbols", "attach", path, "--debug-dir", debugDir); a.code != exitFailed || !strings.Contains(a.stderr, "another attach") {
		t.Errorf("while another attach writes: %+v", a)
	}
	realtest.Must(t, other.Close())
	if a := callreel("", "symbols", "attach", path, "--debug-dir", debugDir); a.code != exitDone {
		t.Fatalf("%+v", a)
	}
	inPlace, err := os.ReadFile(path)
	realtest.Must(t, err)
	if copied, err := os.ReadFile(named); err != nil || string(copied) != string(inPlace) || string(inPlace[:len(before)]) != string(before) {
		t.Fatalf("named with -o and in place, the reel is another (%v), or events were rewritten", err)
	}
	realtest.Must(t, os.RemoveAll(debugDir))
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	a = callreel("", "report", named, "--json")
	if !strings.Contains(a.stdout, `"name":"counted_a"`) || !strings.Contains(a.stdout, `/threads.c"`) || !strings.Contains(a.stdout, `"name_from":"DWARF"`) || !strings.Contains(a.stdout, `"closed":true`) {
		t.Errorf("%+v", a)
	}
	if a := callreel("", "symbols", "attach", path); a.code != exitDone || !strings.Contains(a.stdout, "of 0 of 2 functions") {
		t.Errorf("%+v", a)
	}
}

// Who has said where the symbols are wants to know why they are not used.
func TestWhyThereAreNoNamesIsTold(t *testing.T) {
	path, debugDir := strippedReel(t)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("DEBUGINFOD_URLS", "")
	debug := filepath.Join(debugDir, "server.debug")
	data, err := os.ReadFile(debug)
	realtest.Must(t, err)
	other := realtest.Build(t, "count", "-g", "-Wl,--build-id")
	for why, make := range map[string]func() error{
		"reach beyond the end of the file": func() error { return os.WriteFile(debug, data[:len(data)/2], 0o600) },
		"refused: it has ID":               func() error { return errors.Join(os.Remove(debug), os.Link(other, debug)) },
		"no debug file with this ID":       func() error { return os.Remove(debug) },
	} {
		realtest.Must(t, os.RemoveAll(debug))
		realtest.Must(t, os.WriteFile(debug, nil, 0o600))
		realtest.Must(t, make())
		for _, verb := range [][]string{{"report", path}, {"diff", path, path}, {"symbols", "attach", path}, {"export", path, "--format", "folded", "-o", "-"}} {
			a := callreel("", append(verb, "--debug-dir", debugDir)...)
			if a.code != exitDone || strings.Count(a.stderr, "no symbols found for ID") != 1 || !strings.Contains(a.stderr, why) {
				t.Errorf("%v, %s: %+v", verb, why, a)
			}
		}
	}
	// Nobody has asked for any.
	if a := callreel("", "report", path); a.code != exitDone || a.stderr != "" {
		t.Errorf("%+v", a)
	}
}

func TestAttachLeavesAReelAloneThatMayStillBeWritten(t *testing.T) {
	path, debugDir := strippedReel(t)
	whole, err := os.ReadFile(path)
	realtest.Must(t, err)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("DEBUGINFOD_URLS", "")
	open := write(t, t.TempDir(), "open.reel", whole[:len(whole)-20])
	if a := callreel("", "symbols", "attach", open, "--debug-dir", debugDir); a.code != exitUsage || !strings.Contains(a.stderr, "-o") {
		t.Errorf("%+v", a)
	}
	named := filepath.Join(filepath.Dir(open), "named.reel")
	if a := callreel("", "symbols", "attach", open, "--debug-dir", debugDir, "-o", named); a.code != exitDone || !strings.Contains(a.stderr, "were left out") {
		t.Errorf("%+v", a)
	}
	if a := callreel("", "report", named, "--json"); !strings.Contains(a.stdout, `"name":"counted_a"`) || !strings.Contains(a.stdout, `"closed":false`) || strings.Contains(a.stdout, "damaged") {
		t.Errorf("%+v", a)
	}
}
