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
)

func TestExportWritesChromeTraceJSON(t *testing.T) {
	path := makeReel(t, "main", "outer", "_Z5innerv")
	out := filepath.Join(t.TempDir(), "out.json")
	if a := callreel("", "export", path, "--format", "chrome", "-o", out); a.code != exitDone || a.stdout+a.stderr != "" {
		t.Fatalf("code %d, stdout %q, stderr %q", a.code, a.stdout, a.stderr)
	}
	file, err := os.ReadFile(out)
	must(t, err)
	stdout := callreel("", "export", path, "--format", "chrome", "-o", "-").stdout
	if stdout != string(file) {
		t.Errorf("-o - writes %q, -o FILE %q", stdout, file)
	}
	var trace struct {
		TraceEvents []struct{ Ph, Name string }
	}
	must(t, json.Unmarshal(file, &trace))
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
	must(t, os.Chmod(out, 0o600))
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
	if err := writeOutput(filepath.Join(dir, "new"), false, fail); !errors.Is(err, full) {
		t.Errorf("new: %v", err)
	}
	old := write(t, dir, "old", []byte("mine"))
	if err := writeOutput(old, true, fail); !errors.Is(err, full) {
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

func TestOutputGoesThroughLinksAndIntoDevices(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs symbolic links and /dev/null")
	}
	hello := func(w io.Writer) error { _, err := io.WriteString(w, "hello"); return err }
	dir := t.TempDir()
	target, link := write(t, dir, "target", []byte("mine")), filepath.Join(dir, "link")
	must(t, os.Symlink(target, link))
	if err := writeOutput(link, false, hello); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a link to a file, without force: %v", err)
	}
	must(t, writeOutput(link, true, hello))
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", info, err)
	}
	if data, _ := os.ReadFile(target); string(data) != "hello" {
		t.Errorf("behind the link is %q", data)
	}
	must(t, writeOutput(os.DevNull, false, hello))
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode()&fs.ModeDevice == 0 {
		t.Errorf("%s is %v, %v", os.DevNull, info, err)
	}
}
