package recorder_test

import (
	"os"
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

// wantWaits wants to know nearly all of what threads waited for. On an idle machine it is more than 99 of 100; a busy one may lose words of the
// scheduler, and take long to find sockets.
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
		if j.waits < 10 || j.place < j.waits*8/10 || j.ender < j.waits*8/10 {
			t.Errorf("%s: %+v", kind, *j)
		}
	}
}

// sourceOf is how the reel's states were learned.
func sourceOf(t *testing.T, file string) reel.Scheduling {
	t.Helper()
	f, err := reel.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	about, _ := f.Scheduling()
	return about
}

func TestWhatThreadsWaitedForIsKnownByArgumentsOfLibraryCalls(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, realtest.Build(t, "waits"))
	truth := waitTruth(p)
	span := "2s"
	if realtest.Emulated() {
		span = "20s" // whose sockets are which takes long there
	}
	s := recordFor(t, span, pidFlag(p)...)
	wantUntouched(t, p.Pid())
	wantWordsOfScheduler(t, sourceOf(t, s.file))
	wantWaits(t, s.file, truth)
}

// Perf's events, which are all that an ordinary user has, say neither the system call nor who woke.
func TestAnOrdinaryUserKnowsWhatThreadsWaitedFor(t *testing.T) {
	needLive(t, realtest.Superuser)
	s := &strangers{t: t, home: realtest.StrangersFolder(t), env: os.Environ()}
	s.public = filepath.Dir(s.home)
	s.callreel = copyFor(t, s.public, realtest.CallreelPath(t))
	s.target = s.start(copyFor(t, s.public, realtest.Build(t, "waits")), "hot")
	truth := waitTruth(s.target)
	file := filepath.Join(s.home, "waits.reel")
	r := s.start(s.callreel, append([]string{"record", "-d", "2s", "-o", file}, pidFlag(s.target)...)...)
	if code := r.Wait(); code != 0 {
		t.Fatalf("code %d\n%s", code, r.Stderr())
	}
	wantUntouched(t, s.target.Pid())
	about := sourceOf(t, file)
	if about.Source == "bpf" {
		t.Fatalf("an ordinary user has %+v", about)
	}
	wantWordsOfScheduler(t, about)
	wantWaits(t, file, truth)
}

// A dump has the same of its window.
func TestADumpSaysWhatThreadsWaitedFor(t *testing.T) {
	file, truth := dumpOfWaits(t, func(j *judged) bool { return j.ender >= j.waits*8/10 })
	wantWordsOfScheduler(t, sourceOf(t, file))
	wantWaits(t, file, truth)
}

// Where calls that are short are left out, so may be those that ended waits. Those in which threads waited are there.
func TestADumpOfLongCallsSaysWhatThreadsWaitedFor(t *testing.T) {
	dumpOfWaits(t, func(j *judged) bool { return true }, "--min", "500us")
}

// dumpOfWaits makes an ordinary user's dumps of the target "waits" until one has ten waits of each kind and knows the places of four in five of
// them; enough may ask for more.
func dumpOfWaits(t *testing.T, enough func(*judged) bool, flags ...string) (file string, truth map[string]uint64) {
	needLive(t, realtest.Superuser)
	s := &strangers{t: t, home: realtest.StrangersFolder(t), env: os.Environ()}
	s.public = filepath.Dir(s.home)
	s.callreel = copyFor(t, s.public, realtest.CallreelPath(t))
	s.target = s.start(copyFor(t, s.public, realtest.Build(t, "waits")), "cold") // the rings are to hold all threads' calls of the window
	truth = waitTruth(s.target)
	dumps := filepath.Join(s.home, "dumps")
	r := s.start(s.callreel, append(append([]string{"record", "--when", "holds_mutex > 1h", "-o", dumps}, flags...), pidFlag(s.target)...)...)
	waitFile(t, dumps, r)
	time.Sleep(2 * time.Second) // the window lies in what has been
	eventually(t, "a dump that has waits of all kinds", func() bool {
		file = strings.TrimSpace(realtest.MustCallreel(t, append([]string{"dump", "--last", "2s"}, pidFlag(s.target)...)...).Stdout)
		all := judgeWaits(t, file, truth)
		for _, kind := range waitKinds {
			if j := all[kind]; j == nil || j.waits < 10 || j.place < j.waits*8/10 || !enough(j) {
				return false
			}
		}
		return true
	})
	r.Signal(os.Interrupt)
	if code := r.Wait(); code != 0 {
		t.Errorf("code %d\n%s", code, r.Stderr())
	}
	wantUntouched(t, s.target.Pid())
	return file, truth
}
