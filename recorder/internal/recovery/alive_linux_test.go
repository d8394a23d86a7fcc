package recovery

import (
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/process"
)

// child is a process that reads its stdin to the end; nobody reaps it before
// the test is over.
func child(t *testing.T) (pid int, end func()) {
	t.Helper()
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended already
		if err := cmd.Wait(); cmd.ProcessState == nil {
			t.Error(err)
		}
	})
	return cmd.Process.Pid, func() {
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// inState waits until a process is in a state of proc_pid_stat(5).
func inState(t *testing.T, pid int, state byte) {
	t.Helper()
	start := time.Now()
	for {
		info := make([]byte, 512)
		f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil {
			t.Fatal(err)
		}
		n, err := f.Read(info)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		for i := n - 3; i > 0; i-- {
			if info[i] == ')' {
				if info[i+2] == state {
					return
				}
				break
			}
		}
		if time.Since(start) > 30*time.Second {
			t.Fatalf("process %d has not come to state %c: %s", pid, state, info[:n])
		}
		time.Sleep(time.Millisecond)
	}
}

func startOf(t *testing.T, pid int) uint64 {
	t.Helper()
	start, err := process.StartTime(pid, pid)
	if err != nil {
		t.Fatal(err)
	}
	return start
}

func wantEnd(t *testing.T, pid int, dying, dead bool) {
	t.Helper()
	if gotDying, gotDead := process.Ending(pid); gotDying != dying || gotDead != dead {
		t.Errorf("process %d: dying %v and dead %v, want %v and %v", pid, gotDying, gotDead, dying, dead)
	}
}

func TestARecorderIsKnownByItsStartTimeToo(t *testing.T) {
	pid := os.Getpid()
	start := startOf(t, pid)
	if self, err := process.OwnStartTime(); err != nil || self != start {
		t.Errorf("start time of self %d, %v; of its number %d", self, err, start)
	}
	if !recorderLives(pid, start) {
		t.Error("this process does not live")
	}
	if recorderLives(pid, start+1) || recorderLives(pid, 0) {
		t.Error("one that had its number before lives")
	}
	wantEnd(t, pid, false, false)
}

func TestAStoppedRecorderLives(t *testing.T) {
	pid, _ := child(t)
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	inState(t, pid, 'T')
	wantEnd(t, pid, false, false)
	if !recorderLives(pid, startOf(t, pid)) {
		t.Error("it counts as dead")
	}
}

func TestARecorderThatHasEndedIsDeadBeforeItIsReaped(t *testing.T) {
	pid, end := child(t)
	start := startOf(t, pid)
	if !recorderLives(pid, start) {
		t.Error("it counts as dead though it runs")
	}
	end()
	inState(t, pid, 'Z')
	wantEnd(t, pid, true, true)
	if recorderLives(pid, start) {
		t.Error("it counts as alive")
	}
}

// One that is being killed is waited for, and does not count.
func TestARecorderThatIsBeingKilledIsDead(t *testing.T) {
	for range 20 {
		pid, _ := child(t)
		start := startOf(t, pid)
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if recorderLives(pid, start) {
			t.Error("it counts as alive")
		}
	}
}

func TestThereIsNoRecorderWithoutAProcess(t *testing.T) {
	const beyond = 1 << 22 // above the highest PID there can be (PID_MAX_LIMIT)
	wantEnd(t, beyond+1, false, true)
	for _, pid := range []int{0, -1, beyond + 1} {
		if recorderLives(pid, 0) {
			t.Errorf("process %d lives", pid)
		}
	}
}
