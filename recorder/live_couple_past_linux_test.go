package recorder_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// armTogether begins to record several targets of the same program into memory.
func armTogether(t *testing.T, all []*armedTarget, flags ...string) *realtest.Recording {
	t.Helper()
	var with []string
	for _, a := range all[1:] {
		with = append(with, "--with", strconv.Itoa(a.Pid()))
	}
	return all[0].arm(t, append(with, flags...)...)
}

// logs are those of all targets, whose threads have different IDs.
func logs(t *testing.T, all []*armedTarget) map[int][]loggedCall {
	t.Helper()
	log := map[int][]loggedCall{}
	for _, a := range all {
		maps.Copy(log, a.readLog(t))
	}
	return log
}

// Dumps of several processes hold what the rings of each held long before, by the targets' own logs, whichever of them they are made for.
func TestDumpsOfTwoProcessesReachBackFurtherThanTheRings(t *testing.T) {
	needLive(t)
	const ringEvents = 2 << 20 / reel.EventSize
	for _, test := range []struct{ name, memory string }{{"all", "64M"}, {"the last of it", "3M"}} {
		t.Run(test.name, func(t *testing.T) {
			all := []*armedTarget{startArmed(t), startArmed(t)}
			r := armTogether(t, all, "--when", "request > 20ms", "--keep", "10m", "--ring", "2M", "--memory", test.memory)
			dumps := 0
			for _, a := range all {
				for before := a.made(t); a.made(t)-before < 2*ringEvents; time.Sleep(50 * time.Millisecond) {
					a.do("100 0")
				}
				a.do("1 30")
				dumps++
				waitDumps(t, r, dumps)
			}
			realtest.MustCallreel(t, append([]string{"dump"}, pidFlag(all[1])...)...)
			realtest.MustCallreel(t, append([]string{"dump", "--last", "200ms"}, pidFlag(all[0])...)...)
			s := stopArmed(t, r)
			for _, a := range all {
				wantUntouched(t, a.Pid())
				a.Finish()
			}
			log := logs(t, all)
			for i, file := range s.Dumps {
				n := wantWhole(t, file, log)
				d := readDump(t, file)
				t.Logf("%s: %d calls as logged, missing %+v", file, n, d.Missing)
				if i < 3 && n < ringEvents {
					t.Errorf("%s: only %d calls, where the rings of both hold %d", file, n, ringEvents)
				}
				for _, m := range d.Missing {
					if m.From < d.From || m.To > d.To {
						t.Errorf("%s: missing %+v, which isn't within %d to %d", file, m, d.From, d.To)
					}
				}
				for _, a := range all {
					if workOf(t, file, a.Pid()) == 0 {
						t.Errorf("%s has nothing of process %d", file, a.Pid())
					}
				}
			}
			if len(s.Dumps) != 4 {
				t.Errorf("dumps %q", s.Dumps)
			}
		})
	}
}

// workOf is how many calls of work_b a dump has of a process.
func workOf(t *testing.T, file string, pid int) int {
	t.Helper()
	f, err := reel.Open(file)
	realtest.Must(t, err)
	defer f.Close()
	return callsByProcess(f, "work_b")[pid]
}

// One of three processes is killed while dumps are being made. They go on being made, of the others; SIGUSR2 asks for them whoever is left.
func TestAProcessIsKilledWhileThreeAreDumped(t *testing.T) {
	needLive(t)
	for _, killed := range []int{0, 1} {
		t.Run(strconv.Itoa(killed), func(t *testing.T) {
			all := []*armedTarget{startArmed(t), startArmed(t), startArmed(t)}
			r := armTogether(t, all, "--when", "request > 1h", "--keep", "10m", "--ring", "2M", "--memory", "16M")
			left := slices.Delete(slices.Clone(all), killed, killed+1)
			var asked []chan struct{}
			for _, a := range left {
				done := make(chan struct{})
				asked = append(asked, done)
				go func() {
					defer close(done)
					for range 3 {
						realtest.Callreel(t, append([]string{"dump"}, pidFlag(a)...)...)
					}
				}()
			}
			waitDumps(t, r, 2)
			all[killed].Signal(syscall.SIGKILL)
			for _, done := range asked {
				<-done
			}
			files := waitDumps(t, r, 7)
			r.Signal(syscall.SIGUSR2)
			waitDumps(t, r, len(files)+1)
			r.Stop()
			s := realtest.Decode[armedSummary](t, strings.Join(r.Stdout(), "\n"))
			for _, a := range left {
				wantUntouched(t, a.Pid())
				a.Finish()
			}
			log := logs(t, all)
			if len(s.Dumps) != 8 {
				t.Errorf("%d dumps, want those that were asked for, one of the end and one by SIGUSR2", len(s.Dumps))
			}
			kinds := map[reel.TriggerKind]int{}
			for _, file := range s.Dumps {
				d := readDump(t, file)
				kinds[d.Triggers[0].Kind]++
				wantWhole(t, file, log)
			}
			if kinds[reel.TriggerEnd] != 1 || kinds[reel.TriggerRequest] != 7 {
				t.Errorf("dumps by kind: %v", kinds)
			}
		})
	}
}

// Who asks for a pause pauses all of the processes, which dumps say once.
func TestProcessesThatAreDumpedTogetherPauseTogether(t *testing.T) {
	needLive(t)
	p := startTalkers(t)
	r := p.arm(t, "--when", "query > 1h", "--keep", "10m")
	p.handle(10, 0)
	realtest.MustCallreel(t, append([]string{"pause"}, pidFlag(p.web)...)...)
	p.handle(20, 0)
	realtest.MustCallreel(t, append([]string{"resume"}, pidFlag(p.web)...)...)
	p.handle(40, 0)
	realtest.MustCallreel(t, append([]string{"dump"}, pidFlag(p.db)...)...)
	file := waitDumps(t, r, 1)[0]
	stopArmed(t, r)
	f, err := reel.Open(file)
	realtest.Must(t, err)
	defer f.Close()
	if list := f.Pauses(); len(list) != 1 || list[0].Process != 0 || list[0].To == 0 {
		t.Errorf("pauses %+v, want one of all processes", list)
	}
	if web, db := callsByProcess(f, "handle"), callsByProcess(f, "query"); web[p.web.Pid()] != 50 || db[p.db.Pid()] != 50 {
		t.Errorf("handle %v, query %v, want 50 of each", web, db)
	}
}
