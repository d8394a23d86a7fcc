package recorder_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// What the rings of an armed recorder hold when it is killed is found by whoever comes next, by the target's own log: who detaches, who records,
// and who asks for a dump.
func TestWhatAKilledArmedRecorderHasLeftIsDumped(t *testing.T) {
	needLive(t)
	for _, test := range []struct {
		name string
		next func(t *testing.T, a *armedTarget, dumps string)
	}{
		{"detach", func(t *testing.T, a *armedTarget, dumps string) {
			said := realtest.MustCallreel(t, append([]string{"detach", "--json"}, pidFlag(a)...)...).Stdout
			var d struct {
				Dump   string `json:"dump"`
				NoDump string `json:"no_dump"`
			}
			realtest.Must(t, json.Unmarshal([]byte(said), &d))
			if d.Dump != filepath.Join(dumps, "slow-0002.reel") || d.NoDump != "" {
				t.Errorf("detach says %s", said)
			}
		}},
		{"record", func(t *testing.T, a *armedTarget, dumps string) {
			r := a.arm(t, "--when", "request > 1h")
			if !strings.Contains(r.Stderr(), filepath.Join(dumps, "slow-0002.reel")) {
				t.Errorf("record says:\n%s", r.Stderr())
			}
			stopArmed(t, r)
		}},
		{"dump", func(t *testing.T, a *armedTarget, dumps string) {
			said := realtest.MustCallreel(t, append([]string{"dump"}, pidFlag(a)...)...).Stdout
			if strings.TrimSpace(said) != filepath.Join(dumps, "slow-0002.reel") {
				t.Errorf("dump says %q", said)
			}
			realtest.MustCallreel(t, append([]string{"detach"}, pidFlag(a)...)...)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := startArmed(t)
			r := a.arm(t, "--when", "request > 1h", "--keep", "10m", "--ring", "2M")
			realtest.MustCallreel(t, append([]string{"dump"}, pidFlag(a)...)...)
			waitDumps(t, r, 1)
			for before := a.made(t); a.made(t)-before < 1<<18; time.Sleep(20 * time.Millisecond) {
				a.do("100 0")
			}
			r.Signal(os.Kill)
			r.Wait()
			a.do("100 0") // which the rings get all the same
			test.next(t, a, r.File)
			wantUntouched(t, a.Pid())
			if left, _ := filepath.Glob("/run/callreel/armed-*"); os.Geteuid() == 0 && hasNote(left, a.Pid()) {
				t.Errorf("a note is left: %q", left)
			}
			a.Finish()
			file := filepath.Join(r.File, "slow-0002.reel")
			log := a.readLog(t)
			n := wantWhole(t, file, log)
			d := readDump(t, file)
			t.Logf("%d calls as logged, missing %+v", n, d.Missing)
			if n < 1<<14 { // some 45,000 of 65,536 as a rule: the others were encoded before, and have died with the recorder
				t.Errorf("only %d calls", n)
			}
			if x := d.Triggers; len(x) != 1 || x[0].Kind != reel.TriggerRequest || x[0].Condition != "recorder was killed" {
				t.Errorf("triggers %+v", x)
			}
			requests := 0
			for _, calls := range d.calls {
				for _, c := range calls {
					if c.function == "request" {
						requests++
					}
				}
			}
			if requests == 0 { // others may have taken the first chunks of its thread since
				t.Errorf("%d calls of request, where 100 were made behind the recorder's death", requests)
			}
		})
	}
}

// hasNote says whether one of the notes is of a process.
func hasNote(files []string, pid int) bool {
	for _, file := range files {
		var about struct {
			PID int `json:"pid"`
		}
		if b, err := os.ReadFile(file); err == nil && json.Unmarshal(b, &about) == nil && about.PID == pid {
			return true
		}
	}
	return false
}

// The same of a Go program, whose goroutines go from thread to thread.
func TestWhatAKilledArmedRecorderHasLeftOfGoroutinesIsDumped(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, goTarget(t), "rounds", "1")
	r := realtest.StartRecording(t, slices.Concat(pidFlag(p), goCounted, []string{"--ring", "16M", "--when", "main.spin > 1h"})...)
	r.Signal(os.Kill)
	r.Wait()
	p.Go()
	p.WaitLine("counted ")
	realtest.MustCallreel(t, append([]string{"detach"}, pidFlag(p)...)...)
	wantUntouched(t, p.Pid())
	lines := p.Stdout()
	made := p.Finish()
	file := filepath.Join(r.File, "slow-0001.reel")
	rep := reportOfDump(t, file)
	t.Logf("%d events", eventsOf(t, file))
	if !isWhole(t, rep) {
		return
	}
	for name, n := range made {
		if got := rep.Report.Calls(name); got != n {
			t.Errorf("%d calls of %s in the report, the program made %d", got, name, n)
		}
	}
	wantGoroutines(t, rep.report, lines)
}
