package causes

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// Every program in C and C++ is built, serves for a moment, and ends by itself with its log.
func TestProgramsServeAndEnd(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace) // they run on Linux
	realtest.Need(t, realtest.GCC)
	realtest.Need(t, realtest.GXX)
	entries, err := source.ReadDir("source")
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, p := range append(All(), Controls()...) {
		used[p.file] = true
	}
	for _, e := range entries {
		file := e.Name()
		ext := filepath.Ext(file)
		if ext != ".c" && ext != ".cc" {
			continue
		}
		if !used[file] {
			t.Errorf("%s is of no plant", file)
		}
		compiler := map[string]string{".c": "gcc", ".cc": "g++"}[ext]
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			at := &place{dir: t.TempDir(), built: t.TempDir(), found: []string{compiler}}
			path, err := at.compile(t.Context(), file)
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), path, "0.2", "3")
			cmd.Dir = at.dir
			dieWithUs(cmd)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			said, err := cmd.Output()
			if cmd.ProcessState.ExitCode() == 77 {
				t.Skipf("this machine lacks a capability: %s", strings.TrimSpace(stderr.String()))
			}
			if err != nil {
				t.Fatalf("%v: %s", err, stderr.String())
			}
			if !strings.HasPrefix(string(said), "ready\n{\"requests\":") {
				t.Errorf("it said %q", said)
			}
		})
	}
}

// What is no plant of C serves, too, and ends when it is told to.
func TestOtherProgramsServeAndEnd(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace) // they run on Linux
	for _, p := range append(golang()[:1], python()[0], quietRedis(), quietNginx(), postgres()[0]) {
		t.Run(p.Name, func(t *testing.T) {
			if err := p.Missing(); err != nil {
				t.Skipf("this machine lacks a capability: %v", err)
			}
			dir := realtest.SharedFolder(t)
			i, err := p.Start(t.Context(), dir, 1)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := i.End(); err != nil {
				t.Error(err)
			}
		})
	}
}
