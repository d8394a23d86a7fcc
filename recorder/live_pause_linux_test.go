package recorder_test

import (
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// pausedReport is what report --json says of pauses.
type pausedReport struct {
	Calls  int64 `json:"calls"`
	Pauses []struct {
		DurationNS int64  `json:"duration_ns"`
		By         string `json:"by"`
	} `json:"pauses"`
}

// While a recording is paused nothing is recorded, the process goes on, and all else is as ever.
func TestPausedRecordingsRecordNothing(t *testing.T) {
	needLive(t)
	for _, c := range []struct {
		name  string
		flags []string
	}{{"a stream", nil}, {"from the beginning", []string{"--paused"}}, {"lossless", []string{"--lossless"}}, {"lazily", []string{"--lazy"}}} {
		t.Run(c.name, func(t *testing.T) {
			p := realtest.Start(t, realtest.Build(t, "states"))
			r := realtest.StartRecording(t, append(append(pidFlag(p), "-f", "does_*"), c.flags...)...)
			pid := pidFlag(p)
			if c.flags == nil || c.flags[0] != "--paused" {
				time.Sleep(200 * time.Millisecond)
				realtest.MustCallreel(t, append([]string{"pause"}, pid...)...)
				realtest.MustCallreel(t, append([]string{"pause"}, pid...)...) // it stays so
			}
			time.Sleep(600 * time.Millisecond)
			realtest.MustCallreel(t, append([]string{"resume"}, pid...)...)
			time.Sleep(200 * time.Millisecond)
			s := stop(t, r)
			wantUntouched(t, p.Pid())
			p.Finish()
			f, err := reel.Open(r.File)
			realtest.Must(t, err)
			defer f.Close()
			pauses := f.Pauses()
			if len(pauses) != 1 || pauses[0].To == 0 || pauses[0].By != "command" {
				t.Fatalf("pauses %+v", pauses)
			}
			within, before, after, across := 0, 0, 0, 0
			for _, th := range f.Threads() {
				var q reel.Pairer
				f.ReadyPairer(&q, th.Key)
				q.OnCall = func(c *reel.Call) {
					if c.Start < pauses[0].From && c.End > pauses[0].To && c.Flags&reel.AcrossLoss == 0 {
						across++
					}
				}
				f.ReadThread(th.Key, func(events []reel.Event, _ bool) bool {
					for _, e := range events {
						switch {
						// A thread that lost its processor within an event's code writes it late.
						case e.Time > pauses[0].From+f.Header().Clock.TicksPerSecond/50 && e.Time < pauses[0].To:
							within++
						case e.Time >= pauses[0].To:
							after++
						case e.Time <= pauses[0].From:
							before++
						}
					}
					q.Push(events)
					return true
				})
			}
			if within > 0 || after < 50 || c.name != "from the beginning" && before < 50 {
				t.Errorf("%d events before, %d in the pause, %d behind it", before, within, after)
			}
			if across > 0 {
				t.Errorf("%d calls were open in the pause and aren't marked", across)
			}
			rep := realtest.Decode[pausedReport](t, realtest.MustCallreel(t, "report", "--json", r.File).Stdout)
			if len(rep.Pauses) != 1 || rep.Pauses[0].DurationNS < int64(500*time.Millisecond) || rep.Calls != s.Calls {
				t.Errorf("the report says %+v; the summary has %d calls", rep, s.Calls)
			}
			if text := realtest.MustCallreel(t, "report", r.File).Stdout; !strings.Contains(text, "paused 1 time") {
				t.Errorf("the report doesn't tell of the pause:\n%s", text)
			}
		})
	}
}

// An armed recording that is paused fires nothing, and its dumps say when it was.
func TestPausedArmedRecordingsFireNothing(t *testing.T) {
	needLive(t)
	a := startArmed(t)
	r := a.arm(t, "--when", "request > 20ms", "--keep", "10s", "--ring", "8M")
	a.do("50 0")
	realtest.MustCallreel(t, append([]string{"pause"}, pidFlag(a)...)...)
	a.do("1 40")
	realtest.MustCallreel(t, append([]string{"resume"}, pidFlag(a)...)...)
	a.do("50 0")
	a.do("1 45")
	file := waitDumps(t, r, 1)[0]
	s := stopArmed(t, r)
	wantUntouched(t, a.Pid())
	a.Finish()
	if s.Triggers.Fired != 1 {
		t.Errorf("%d triggers fired", s.Triggers.Fired)
	}
	f, err := reel.Open(file)
	realtest.Must(t, err)
	defer f.Close()
	if p := f.Pauses(); len(p) != 1 || p[0].To == 0 {
		t.Errorf("the dump has the pauses %+v", p)
	}
}

// All processes of a recording that follows children pause together: the first, its children, what these have been replaced by, and those that
// are born meanwhile.
func TestFamiliesPauseTogether(t *testing.T) {
	needLive(t)
	each := time.Millisecond // processes begin, and write, in some hundred of these
	if realtest.Emulated() {
		each *= 10
	}
	for _, atFirst := range []bool{false, true} {
		count := realtest.Build(t, "pauses")
		script := count + " often & " + count + " often & " + count + " often & " + "echo ready $$; read line; kill $(jobs -p); wait"
		flags := []string{"--follow", "--lossless", "-f", "work", "-f", "in_child"}
		if atFirst {
			flags = append(flags, "--paused")
		}
		r := startCommand(t, flags, "bash", "-c", script)
		shell := strings.TrimPrefix(r.WaitLine("ready "), "ready ")
		time.Sleep(400 * each)
		if !atFirst {
			realtest.MustCallreel(t, "pause", "-p", shell)
		}
		time.Sleep(600 * each)
		realtest.MustCallreel(t, "resume", "-p", shell)
		time.Sleep(300 * each)
		r.Go()
		r.Wait()
		s := r.result(t)
		f, err := reel.Open(r.file)
		realtest.Must(t, err)
		pauses := f.Pauses()
		if len(pauses) != 1 || pauses[0].To == 0 || pauses[0].Process != 0 {
			t.Fatalf("pauses %+v", pauses)
		}
		before, within, after := map[int]int{}, map[int]int{}, map[int]int{}
		for _, th := range f.Threads() {
			f.ReadThread(th.Key, func(events []reel.Event, _ bool) bool {
				for _, e := range events {
					switch {
					case e.Time > pauses[0].From+f.Header().Clock.TicksPerSecond/20 && e.Time < pauses[0].To:
						within[th.Process]++
					case e.Time >= pauses[0].To:
						after[th.Process]++
					case e.Time <= pauses[0].From:
						before[th.Process]++
					}
				}
				return true
			})
		}
		f.Close()
		if len(within) > 0 || len(after) < 6 || !atFirst && len(before) < 6 || s.Processes.Forked < 6 {
			t.Errorf("%t: %d processes have written before, %v in the pause, %d behind it: %+v", atFirst, len(before), within, len(after), s.Processes)
		}
	}
	if a := realtest.Callreel(t, append([]string{"pause"}, "-p", "1")...); a.Code == 0 {
		t.Error("what nobody records was paused")
	}
}
