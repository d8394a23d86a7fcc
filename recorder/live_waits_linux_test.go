package recorder_test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/reel/waiting"
)

// waitKinds are what the threads of the target "waits" wait for.
var waitKinds = []string{"mutex", "rwlock", "cond", "sem", "pipe", "pair", "tcp", "event", "epoll"}

// judged is what a reel says of the waits of one kind of at least a millisecond.
type judged struct{ waits, place, ender, shown int }

// judgeWaits holds what a reel says against what threads are known to wait for. truth is the address or the descriptor of each kind.
func judgeWaits(t *testing.T, file string, truth map[string]uint64) map[string]*judged {
	t.Helper()
	f, err := reel.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if d := f.Damage(); len(d) > 0 {
		t.Fatalf("damaged: %v", d)
	}
	names := map[uint32]string{}
	for _, th := range f.Threads() {
		names[th.Key] = th.Name
	}
	all := map[string]*judged{}
	list, _ := waiting.Find(f, waiting.Options{Least: f.Header().Clock.TicksPerSecond / 1000})
	end := f.LastTick()
	for i := range list {
		s := &list[i]
		kind, is := strings.CutPrefix(names[s.Thread], "w-")
		fn, _ := f.Function(s.Function)
		if !is || strings.Contains(fn.Name, "sleep") || s.Function == 0 || end-s.To < f.Header().Clock.TicksPerSecond/50 {
			continue
		}
		j := all[kind]
		if j == nil {
			j = &judged{}
			all[kind] = j
		}
		j.waits++
		at := s.Address
		if s.Kind == waiting.Other && s.HasWait && s.Wait.Object != "" {
			at = s.Wait.Args[0]
		}
		if at == truth[kind] {
			j.place++
		}
		if names[s.Waker] == "e-"+kind {
			j.ender++
		}
		if wrong := at != truth[kind] || names[s.Waker] != "e-"+kind; wrong && j.shown < 3 {
			j.shown++
			t.Logf("%s: in %s %+v, ended by %q", kind, fn.Name, *s, names[s.Waker])
		}
	}
	return all
}

// waitTruth reads what the target has said.
func waitTruth(p *realtest.Proc) map[string]uint64 {
	truth := map[string]uint64{}
	for _, kind := range waitKinds {
		text := strings.TrimPrefix(p.WaitLine(kind+" "), kind+" ")
		truth[kind], _ = strconv.ParseUint(text, 0, 64)
	}
	p.WaitLine("ready")
	return truth
}

// wantWaits wants to know nearly all of what threads waited for.
func wantWaits(t *testing.T, file string, truth map[string]uint64) {
	t.Helper()
	all := judgeWaits(t, file, truth)
	for _, kind := range waitKinds {
		j := all[kind]
		if j == nil {
			t.Errorf("%s: no waits", kind)
			continue
		}
		t.Logf("%s: %d waits, of %d the place is right, of %d who ended it", kind, j.waits, j.place, j.ender)
		if j.waits < 20 || j.place < j.waits*95/100 || j.ender < j.waits*95/100 {
			t.Errorf("%s: %+v", kind, *j)
		}
	}
}

func TestWhatThreadsWaitedForIsKnownByArgumentsOfLibraryCalls(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, realtest.Build(t, "waits"))
	truth := waitTruth(p)
	s := recordFor(t, "1500ms", pidFlag(p)...)
	wantUntouched(t, p.Pid())
	f, err := reel.Open(s.file)
	if err != nil {
		t.Fatal(err)
	}
	about, _ := f.Scheduling()
	f.Close()
	wantWordsOfScheduler(t, about)
	wantWaits(t, s.file, truth)
}

var _ = fmt.Sprint
var _ = filepath.Join
var _ = time.Now
