package process

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
)

// sleeper starts a process that waits to be killed.
func sleeper(t testing.TB) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(cmd) })
	return cmd
}

func end(cmd *exec.Cmd) {
	if cmd.ProcessState == nil {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	}
}

// reused starts processes until one has an ID that was another's, which the kernel can be asked for. It returns nil if somebody else has it,
// and stays.
func reused(t testing.TB, pid int) *exec.Cmd {
	t.Helper()
	const last = "/proc/sys/kernel/ns_last_pid"
	for range 1000 {
		if err := os.WriteFile(last, []byte(strconv.Itoa(pid-1)), 0); err != nil {
			t.Skipf("needs a kernel that lets root say which process ID is next: %v", err)
		}
		cmd := exec.Command("sleep", "1000")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if cmd.Process.Pid == pid {
			t.Cleanup(func() { end(cmd) })
			return cmd
		}
		end(cmd) // somebody else was faster
	}
	return nil
}

// inOwnPIDs says whether the test is in a PID namespace of its own. If not it runs it in one: which ID is next is said for all of a namespace, and
// other tests would see theirs used again at once.
func inOwnPIDs(t *testing.T) bool {
	t.Helper()
	const own = "PROCESS_TEST_OWN_PIDS"
	if os.Getenv(own) != "" {
		return true
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("unshare", "--pid", "--fork", "--mount-proc", exe, "-test.v", "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), own+"=1")
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil && strings.HasPrefix(string(out), "unshare: ") {
		realtest.NeedThat(t, "PID namespaces", err)
	}
	if err != nil {
		t.Error(err)
	}
	switch text := string(out); {
	case strings.Contains(text, "--- SKIP: "+t.Name()):
		t.Skip("see above")
	case err == nil && !strings.Contains(text, "--- PASS: "+t.Name()):
		t.Error("it has not run there")
	}
	return false
}

// What has the ID of a process that was held is another one, whenever it was started.
func TestAHandleIsNotFooledByAReusedID(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace, realtest.Superuser)
	if !inOwnPIDs(t) {
		return
	}
	tried := 0
	for begin := time.Now(); tried < 20 && time.Since(begin) < time.Minute; {
		first := sleeper(t)
		pid := first.Process.Pid
		h, err := Hold(pid)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Open(pid)
		if err != nil {
			t.Fatal(err)
		}
		parent, err := h.Parent()
		if err != nil || parent != os.Getpid() || !h.Alive() || !h.Is(p) {
			t.Fatalf("parent %d, alive %v, the same %v: %v", parent, h.Alive(), h.Is(p), err)
		}
		end(first)
		second := reused(t, pid)
		if second == nil {
			h.Close()
			if err := p.Close(); err != nil {
				t.Error(err)
			}
			continue
		}
		tried++
		q, err := Open(pid)
		if err != nil {
			t.Fatal(err)
		}
		if h.Alive() || h.Is(p) || h.Is(q) {
			t.Error("the handle takes another process for its own")
		}
		if _, err := h.Parent(); !errors.Is(err, ErrNoProcess) {
			t.Errorf("the parent of another process: %v", err)
		}
		if _, err := p.Hold(); !errors.Is(err, ErrNoProcess) {
			t.Errorf("a handle on another process: %v", err)
		}
		// Neither is its exec awaited, nor is it stopped.
		err = AwaitExec(context.Background(), pid, pid, time.Second, StopOptions{Of: h}, func() { t.Error("another process's exec is awaited") }, nil)
		if !errors.Is(err, ErrNoProcess) {
			t.Errorf("AwaitExec: %v", err)
		}
		_, err = p.Stop(context.Background(), StopOptions{}, func(*Stopped) error {
			t.Error("another process is stopped")
			return nil
		})
		if !errors.Is(err, ErrNoProcess) {
			t.Errorf("Stop: %v", err)
		}
		checkUntraced(t, pid)
		for _, c := range []interface{ Close() error }{p, q} {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
		h.Close()
		end(second)
	}
	if tried < 20 {
		t.Errorf("%d processes got another's ID", tried)
	}
}

func TestAHandleIsOnAProcess(t *testing.T) {
	for pid, want := range map[int]error{-1: ErrNoProcess, 0: ErrNoProcess, 1 << 30: ErrNoProcess} {
		if h, err := Hold(pid); !errors.Is(err, want) {
			t.Errorf("%d: %+v, %v", pid, h, err)
		}
	}
	zombie := exec.Command("true")
	if err := zombie.Start(); err != nil {
		t.Fatal(err)
	}
	defer zombie.Wait()
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		h, err := Hold(zombie.Process.Pid)
		if errors.Is(err, ErrNoProcess) {
			break
		}
		if err != nil || time.Since(start) > time.Minute {
			t.Fatalf("a process that has ended: %v", err)
		}
		h.Close()
	}
}
