package recorder_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// talkers are two programs, of which one asks the other.
type talkers struct {
	db, web *realtest.Proc
	asked   int
}

func startTalkers(t *testing.T) *talkers {
	t.Helper()
	program, socket := realtest.Build(t, "couple"), filepath.Join(t.TempDir(), "s")
	p := &talkers{db: realtest.Start(t, program, "db", socket)}
	p.web = realtest.Start(t, program, "web", socket)
	return p
}

// handle makes n requests, the last of which takes so many milliseconds.
func (p *talkers) handle(n, ms int) {
	p.web.Say(fmt.Sprintf("%d %d", n, ms))
	p.asked++
	p.web.WaitLine(fmt.Sprintf("done %d.", p.asked))
}

func (p *talkers) arm(t *testing.T, flags ...string) *realtest.Recording {
	t.Helper()
	return realtest.StartRecording(t, slices.Concat(pidFlag(p.web), []string{"--with", strconv.Itoa(p.db.Pid()), "-m", "couple*"}, flags)...)
}

// callsByProcess counts a reel's calls of a function, by process.
func callsByProcess(f *reel.File, name string) map[int]int {
	n := map[int]int{}
	for _, th := range f.Threads() {
		f.ReadThread(th.Key, func(events []reel.Event, _ bool) bool {
			for _, e := range events {
				if fn, ok := f.Function(e.ID()); ok && fn.Name == name && !e.IsExit() {
					n[th.Process]++
				}
			}
			return true
		})
	}
	return n
}

// A call that is slow in one process dumps the same time of the other, in one reel, and it is known there what that one did meanwhile.
func TestASlowCallDumpsTheProcessThatItWaitsFor(t *testing.T) {
	needLive(t)
	limit := 50 // milliseconds
	if realtest.Emulated() {
		limit *= 10 // others may take as long, where the machine is busy, too
	}
	p := startTalkers(t)
	r := p.arm(t, "--when", fmt.Sprintf("handle > %dms", limit), "--keep", "30s")
	p.handle(200, 0)
	p.handle(1, 3*limit)
	file := waitDumps(t, r, 1)[0]
	p.handle(100, 0)
	s := stopArmed(t, r)
	wantUntouched(t, p.web.Pid())
	wantUntouched(t, p.db.Pid())
	if s.Triggers.Dumped != 1 {
		t.Errorf("triggers %+v", s.Triggers)
	}
	f, err := reel.Open(file)
	realtest.Must(t, err)
	defer f.Close()
	if d := f.Damage(); len(d) > 0 {
		t.Fatalf("damaged: %v", d)
	}
	about, _ := f.Dump()
	if len(about.Triggers) != 1 {
		t.Fatalf("%d triggers", len(about.Triggers))
	}
	for _, m := range about.Missing { // one of the two was attached to later than the other
		if m.To > about.Triggers[0].Start {
			t.Errorf("missing %+v of the call from %d to %d", m, about.Triggers[0].Start, about.Triggers[0].End)
		}
	}
	if n := callsByProcess(f, "handle"); n[p.web.Pid()] != 201 || len(n) != 1 {
		t.Errorf("calls of handle by process: %v, want 201 of %d", n, p.web.Pid())
	}
	if n := callsByProcess(f, "query"); n[p.db.Pid()] != 201 || len(n) != 1 {
		t.Errorf("calls of query by process: %v, want 201 of %d", n, p.db.Pid())
	}
	scheduled, _ := f.Scheduling()
	if !scheduled.WakeUps {
		return // nobody says then who let the thread go on
	}
	said := realtest.MustCallreel(t, "why", file).Stdout
	if !strings.Contains(said, fmt.Sprintf("until thread %d ", p.db.Pid())) || !strings.Contains(said, "was in query meanwhile") {
		t.Errorf("why says:\n%s", said)
	}
}

// Whichever process a condition comes true in dumps both, and so does who asks for a dump of either.
func TestEitherOfTwoProcessesDumpsBoth(t *testing.T) {
	needLive(t)
	p := startTalkers(t)
	r := p.arm(t, "--when", "query > 50ms", "--keep", "10s") // which only db calls
	p.handle(20, 100)
	waitDumps(t, r, 1)
	realtest.MustCallreel(t, append([]string{"dump"}, pidFlag(p.db)...)...)
	realtest.MustCallreel(t, append([]string{"dump"}, pidFlag(p.web)...)...)
	s := stopArmed(t, r)
	if len(s.Dumps) != 3 {
		t.Errorf("dumps %q", s.Dumps)
	}
	for _, file := range s.Dumps {
		f, err := reel.Open(file)
		realtest.Must(t, err)
		if web, db := callsByProcess(f, "handle"), callsByProcess(f, "query"); web[p.web.Pid()] != 20 || db[p.db.Pid()] != 20 {
			t.Errorf("%s: handle %v, query %v", file, web, db)
		}
		f.Close()
	}
}

// A process that ends is dumped with the other one, which goes on being recorded.
func TestOneOfTwoProcessesEnds(t *testing.T) {
	needLive(t)
	for _, ends := range []string{"first", "other"} {
		t.Run(ends, func(t *testing.T) {
			p := startTalkers(t)
			r := p.arm(t, "--when", "query > 1h", "--keep", "10s")
			p.handle(30, 0)
			lives := p.db
			if ends == "first" {
				p.web.Wait() // db waits for nothing any more
			} else {
				p.db.Signal(syscall.SIGKILL)
				lives = p.web
			}
			file := waitDumps(t, r, 1)[0]
			f, err := reel.Open(file)
			realtest.Must(t, err)
			if web, db := callsByProcess(f, "handle"), callsByProcess(f, "query"); web[p.web.Pid()] != 30 || db[p.db.Pid()] != 30 {
				t.Errorf("at the end: handle %v, query %v", web, db)
			}
			f.Close()
			time.Sleep(100 * time.Millisecond)
			if !r.Alive() {
				t.Fatalf("the recording has ended with it: %s", r.Ended())
			}
			realtest.MustCallreel(t, append([]string{"dump"}, pidFlag(lives)...)...)
			stopArmed(t, r)
			wantUntouched(t, lives.Pid())
		})
	}
}

// Where one of the processes can't be recorded, none is touched.
func TestARefusalOfOneProcessRefusesAll(t *testing.T) {
	needLive(t)
	p := startTalkers(t)
	db := strconv.Itoa(p.db.Pid())
	for _, c := range []struct {
		name  string
		flags []string
		says  string
	}{
		{"no such process", []string{"--with", "4194303", "-m", "couple*", "--when", "handle > 1s"}, "4194303"},
		{"nothing chosen", []string{"--with", db, "-m", "nowhere*", "--when", "handle > 1s"}, "nowhere"},
		{"a condition for none", []string{"--with", db, "-m", "couple*", "--when", "nothing_such > 1s"}, "nothing_such"},
		{"twice", []string{"--with", db, "--with", db, "-m", "couple*", "--when", "handle > 1s"}, "twice"},
		{"without a condition", []string{"--with", db, "-m", "couple*"}, "--when"},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "dumps")
			got := realtest.Callreel(t, slices.Concat([]string{"record", "-d", "100ms", "-o", folder}, pidFlag(p.web), c.flags)...)
			if got.Code == 0 || !strings.Contains(got.Stderr, c.says) {
				t.Errorf("exit code %d, says %q, want %q in it", got.Code, got.Stderr, c.says)
			}
			wantUntouched(t, p.web.Pid())
			wantUntouched(t, p.db.Pid())
		})
	}
	p.handle(10, 0)
}
