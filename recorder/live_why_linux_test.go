package recorder_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// whySaid is what callreel why says of the calls.
type whySaid struct {
	Calls []struct {
		Function string `json:"function"`
		TID      int    `json:"tid"`
		Causes   []struct {
			Path  []string `json:"path"`
			State string   `json:"state"`
		} `json:"causes"`
		Text string `json:"text"`
	} `json:"calls"`
}

// statesOfTheCall has it that a dump says nearly all the time what its call's thread did, and whether it does so up to the end.
func statesOfTheCall(t *testing.T, file string) (whole bool) {
	t.Helper()
	f, err := reel.Open(file)
	realtest.Must(t, err)
	defer f.Close()
	about, said := f.Scheduling()
	if !said {
		t.Fatal("the dump doesn't say how states were learned")
	}
	wantWordsOfScheduler(t, about)
	d, _ := f.Dump()
	if len(d.Triggers) == 0 {
		t.Fatal("the dump has no trigger")
	}
	call := d.Triggers[0]
	states := f.States(call.Thread)
	states.Seek(call.Start)
	known, all := uint64(0), uint64(0)
	for i, ok := states.Next(); ok && i.From < call.End; i, ok = states.Next() {
		n := min(i.To, call.End) - max(i.From, call.Start)
		if all += n; i.State != reel.StateUnknown {
			known += n
		}
	}
	if 10*known < 9*(call.End-call.Start) || all > call.End-call.Start {
		t.Errorf("of the %d ticks of the call %d are in the dump and %d are known", call.End-call.Start, all, known)
	}
	return all == call.End-call.Start
}

// A dump has what its threads did, from before the call it was made for on, and beside it lies why that call was slow.
func TestDumpsSayWhyTheirCallWasSlow(t *testing.T) {
	needLive(t)
	a := startArmed(t)
	r := a.arm(t, "--when", "request > 20ms", "--keep", "2s", "--ring", "8M", "--why")
	a.do("200 0")
	var file string
	for try := 1; ; try++ { // a busy machine may tell too late what the thread did at the end
		a.do("1 60")
		file = waitDumps(t, r, try)[try-1]
		if whole := statesOfTheCall(t, file); whole || try == 5 {
			if !whole {
				t.Error("no dump has the whole of its call")
			}
			break
		}
	}
	stopArmed(t, r)
	wantUntouched(t, a.Pid())
	a.Finish()
	text, err := os.ReadFile(strings.TrimSuffix(file, ".reel") + ".txt")
	realtest.Must(t, err)
	if !strings.HasPrefix(string(text), "request took ") {
		t.Errorf("beside the dump is said: %q", text)
	}
	why := realtest.Decode[whySaid](t, realtest.MustCallreel(t, "why", "--json", file).Stdout)
	if len(why.Calls) != 1 || why.Calls[0].Function != "request" || why.Calls[0].TID != a.Pid() {
		t.Errorf("why says %+v", why)
	}
}

// Threads of a process that a recorded one has begun have states as all others, also where a process has ended and another has its numbers.
func TestFollowedChildrenHaveStates(t *testing.T) {
	needLive(t, realtest.Python3)
	const script = `
import os, sys, time
print("ready", flush=True)
sys.stdin.readline()
for n in range(12):
    if os.fork() == 0:
        end = time.monotonic() + 0.05
        while time.monotonic() < end:
            sum(range(1000))
        time.sleep(0.05)
        os._exit(0)
    if n % 3 == 2:
        for _ in range(3):
            os.wait()
print("forked", flush=True)
sys.stdin.readline()
print("end ok", flush=True)
`
	p := realtest.Python(t, script)
	r := realtest.StartRecording(t, append(pidFlag(p), "--follow", "-f", "PyEval_EvalCode", "-f", "_PyEval_EvalFrameDefault", "-f", "*sleep*")...)
	p.Go()
	p.WaitLine("forked")
	stop(t, r)
	wantUntouched(t, p.Pid())
	p.Finish()
	f, err := reel.Open(r.File)
	realtest.Must(t, err)
	defer f.Close()
	about, _ := f.Scheduling()
	wantWordsOfScheduler(t, about)
	nanoseconds := func(ticks uint64) time.Duration { return time.Duration(f.Clock().Nanoseconds(ticks)) }
	children, slept := 0, 0
	for _, th := range f.Threads() {
		if th.Process == p.Pid() || th.Process == 0 {
			continue
		}
		children++
		var in [4]uint64
		states := f.States(th.Key)
		for i, ok := states.Next(); ok; i, ok = states.Next() {
			in[i.State] += i.To - i.From
		}
		ran, blocked := nanoseconds(in[reel.StateRunning]), nanoseconds(in[reel.StateBlocked])
		ready, unknown := nanoseconds(in[reel.StateReady]), nanoseconds(in[reel.StateUnknown])
		// A stop ends a sleep for a moment, in which a busy machine lets the child wait for a processor.
		if ran+unknown < time.Millisecond || blocked+ready+unknown < 40*time.Millisecond {
			t.Errorf("child %d ran for %v, was ready for %v and blocked for %v; of %v nothing is known", th.TID, ran, ready, blocked, unknown)
		}
		if blocked+unknown >= 40*time.Millisecond {
			slept++
		}
	}
	if children != 12 || slept < 6 {
		t.Errorf("%d children are in the reel, %d of them slept, want 12 and most", children, slept)
	}
}

// Goroutines that wait are told from those that work, whatever their threads do meanwhile.
func TestGoroutinesHaveStates(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, goProgram(t, "waits"))
	r := realtest.StartRecording(t, pidFlag(p)...)
	p.Go()
	p.WaitLine("rounds ")
	stop(t, r)
	wantUntouched(t, p.Pid())
	p.Finish()
	f, err := reel.Open(r.File)
	realtest.Must(t, err)
	about, _ := f.Scheduling()
	f.Close()
	wantWordsOfScheduler(t, about)
	rep := realtest.Decode[struct {
		Functions []struct {
			Name    string `json:"name"`
			Total   int64  `json:"total_ns"`
			CPU     int64  `json:"total_cpu_ns"`
			Blocked int64  `json:"total_blocked_ns"`
		} `json:"functions"`
	}](t, realtest.MustCallreel(t, "report", "--json", r.File).Stdout)
	seen := 0
	for _, fn := range rep.Functions {
		switch fn.Name {
		case "main.computes":
			seen++
			if fn.Blocked > fn.Total/10 {
				t.Errorf("%s was blocked for %d of %d ns", fn.Name, fn.Blocked, fn.Total)
			}
		case "main.receives", "main.sleeps":
			seen++
			if fn.CPU > fn.Total/4 || fn.Blocked < fn.Total/4 {
				t.Errorf("%s ran for %d and was blocked for %d of %d ns", fn.Name, fn.CPU, fn.Blocked, fn.Total)
			}
		}
	}
	if seen != 3 {
		t.Errorf("%d of three functions are in the report", seen)
	}
}
