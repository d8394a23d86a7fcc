package realtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Result is what one run of callreel gave.
type Result struct {
	Stdout string
	Stderr string
	Code   int // exit code, or 128 + signal
}

// binary builds callreel once for each test binary.
var built = sync.OnceValues(func() (string, error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	out := filepath.Join(cache, "callreel")
	return out, publish(out, os.Rename, func(temp string) error {
		cmd := exec.Command("go", "build", "-o", temp, "./cmd/callreel")
		cmd.Dir = Root()
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if said, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go build ./cmd/callreel: %w\n%s", err, said)
		}
		return nil
	})
})

// CallreelPath returns the path of a callreel built from this tree, or the one
// that CALLREEL in the environment names.
func CallreelPath(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("CALLREEL"); path != "" {
		// Looked at, it is one of those files on which go test lets an earlier result depend.
		if _, err := os.Stat(path); err != nil {
			t.Fatalf("realtest: CALLREEL: %v", err)
		}
		return path
	}
	path, err := built()
	if err != nil {
		t.Fatalf("realtest: %v", err)
	}
	return path
}

// Callreel runs callreel with args to its end, without a terminal and with an
// empty stdin. An exit code other than 0 is not an error here.
func Callreel(t testing.TB, args ...string) Result {
	t.Helper()
	// Longer than any recording that a test asks for with -d.
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, CallreelPath(t), args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // so that it detaches
	cmd.WaitDelay = patience
	err := cmd.Run()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatalf("realtest: callreel %q: %v\n%s", args, err, stderr.String())
	}
	if ctx.Err() != nil {
		t.Fatalf("realtest: callreel %q: not done after %v\n%s", args, 3*patience, stderr.String())
	}
	return Result{Stdout: stdout.String(), Stderr: stderr.String(), Code: exitCode(cmd.ProcessState)}
}

// MustCallreel is [Callreel] for a run that has to end with code 0.
func MustCallreel(t testing.TB, args ...string) Result {
	t.Helper()
	r := Callreel(t, args...)
	for start := time.Now(); r.Code != 0 && gaveUp(r.Stderr) && time.Since(start) < patience; {
		r = Callreel(t, args...)
	}
	if r.Code != 0 {
		t.Fatalf("callreel %q: exit code %d\nstdout:\n%s\nstderr:\n%s", args, r.Code, r.Stdout, r.Stderr)
	}
	return r
}

// gaveUp: on a busy machine threads may not stop in time, and then a recorder gives up for the moment, having changed nothing.
func gaveUp(stderr string) bool { return strings.Contains(stderr, "does not stop after") }

// A Recording is a running `callreel record`.
type Recording struct {
	*Proc
	File string // the reel
}

// StartRecording starts `callreel record --json -o FILE` with args (such as
// "-p", "123") and returns once the reel exists, that is, once recording is on.
func StartRecording(t testing.TB, args ...string) *Recording {
	t.Helper()
	file := filepath.Join(t.TempDir(), "test.reel")
	args = append([]string{"record", "--json", "-o", file}, args...)
	r := &Recording{File: file, Proc: StartCommand(t, exec.Command(CallreelPath(t), args...))}
	for start := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		if info, err := os.Stat(file); err == nil && info.Size() > 0 {
			return r
		}
		// Or something is in the way that will soon be gone.
		if !r.Alive() && time.Since(start) < patience && strings.Contains(r.Stderr(), "try again later") {
			r.Proc = StartCommand(t, exec.Command(CallreelPath(t), args...))
			continue
		}
		if !r.Alive() || time.Since(start) > patience {
			t.Fatalf("realtest: callreel %q: no reel\n%s", args, r.said())
		}
	}
}

// Stop ends the recording as Ctrl-C does and returns its summary. The test
// fails when the recorder ends with a code other than 0 or names no summary.
func (r *Recording) Stop() Summary {
	r.t.Helper()
	if r.Alive() {
		r.Signal(os.Interrupt)
	}
	return r.Summary()
}

// Summary waits for the recording to end by itself and returns its summary.
func (r *Recording) Summary() Summary {
	r.t.Helper()
	if code := r.Wait(); code != 0 {
		r.t.Fatalf("realtest: callreel record: exit code %d\n%s", code, r.said())
	}
	return Decode[Summary](r.t, strings.Join(r.Stdout(), "\n"))
}

// CallreelPeak is [Callreel], and tells the most memory that it had resident, in bytes.
func CallreelPeak(t testing.TB, args ...string) (Result, int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	file := filepath.Join(t.TempDir(), "peak")
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, Build(t, "peak"), append([]string{file, CallreelPath(t)}, args...)...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatalf("realtest: callreel %q: %v\n%s", args, err, stderr.String())
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("realtest: callreel %q: not done after %v: %v\n%s", args, 3*patience, err, stderr.String())
	}
	var peak int64
	if _, err := fmt.Sscan(string(text), &peak); err != nil {
		t.Fatal(err)
	}
	return Result{Stdout: stdout.String(), Stderr: stderr.String(), Code: exitCode(cmd.ProcessState)}, peak << 10
}
