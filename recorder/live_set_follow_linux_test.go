package recorder_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/recorder"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/reel"
)

// firstChildOf waits for a process's first child.
func firstChildOf(t *testing.T, p *realtest.Proc) int {
	t.Helper()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		files, err := filepath.Glob("/proc/" + strconv.Itoa(p.Pid()) + "/task/*/children")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if text, err := os.ReadFile(file); err == nil && len(text) > 0 {
				pid, err := strconv.Atoi(strings.Fields(string(text))[0])
				if err != nil {
					t.Fatal(err)
				}
				return pid
			}
		}
		if !p.Alive() || time.Since(began) > time.Minute {
			t.Fatalf("no child\n%s", p.Stderr())
		}
	}
}

// slowPipe is a pipe by the name of a reel, which is read from as long as it isn't held.
type slowPipe struct {
	path, copy string
	pipe       *os.File
	held       atomic.Bool
}

func newSlowPipe(t *testing.T) *slowPipe {
	t.Helper()
	dir := t.TempDir()
	p := &slowPipe{path: filepath.Join(dir, "pipe"), copy: filepath.Join(dir, "copy.reel")}
	if err := unix.Mkfifo(p.path, 0o600); err != nil {
		t.Fatal(err)
	}
	pipe, err := os.OpenFile(p.path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	p.pipe = pipe
	to, err := os.Create(p.copy)
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer to.Close()
		b := make([]byte, 1<<16)
		for {
			for p.held.Load() {
				time.Sleep(time.Millisecond)
			}
			n, err := pipe.Read(b)
			if err != nil || string(b[:n]) == "end" {
				return
			}
			if _, err := to.Write(b[:n]); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	t.Cleanup(func() {
		p.held.Store(false)
		_, _ = pipe.Write([]byte("end")) // wakes it, who has both ends
		<-over
		_ = pipe.Close()
	})
	return p
}

// full waits until the pipe has had no room for a while: who writes waits then.
func (p *slowPipe) full(t *testing.T) {
	t.Helper()
	for began, last := time.Now(), time.Now(); time.Since(last) < time.Second; time.Sleep(10 * time.Millisecond) {
		ready := []unix.PollFd{{Fd: int32(p.pipe.Fd()), Events: unix.POLLOUT}}
		if _, err := unix.Poll(ready, 0); err != nil && err != unix.EINTR {
			t.Fatal(err)
		}
		if ready[0].Revents&unix.POLLOUT != 0 {
			last = time.Now()
		}
		if time.Since(began) > time.Minute {
			t.Fatal("the pipe isn't filled")
		}
	}
}

// callsSince says whether what has been read has calls of a function from a time on.
func (p *slowPipe) callsSince(t *testing.T, function string, tick uint64) bool {
	t.Helper()
	f, err := reel.Open(p.copy)
	if err != nil {
		return false // nothing yet
	}
	defer f.Close()
	found := false
	for _, thread := range f.Threads() {
		f.ReadThread(thread.Key, func(events []reel.Event, _ bool) bool {
			for i := range events {
				fn, _ := f.Function(events[i].ID())
				found = found || fn.Name == function && events[i].Time > tick
			}
			return !found
		})
	}
	return found
}

// TestSetIsTriedAgainWhereItFailed: a change that can't be made in a program that is followed is no success, and is made later.
func TestSetIsTriedAgainWhereItFailed(t *testing.T) {
	needLive(t)
	realtest.Need(t, realtest.AMD64) // elsewhere what follows can't be changed at all, and callreel says so
	pipe := newSlowPipe(t)
	script := `"$0" "$1"; true` // the shell, of which nothing is recorded, stays
	r := realtest.StartCommand(t, exec.Command(realtest.CallreelPath(t), "record", "--follow", "--force", "--clock", "exit", "-o", pipe.path, "-f", "sw_*", "--",
		"sh", "-c", script, realtest.Build(t, "switched"), filepath.Join(t.TempDir(), "log")))
	r.WaitLine("ready")
	shell := firstChildOf(t, r)
	set := func(q recorder.SetRequest) (recorder.SetAnswer, error) {
		return recorder.AskToSet(context.Background(), shell, q)
	}
	var a recorder.SetAnswer
	var err error
	for began := time.Now(); a.On == 0; time.Sleep(10 * time.Millisecond) {
		if a, err = set(recorder.SetRequest{All: true, Exclude: []string{"sw_deep"}}); time.Since(began) > time.Minute {
			t.Fatalf("the program isn't followed: %+v %v\n%s", a, err, r.Stderr())
		}
	}
	for try := 0; ; try++ {
		if _, err = set(recorder.SetRequest{Exclude: []string{"sw_outer"}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(1+try) * time.Second) // so that its exits are off, too: to switch these on takes the loop, as entries have no time
		pipe.held.Store(true)
		pipe.full(t)
		if _, err = set(recorder.SetRequest{All: true}); err != nil {
			break
		}
		pipe.held.Store(false)
		if try == 5 {
			t.Fatal("a change was made though the recorder could write nothing")
		}
	}
	if !strings.Contains(err.Error(), "not in force in process ") || !strings.Contains(err.Error(), "tried again") {
		t.Errorf("%v", err)
	}
	tick := ring.Ticks()
	pipe.held.Store(false)
	for began := time.Now(); !pipe.callsSince(t, "sw_outer", tick); time.Sleep(100 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatal("what was asked for has never been done")
		}
	}
	if a, err = set(recorder.SetRequest{All: true}); err != nil || a.Changed != 0 || a.Off != 0 {
		t.Errorf("%+v, %v", a, err)
	}
	r.Signal(os.Interrupt)
	r.Wait()
}
