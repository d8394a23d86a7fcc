package recorder_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// counted is what a target says in its last line.
func counted(t testing.TB, lines []string) map[string]int64 {
	t.Helper()
	counts := map[string]int64{}
	for _, line := range lines {
		for _, word := range strings.Fields(line) {
			if key, value, has := strings.Cut(word, "="); has {
				n, err := strconv.ParseInt(value, 10, 64)
				realtest.Must(t, err)
				counts[key] = n
			}
		}
	}
	return counts
}

// Of a thread that pauses its recording just those calls are in the reel that it makes outside of pauses, and of others none that they surely
// made within.
func TestProgramsPauseTheirRecordingExactly(t *testing.T) {
	needLive(t)
	const rounds = 6000
	for _, c := range []struct {
		name    string
		flags   []string
		threads int
	}{
		{"alone", nil, 0},
		{"with others", nil, 2},
		{"lazily", []string{"--lazy"}, 1},
		{"every function", []string{"-f", "*", "--lazy"}, 1},
		{"taking back", []string{"--min", "1ns"}, 1},
		{"within a depth", []string{"--depth", "100"}, 1},
		{"with arguments", []string{"--args", "work", "--args", "busy"}, 1},
		{"with markers", []string{"--markers", "callreel:*"}, 1},
		{"following", []string{"--follow"}, 1},
		{"following, lazily", []string{"--follow", "--lazy", "--depth", "100"}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			flags := append([]string{"--lossless"}, c.flags...)
			if len(c.flags) < 2 || c.flags[1] != "*" {
				flags = append(flags, "-f", "work", "-f", "busy", "-f", "outer", "-f", "deep")
			}
			r := startCommand(t, flags, realtest.Build(t, "pauses"), strconv.Itoa(rounds), strconv.Itoa(c.threads))
			r.WaitLine("pauses kept")
			code := r.Wait()
			s := r.result(t)
			n := counted(t, r.Stdout())
			rep := reportOf(t, r.file)
			if code != 0 || s.Dropped != 0 || s.LostExits != 0 {
				t.Errorf("code %d, %+v", code, s)
			}
			if got := rep.Report.Calls("work"); got > n["kept"] || got < n["kept"]-timeless(flags, n["kept"]) {
				t.Errorf("%d calls of work, it says %d (and %d in pauses)", got, n["kept"], n["in_pause"])
			}
			if got := rep.Report.Calls("deep"); got != 0 {
				t.Errorf("%d calls of deep, which are all in pauses", got)
			}
			if got := rep.Report.Calls("outer"); got != rounds/3 {
				t.Errorf("%d calls of outer, want %d", got, rounds/3)
			}
			if got := rep.Report.Calls("busy"); got < n["sure"]-timeless(flags, n["sure"]) || got > n["busy"]-n["never"] {
				t.Errorf("%d calls of busy, surely %d of %d, and surely not %d", got, n["sure"], n["busy"], n["never"])
			}
			wantOwnPauses(t, r.file, rounds)
			t.Logf("%v, busy %d", n, rep.Report.Calls("busy"))
		})
	}
}

// wantOwnPauses holds a reel's pauses against how many there were, and against its calls.
func wantOwnPauses(t *testing.T, file string, want int) {
	t.Helper()
	f, err := reel.Open(file)
	realtest.Must(t, err)
	defer f.Close()
	pauses := f.Pauses()
	if len(pauses) != want {
		t.Errorf("%d pauses, want %d", len(pauses), want)
	}
	last := uint64(0)
	for _, p := range pauses {
		if p.By != "program" || p.To <= p.From || p.From < last {
			t.Fatalf("the pause %+v behind one that ends at %d", p, last)
		}
		last = p.To
	}
	unmarked := 0
	for _, th := range f.Threads() {
		var q reel.Pairer
		f.ReadyPairer(&q, th.Key)
		q.OnCall = func(c *reel.Call) {
			if fn, ok := f.Function(c.Func); ok && fn.Name == "outer" && c.Complete() {
				unmarked++
			}
		}
		f.ReadThread(th.Key, func(events []reel.Event, _ bool) bool {
			q.Push(events)
			return true
		})
		q.Finish(f.LastTick())
	}
	if unmarked > 0 {
		t.Errorf("%d calls that were open when a pause began aren't marked", unmarked)
	}
}

// Children have their own say: they are born as their parent is, and go on by themselves.
func TestForkedChildrenPauseTheirOwnRecording(t *testing.T) {
	needLive(t)
	const rounds = 40
	for _, how := range []string{"--eager", "--lazy"} {
		r := startCommand(t, []string{"--follow", "--lossless", how, "-f", "work", "-f", "in_child"}, realtest.Build(t, "pauses"), "fork", strconv.Itoa(rounds))
		r.WaitLine("pauses kept")
		code := r.Wait()
		s := r.result(t)
		n := counted(t, r.Stdout())
		rep := reportOf(t, r.file)
		if work, child := rep.Report.Calls("work"), rep.Report.Calls("in_child"); code != 0 || s.Dropped != 0 || work != n["kept"] || child != n["children"] {
			t.Errorf("%s: code %d, %d calls of work and %d of in_child: %v, %+v", how, code, work, child, n, s)
		}
	}
	// Where they aren't followed they don't touch their parent's recording.
	r := startCommand(t, []string{"--lossless", "-f", "work"}, realtest.Build(t, "pauses"), "fork", strconv.Itoa(rounds))
	r.WaitLine("pauses kept")
	r.Wait()
	if got, n := reportOf(t, r.file).Report.Calls("work"), counted(t, r.Stdout()); got != n["kept"] {
		t.Errorf("%d calls of work: %v", got, n)
	}
}

// A recording that begins with a pause goes on when the program says so.
func TestProgramsEndThePauseAtTheBeginning(t *testing.T) {
	needLive(t)
	for _, flags := range [][]string{nil, {"--follow"}} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			p := realtest.Start(t, realtest.Build(t, "pauses"), "wait")
			r := realtest.StartRecording(t, append(append(pidFlag(p), "-f", "work", "--paused", "--lossless"), flags...)...)
			p.Go()
			time.Sleep(200 * time.Millisecond)
			kept := p.Finish()["kept"]
			r.Stop()
			r.Summary()
			rep := reportOf(t, r.File)
			if got := rep.Report.Calls("work"); got == 0 || got > int64(kept) {
				t.Errorf("%d calls of %d", got, kept)
			}
			f, err := reel.Open(r.File)
			realtest.Must(t, err)
			if list := f.Pauses(); len(list) != 1 || list[0].To == 0 || list[0].By != "command" {
				t.Errorf("pauses %+v", list)
			}
			f.Close()
		})
	}
}
