package main

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

func TestExportWritesChromeTraceJSON(t *testing.T) {
	path := makeReel(t, "main", "outer", "_Z5innerv")
	out := filepath.Join(t.TempDir(), "out.json")
	if a := callreel("", "export", path, "--format", "chrome", "-o", out); a.code != exitDone || a.stdout+a.stderr != "" {
		t.Fatalf("code %d, stdout %q, stderr %q", a.code, a.stdout, a.stderr)
	}
	file, err := os.ReadFile(out)
	realtest.Must(t, err)
	stdout := callreel("", "export", path, "--format", "chrome", "-o", "-").stdout
	if stdout != string(file) {
		t.Errorf("-o - writes %q, -o FILE %q", stdout, file)
	}
	var trace struct {
		TraceEvents []struct{ Ph, Name string }
	}
	realtest.Must(t, json.Unmarshal(file, &trace))
	var calls []string
	for _, e := range trace.TraceEvents {
		if e.Ph == "B" {
			calls = append(calls, e.Name)
		}
	}
	if got := strings.Join(calls, " "); got != "outer inner()" {
		t.Errorf("calls are %q", got)
	}
}

func TestExportReplacesOnlyWithForce(t *testing.T) {
	path := makeReel(t, "main", "f")
	out := write(t, t.TempDir(), "out.json", []byte("mine"))
	realtest.Must(t, os.Chmod(out, 0o600))
	a := callreel("", "export", path, "--format", "chrome", "-o", out)
	if data, _ := os.ReadFile(out); a.code != exitUsage || string(data) != "mine" {
		t.Errorf("code %d, file %q", a.code, data)
	}
	a = callreel("", "export", path, "--format", "chrome", "-o", out, "-f")
	if data, _ := os.ReadFile(out); a.code != exitDone || !json.Valid(data) {
		t.Errorf("-f: code %d, stderr %q, file %q", a.code, a.stderr, data)
	}
	if info, err := os.Stat(out); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file's mode has become %v (%v)", info.Mode(), err)
	}
}

func TestExportOfADamagedReelWritesTheRestAndSaysSo(t *testing.T) {
	a := callreel("", "export", cutEvents(t, makeReel(t, "main", "f", "g")), "--format", "chrome", "-o", "-")
	if a.code != exitDone || !json.Valid([]byte(a.stdout)) || !strings.Contains(a.stderr, "is damaged: ") {
		t.Errorf("code %d, stderr %q, stdout %q", a.code, a.stderr, a.stdout)
	}
}

func TestOutputThatFailsLeavesNothingBehind(t *testing.T) {
	full := errors.New("disk full")
	fail := func(w io.Writer) error {
		if _, err := io.WriteString(w, "half"); err != nil {
			return err
		}
		return full
	}
	dir := t.TempDir()
	if err := writeOutput(filepath.Join(dir, "new"), false, 0, fail); !errors.Is(err, full) {
		t.Errorf("new: %v", err)
	}
	old := write(t, dir, "old", []byte("mine"))
	if err := writeOutput(old, true, 0, fail); !errors.Is(err, full) {
		t.Errorf("old: %v", err)
	}
	if data, _ := os.ReadFile(old); string(data) != "mine" {
		t.Errorf("the old file is now %q", data)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

func TestOutputReplacesLinksAndGoesIntoDevices(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs symbolic links and /dev/null")
	}
	hello := func(w io.Writer) error { _, err := io.WriteString(w, "hello"); return err }
	dir := t.TempDir()
	target, link := write(t, dir, "target", []byte("mine")), filepath.Join(dir, "link")
	realtest.Must(t, os.Symlink(target, link))
	if err := writeOutput(link, false, 0, hello); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a link to a file, without force: %v", err)
	}
	realtest.Must(t, writeOutput(link, true, 0, hello))
	if info, err := os.Lstat(link); err != nil || !info.Mode().IsRegular() {
		t.Errorf("the link was not replaced: %v, %v", info, err)
	}
	if data, _ := os.ReadFile(target); string(data) != "mine" {
		t.Errorf("behind the link is %q", data)
	}
	realtest.Must(t, writeOutput(os.DevNull, false, 0, hello))
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode()&fs.ModeDevice == 0 {
		t.Errorf("%s is %v, %v", os.DevNull, info, err)
	}
}

func TestExportWritesEachFormat(t *testing.T) {
	path := makeReel(t, "main", "outer", "_Z5innerv")
	for format, want := range map[string]string{
		"chrome": `"name":"inner()"`, "perfetto": "inner()", "speedscope": `"name":"inner()"`, "folded": "prog;outer;inner() 1000\n", "pprof": "\x1f\x8b",
	} {
		out := filepath.Join(t.TempDir(), "out")
		if a := callreel("", "export", path, "--format", format, "-o", out); a.code != exitDone || a.stdout+a.stderr != "" {
			t.Errorf("%s: code %d, stdout %q, stderr %q", format, a.code, a.stdout, a.stderr)
		}
		if data, err := os.ReadFile(out); err != nil || !strings.Contains(string(data), want) {
			t.Errorf("%s: no %q in %q, %v", format, want, data, err)
		}
	}
	if a := callreel("", "export", path, "--format", "folded", "--weight", "calls", "-o", "-"); a.stdout != "prog;outer 1\nprog;outer;inner() 1\n" {
		t.Errorf("--weight calls: %q, stderr %q", a.stdout, a.stderr)
	}
}

// bigReel has enough calls for several files of the smallest size.
func bigReel(t *testing.T) string {
	t.Helper()
	var events []reel.Event
	for i := range 2000 {
		at := uint64(2000 + 100*i)
		events = append(events, reel.Entry(at, 0x10000, 1), reel.Exit(at+50, 0x10000, 1))
	}
	return makeReelOf(t, []string{"f"}, events)
}

func TestExportSplitWritesNumberedFilesOrNone(t *testing.T) {
	path, dir := bigReel(t), t.TempDir()
	out := filepath.Join(dir, "out.json")
	names := func() (list []string) {
		entries, err := os.ReadDir(dir)
		realtest.Must(t, err)
		for _, e := range entries {
			data, err := os.ReadFile(filepath.Join(dir, e.Name()))
			realtest.Must(t, err)
			if e.Name() != "out-003.json" && !json.Valid(data) {
				t.Errorf("%s is no JSON", e.Name())
			}
			list = append(list, e.Name())
		}
		return list
	}
	mine := write(t, dir, "out-003.json", []byte("mine"))
	realtest.Must(t, os.Chmod(mine, 0o600))
	a := callreel("", "export", path, "--format", "chrome", "--split", "64K", "-o", out)
	if got := names(); a.code != exitUsage || len(got) != 1 || !strings.Contains(a.stderr, "out-003.json") {
		t.Errorf("with a file in the way: code %d, stderr %q, files %q", a.code, a.stderr, got)
	}
	a = callreel("", "export", path, "--format", "chrome", "--split", "64K", "-o", out, "-f")
	got := names()
	if a.code != exitDone || a.stdout != "" || len(got) < 4 || got[0] != "out-001.json" || got[2] != "out-003.json" || !strings.Contains(a.stderr, got[len(got)-1]) {
		t.Errorf("-f: code %d, stderr %q, files %q", a.code, a.stderr, got)
	}
	data, err := os.ReadFile(mine)
	realtest.Must(t, err)
	if info, err := os.Stat(mine); err != nil || !json.Valid(data) || info.Mode().Perm() != 0o600 {
		t.Errorf("%s: mode %v, %v", mine, info.Mode(), err)
	}
}

func TestExportSplitNeverReplacesTheReel(t *testing.T) {
	path := bigReel(t)
	reel := filepath.Join(filepath.Dir(path), "x-002.json")
	realtest.Must(t, os.Rename(path, reel))
	before, err := os.ReadFile(reel)
	realtest.Must(t, err)
	a := callreel("", "export", reel, "--format", "chrome", "--split", "64K", "-o", filepath.Join(filepath.Dir(path), "x.json"), "-f")
	after, err := os.ReadFile(reel)
	realtest.Must(t, err)
	if a.code != exitUsage || string(before) != string(after) || !strings.Contains(a.stderr, "the reel itself") {
		t.Errorf("code %d, stderr %q", a.code, a.stderr)
	}
}
