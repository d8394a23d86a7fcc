package recorder_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
)

// times is how often the real programs are attached to and detached from.
func times(t *testing.T) int {
	if testing.Short() { // in an emulator each time takes ten seconds
		return realtest.Repeats(t, 2)
	}
	return realtest.Repeats(t, 16)
}

func TestThreadsAreAttachedToAndDetachedFromManyTimes(t *testing.T) {
	t.Parallel()
	needLive(t)
	for _, mode := range []string{"steady", "churn"} {
		t.Run(mode, func(t *testing.T) {
			p := realtest.Start(t, realtest.Build(t, "threads"), mode, "2")
			if calls := cycles(t, times(t)/2, p.Pid(), ""); calls == 0 {
				t.Error("no calls")
			}
			if counts := p.Finish(); counts["counted_a"] == 0 {
				t.Errorf("%v", counts)
			}
		})
	}
}

func TestPythonIsAttachedToAndDetachedFromManyTimes(t *testing.T) {
	t.Parallel()
	needLive(t, realtest.Python3)
	p := realtest.Python(t, realtest.PythonWork)
	if calls := cycles(t, times(t), p.Pid(), "python3*"); calls == 0 {
		t.Error("no calls")
	}
	if counts := p.Finish(); counts["rounds"] == 0 {
		t.Errorf("%v", counts)
	}
}

func TestRedisIsAttachedToAndDetachedFromManyTimes(t *testing.T) {
	t.Parallel()
	needLive(t, realtest.RedisTools)
	s := realtest.Redis(t)
	load := underLoad(t, func(ctx context.Context) (int64, error) { return s.Load(ctx, 1) })
	if calls := cycles(t, times(t), s.Pid(), "redis-*"); calls == 0 {
		t.Error("no calls")
	}
	load.end(t)
	if answer, err := s.Do("PING"); answer != "PONG" || err != nil {
		t.Errorf("PING: %q, %v", answer, err)
	}
}

func TestNginxIsAttachedToAndDetachedFromManyTimes(t *testing.T) {
	needLive(t, realtest.WebServer)
	for _, c := range []struct {
		name    string
		workers int
		times   int
	}{{"a worker of two", 2, times(t)}, {"one process", 0, realtest.Repeats(t, 4)}} {
		t.Run(c.name, func(t *testing.T) {
			s := realtest.Nginx(t, realtest.NginxOptions{Workers: c.workers})
			load := underLoad(t, func(ctx context.Context) (int64, error) { return s.Load(ctx, 1) })
			worker := s.Workers()[0]
			cycles(t, c.times, worker, "nginx")
			load.end(t)
			if got := s.Workers()[0]; got != worker {
				t.Errorf("worker %d was replaced by %d", worker, got)
			}
		})
	}
}

// Both workers and the master at once, each by a recorder of its own.
func TestEveryProcessOfNginxIsRecordedAtOnce(t *testing.T) {
	needLive(t, realtest.WebServer)
	s := realtest.Nginx(t, realtest.NginxOptions{Workers: 2})
	load := underLoad(t, func(ctx context.Context) (int64, error) { return s.Load(ctx, 4) })
	pids := append(s.Workers(), s.Pid())
	var recordings []*realtest.Recording
	for _, pid := range pids {
		recordings = append(recordings, realtest.StartRecording(t, "-p", fmt.Sprint(pid)))
	}
	time.Sleep(300 * time.Millisecond)
	for _, r := range recordings {
		stop(t, r)
	}
	load.end(t)
	for i, pid := range pids {
		wantUntouched(t, pid)
		if calls := reportOf(t, recordings[i].File).Calls; calls == 0 && pid != s.Pid() {
			t.Errorf("worker %d: no calls", pid)
		}
	}
}

// The share of functions that are traced, their names, the reasons of the rest,
// and the result of what ran meanwhile.
func TestPythonIsRecordedByExitSites(t *testing.T) {
	needLive(t, realtest.Python3)
	p := realtest.Python(t, realtest.PythonWork)
	args := append([]string{"functions", "--json", "-m", "python3*"}, pidFlag(p)...)
	list := realtest.Decode[realtest.FunctionList](t, realtest.MustCallreel(t, args...).Stdout)
	byTier, byReason := map[string]int{}, map[string]int{}
	for _, f := range list.Functions {
		byTier[f.Tier]++
		if f.Tier == "" {
			byReason[f.Reason]++
		}
		if strings.HasSuffix(f.Name, ".cold") {
			t.Errorf("the part %s is listed as a function", f.Name)
		}
	}
	share := float64(byTier["exit-site"]) / float64(len(list.Functions))
	t.Logf("%d functions, %.1f %% exit-site; refused %v", len(list.Functions), 100*share, byReason)
	if share < 0.86 || byReason[""] != 0 {
		t.Errorf("%.1f %% of %d functions by exit sites, want 86; refused %v", 100*share, len(list.Functions), byReason)
	}

	r := realtest.StartRecording(t, append(pidFlag(p), "--lossless")...)
	wantProbed(t, p.Pid())
	time.Sleep(time.Second)
	s := stop(t, r)
	wantUntouched(t, p.Pid())
	if counts := p.Finish(); counts["rounds"] == 0 {
		t.Errorf("%v", counts)
	}
	if perEvent := float64(s.Bytes) / float64(s.Events); perEvent > 3 {
		t.Errorf("%.2f bytes an event (%d bytes, %d events), want at most 3", perEvent, s.Bytes, s.Events)
	} else {
		t.Logf("%d calls, %.2f bytes an event", s.Calls, perEvent)
	}
	if s.Dropped != 0 {
		t.Errorf("--lossless dropped %d", s.Dropped)
	}
	rep := reportOf(t, r.File)
	exported, unnamed := 0, 0
	for _, f := range rep.Functions {
		if !strings.HasPrefix(f.Module, "python3") || f.Calls == 0 {
			continue
		}
		switch {
		case strings.HasPrefix(f.Name, f.Module+"+0x"):
			unnamed++
		case strings.Contains(f.Name, "Py"):
			exported++
		}
	}
	if exported < 50 || unnamed < 50 {
		t.Errorf("%d functions called by exported names, %d by address; want 50 of each", exported, unnamed)
	}
	for _, name := range []string{"_PyEval_EvalFrameDefault", "PyDict_SetItem"} {
		if rep.Report.Calls(name) == 0 {
			t.Errorf("no call of %s", name)
		}
	}
}

// Compactness under a real server, where functions follow each other as they like.
func TestRedisIsRecordedInThreeBytesAnEvent(t *testing.T) {
	needLive(t, realtest.RedisTools)
	s := realtest.Redis(t)
	load := underLoad(t, func(ctx context.Context) (int64, error) { return s.Load(ctx, 4) })
	r := realtest.StartRecording(t, pidFlag(s)...)
	wantProbed(t, s.Pid())
	time.Sleep(2 * time.Second)
	sum := stop(t, r)
	load.end(t)
	wantUntouched(t, s.Pid())
	if perEvent := float64(sum.Bytes) / float64(sum.Events); perEvent > 3 {
		t.Errorf("%.2f bytes an event (%d bytes, %d events), want at most 3", perEvent, sum.Bytes, sum.Events)
	} else {
		t.Logf("%d calls, %d dropped, %.2f bytes an event", sum.Calls, sum.Dropped, perEvent)
	}
	rep := reportOf(t, r.File)
	if rep.Calls != sum.Calls || rep.Dropped != sum.Dropped {
		t.Errorf("report: %d calls, %d dropped; summary: %d, %d", rep.Calls, rep.Dropped, sum.Calls, sum.Dropped)
	}
	for _, name := range []string{"setCommand", "getCommand", "processCommand", "writeToClient"} {
		if rep.Report.Calls(name) == 0 {
			t.Errorf("no call of %s", name)
		}
	}
}
