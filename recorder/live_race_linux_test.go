package recorder_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// Recorders that start at once take turns or are turned away; whichever comes
// first, the target is not harmed.
func TestRecordersThatStartAtOnceDoNoHarm(t *testing.T) {
	needLive(t)
	const recorders, rounds = 3, 5
	p := realtest.Start(t, realtest.Build(t, "threads"), "steady", "2")
	realtest.GiveWay(t, p.Pid())
	outcomes := map[string]int{}
	for range rounds {
		results := make([]realtest.Result, recorders)
		var all sync.WaitGroup
		for i := range results {
			all.Add(1)
			file := filepath.Join(t.TempDir(), "race.reel")
			go func() {
				defer all.Done()
				results[i] = realtest.Callreel(t, "record", "--json", "-d", "20ms", "-f", "counted_*", "-o", file, "-p", strconv.Itoa(p.Pid()))
			}()
		}
		all.Wait()
		recorded := 0
		for _, r := range results {
			switch {
			case r.Code == 0:
				recorded++
				outcomes["recorded"]++
				if s := realtest.Decode[summary](t, r.Stdout); !s.TextVerified || s.Ended || s.Calls == 0 {
					t.Errorf("%+v", s)
				}
				if strings.Contains(r.Stderr, "removed the probes") {
					t.Errorf("the probes of a live recorder were removed: %s", r.Stderr)
				}
			case strings.Contains(r.Stderr, "already being recorded"):
				outcomes["already being recorded"]++
			case strings.Contains(r.Stderr, "already traced"):
				outcomes["already traced"]++
			default:
				t.Errorf("code %d: %s", r.Code, r.Stderr)
			}
		}
		if recorded == 0 {
			t.Error("each was turned away because of the others")
		}
		if !p.Alive() {
			t.Fatalf("the target has ended: %s", p.Stderr())
		}
		wantUntouched(t, p.Pid())
	}
	t.Logf("%v", outcomes)
	p.Finish()
}

// A detach at any moment of a recorder's life leaves the recorder alone.
func TestDetachingFromALiveRecorderDoesNoHarm(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, realtest.Build(t, "threads"), "steady", "2")
	realtest.GiveWay(t, p.Pid())
	over := make(chan struct{})
	outcomes := map[string]int{}
	var detacher sync.WaitGroup
	detacher.Add(1)
	go func() {
		defer detacher.Done()
		for {
			select {
			case <-over:
				return
			default:
			}
			d := realtest.Callreel(t, append([]string{"detach"}, pidFlag(p)...)...)
			switch {
			case d.Code == 0 && strings.Contains(d.Stdout, "not being recorded"):
				outcomes["not being recorded"]++
			case d.Code != 0 && strings.Contains(d.Stderr, "already being recorded"):
				outcomes["already being recorded"]++
			case d.Code != 0 && strings.Contains(d.Stderr, "already traced"): // while it attaches or detaches
				outcomes["already traced"]++
			default:
				t.Errorf("detach: code %d: %s%s", d.Code, d.Stdout, d.Stderr)
			}
		}
	}()
	for range 5 {
		file := filepath.Join(t.TempDir(), "detached.reel")
		r := realtest.Callreel(t, "record", "--json", "-d", "20ms", "-f", "counted_*", "-o", file, "-p", strconv.Itoa(p.Pid()))
		if r.Code != 0 {
			t.Errorf("record: code %d: %s", r.Code, r.Stderr)
		} else if s := realtest.Decode[summary](t, r.Stdout); !s.TextVerified || s.Ended || s.Calls == 0 {
			t.Errorf("%+v", s)
		}
	}
	close(over)
	detacher.Wait()
	t.Logf("%v", outcomes)
	if !p.Alive() {
		t.Fatalf("the target has ended: %s", p.Stderr())
	}
	wantUntouched(t, p.Pid())
	p.Finish()
}

// A recorder that was killed is dead also as long as its parent has not noticed.
func TestADeadRecorderThatNobodyReapsIsDead(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, realtest.Build(t, "threads"), "steady", "2")
	realtest.GiveWay(t, p.Pid())
	t.Run("detach", func(t *testing.T) {
		leaveZombie(t, p)
		d := realtest.MustCallreel(t, append([]string{"detach"}, pidFlag(p)...)...)
		if !strings.Contains(d.Stdout, "text verified: true") {
			t.Errorf("it said %q", d.Stdout)
		}
		wantUntouched(t, p.Pid())
	})
	t.Run("record", func(t *testing.T) {
		leaveZombie(t, p)
		if s := cycle(t, p.Pid(), "-f", "counted_*"); s.Calls == 0 {
			t.Error("no calls")
		}
	})
	p.Finish()
}

// leaveZombie kills a recorder of p and leaves it unreaped until the end of the
// test.
func leaveZombie(t *testing.T, p *realtest.Proc) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "zombie.reel")
	cmd := exec.Command(realtest.CallreelPath(t), append([]string{"record", "-f", "counted_*", "-o", file}, pidFlag(p)...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended already
		if err := cmd.Wait(); cmd.ProcessState == nil {
			t.Error(err)
		}
	})
	eventually(t, "recording", func() bool {
		info, err := os.Stat(file)
		return err == nil && info.Size() > 0
	})
	wantProbed(t, p.Pid())
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	waitState(t, cmd.Process.Pid, 'Z')
}
