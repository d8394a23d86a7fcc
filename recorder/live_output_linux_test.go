package recorder_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/recorder"
	"github.com/callreel/callreel/reel"
)

// A dump that could not be made is none of those that --max allows.
func TestDumpsThatFailDontCount(t *testing.T) {
	needLive(t)
	a := startArmed(t)
	r := a.arm(t, "--when", "request > 1h", "--max", "2")
	ask := func() (recorder.Dumped, error) {
		return recorder.AskForDump(context.Background(), a.Pid(), recorder.DumpRequest{Kind: reel.TriggerStall, Condition: "stall"})
	}
	// The folder appears while it is being made: an answer to what is no request says that the recording goes on with it.
	_, err := recorder.AskForDump(context.Background(), a.Pid(), recorder.DumpRequest{Keep: -1})
	if err == nil || !strings.Contains(err.Error(), "not a request") {
		t.Fatal(err)
	}
	// The folder becomes a file at once: one that is missing for a moment may be made anew by the recorder.
	other := r.File + ".file"
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Renameat2(unix.AT_FDCWD, other, unix.AT_FDCWD, r.File, unix.RENAME_EXCHANGE); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if d, err := ask(); err == nil || !strings.Contains(err.Error(), "its recorder says") {
			t.Fatalf("%+v, %v, though its place is a file", d, err)
		}
	}
	if err := os.Remove(r.File); err != nil { // whoever removes it has it made anew
		t.Fatal(err)
	}
	for range 2 {
		if d, err := ask(); err != nil || filepath.Dir(d.File) != r.File {
			t.Errorf("%+v, %v", d, err)
		}
	}
	if d, err := ask(); err == nil || !strings.Contains(err.Error(), "too many") {
		t.Errorf("%+v, %v", d, err)
	}
	s := stopArmed(t, r)
	if s.Triggers.Fired != 5 || s.Triggers.Dumped != 2 || s.Triggers.Suppressed != 3 || len(s.Dumps) != 2 {
		t.Errorf("%+v, %q", s.Triggers, s.Dumps)
	}
	a.Finish()
}

// A reel for whose first tables there is no room is removed, once.
func TestAReelThatCannotBeBegunIsRemoved(t *testing.T) {
	needLive(t, realtest.Superuser)
	p := realtest.Start(t, realtest.Build(t, "threads"), "steady", "2")
	dir := smallDisk(t, 8192)
	for _, of := range [][]string{{"--", "true"}, pidFlag(p)} {
		file := filepath.Join(dir, "x.reel")
		cmd := exec.Command(realtest.CallreelPath(t), append([]string{"record", "--eager", "-o", file}, of...)...)
		said, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(said), "no space left") || strings.Contains(string(said), "remove") || strings.Contains(string(said), "no such file") {
			t.Errorf("%q: code %d: %s", of, cmd.ProcessState.ExitCode(), said)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
			t.Errorf("%q: left behind: %v, %v", of, entries, err)
		}
	}
	wantUntouched(t, p.Pid())
	p.Finish()
}

// A program that is followed, for whose tables the disk has no room, leaves the reel to the first.
func TestAFollowedProgramLeavesTheReel(t *testing.T) {
	needLive(t, realtest.Superuser)
	dir, full := smallDisk(t, 262144), false
	file := filepath.Join(dir, "x.reel")
	for try := range 20 { // the first may be the one that finds the disk full
		cmd := exec.Command(realtest.CallreelPath(t), "record", "--follow", "--force", "-o", file, "--", "sh", "-c",
			`dd if=/dev/zero of="$0" bs=4k 2>/dev/null; ls / >/dev/null; ls / >/dev/null; rm "$0"; exit 0`, filepath.Join(dir, "ballast"))
		said, _ := cmd.CombinedOutput()
		f, err := reel.Open(file)
		if err != nil {
			t.Fatalf("try %d: %v\n%s", try, err, said)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		full = full || strings.Contains(string(said), "no space left")
	}
	if !full {
		t.Error("the disk was never full")
	}
}
