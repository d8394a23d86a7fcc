package recorder_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
)

// Children made in every way there is find nothing wrong while their parent is
// recorded, attached to and detached from, and neither does it.
func TestChildrenOfARecordedProcessAreUnharmed(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, realtest.Build(t, "fork"))
	r := realtest.StartRecording(t, pidFlag(p)...)
	time.Sleep(500 * time.Millisecond)
	stop(t, r)
	cycles(t, realtest.Repeats(t, 6), p.Pid(), "")
	if counts := p.Finish(); counts["children"] == 0 {
		t.Error("no children")
	}
}

// What a child calls is not in the reel: the parent's counts alone explain it.
func TestAForkedChildDoesNotRecord(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, realtest.Build(t, "fork"))
	r := realtest.StartRecording(t, append(pidFlag(p), "--lossless", "-f", "step", "-f", "walk", "-f", "by_*")...)
	time.Sleep(700 * time.Millisecond)
	stop(t, r)
	wantUntouched(t, p.Pid())
	p.Finish()
	rep := reportOf(t, r.File)
	rounds := rep.Report.Calls("by_daemon")
	if rounds < 2 {
		t.Fatalf("only %d rounds recorded", rounds)
	}
	// A round of the parent calls walk once, which calls step 1,000 times. Its children do the same, some eight times.
	if walks := rep.Report.Calls("walk"); walks < rounds-1 || walks > rounds+1 {
		t.Errorf("%d calls of walk in %d rounds: children recorded, or the parent did not", walks, rounds)
	}
	if steps := rep.Report.Calls("step"); steps < 1000*(rounds-1) || steps > 1000*(rounds+1) {
		t.Errorf("%d calls of step in %d rounds of 1,000", steps, rounds)
	}
	// The main thread, and one a round that forks.
	if n := int64(len(rep.Threads)); n < rounds || n > rounds+2 {
		t.Errorf("%d threads in %d rounds", n, rounds)
	}
}

// forkingScript forks when told to; both sides go on checking their work, and
// the child tells how it fared when its file appears.
const forkingScript = `
import os, sys, hashlib
def work():
    return hashlib.sha256(b"".join(str(i * i % 97).encode() for i in range(300))).hexdigest()
want = work()
print("ready", flush=True)
sys.stdin.readline()
pid = os.fork()
if pid == 0:
    rounds = 0
    while not os.path.exists(sys.argv[1]):
        if work() != want:
            os._exit(3)
        rounds += 1
    os._exit(0 if rounds else 4)
print("child", pid, flush=True)
sys.stdin.readline()
open(sys.argv[1], "w").close()
_, status = os.waitpid(pid, 0)
ok = work() == want
print("fork status=%d right=%d ok" % (status, ok), flush=True)
`

// recordFork begins to record a process, which then forks a child.
func recordFork(t *testing.T, flags ...string) (p *realtest.Proc, r *realtest.Recording, child int) {
	t.Helper()
	p = realtest.Python(t, forkingScript, filepath.Join(t.TempDir(), "end"))
	r = realtest.StartRecording(t, append(pidFlag(p), flags...)...)
	p.Go()
	child, err := strconv.Atoi(strings.TrimPrefix(p.WaitLine("child "), "child "))
	if err != nil {
		t.Fatal(err)
	}
	return p, r, child
}

// A child that outlives the recording has inherited patched text and stubs,
// which do nothing; detach removes them from it.
func TestDetachCleansAnInheritingChild(t *testing.T) {
	needLive(t, realtest.Python3)
	p, r, child := recordFork(t)
	// While the parent's recording runs, and after it.
	if err := textAsFile(child); err == nil {
		t.Error("the child has not inherited patched text: this test tests nothing")
	}
	detached := realtest.MustCallreel(t, "detach", "-p", strconv.Itoa(child))
	if !strings.Contains(detached.Stdout, "text verified: true") {
		t.Errorf("detach said %q", detached.Stdout)
	}
	wantUntouched(t, child)
	wantProbed(t, p.Pid())
	// A child of its own can be recorded like any process.
	cycle(t, child)
	s := stop(t, r)
	if s.Calls == 0 {
		t.Error("nothing recorded of the parent")
	}
	wantUntouched(t, p.Pid())
	p.Go()
	if counts := p.Finish(); counts["status"] != 0 || counts["right"] != 1 {
		t.Errorf("%v", counts)
	}
	for _, th := range reportOf(t, r.File).Threads {
		if th.TID == child {
			t.Errorf("the child recorded %d calls", th.Calls)
		}
	}
}

// What was forked is restored with its parent: as recording ends, or as it is cleaned up after a recorder that was killed.
func TestForkedChildrenAreRestoredWithTheirParent(t *testing.T) {
	needLive(t, realtest.Python3)
	for _, flags := range [][]string{nil, {"--follow"}} {
		for _, killed := range []bool{false, true} {
			p, r, child := recordFork(t, flags...)
			if err := textAsFile(child); err == nil {
				t.Error("the child has not inherited patched text: this test tests nothing")
			}
			if !killed {
				stop(t, r)
			} else {
				r.Signal(syscall.SIGKILL)
				r.Wait()
				var d struct {
					Children int  `json:"children"`
					Verified bool `json:"text_verified"`
				}
				out := realtest.MustCallreel(t, "detach", "--json", "-p", strconv.Itoa(p.Pid())).Stdout
				if err := json.Unmarshal([]byte(out), &d); err != nil || d.Children != 1 || !d.Verified {
					t.Errorf("%v %s", err, out)
				}
			}
			wantUntouched(t, child)
			wantUntouched(t, p.Pid())
			p.Go()
			if counts := p.Finish(); counts["status"] != 0 || counts["right"] != 1 {
				t.Errorf("%v: %v", flags, counts)
			}
		}
	}
}

// A child that inherited probes can be recorded without a detach before it.
func TestAnInheritingChildCanBeRecorded(t *testing.T) {
	needLive(t, realtest.Python3)
	p, r, child := recordFork(t)
	if s := cycle(t, child); s.Calls == 0 {
		t.Error("no call of the child recorded")
	}
	stop(t, r)
	p.Go()
	if counts := p.Finish(); counts["status"] != 0 || counts["right"] != 1 {
		t.Errorf("%v", counts)
	}
}

// redis saves in a forked child, while it is traced and answers.
func TestRedisSavesInTheBackgroundWhileRecorded(t *testing.T) {
	needLive(t, realtest.RedisTools)
	s := realtest.Redis(t)
	load := underLoad(t, func(ctx context.Context) (int64, error) { return s.Load(ctx, 1) })
	r := realtest.StartRecording(t, pidFlag(s)...)
	for range 3 {
		if _, err := s.Do("BGSAVE"); err != nil {
			t.Fatalf("BGSAVE: %v", err)
		}
		eventually(t, "saved", func() bool {
			info, err := s.Do("INFO", "persistence")
			if err != nil {
				t.Fatal(err)
			}
			return strings.Contains(info, "rdb_bgsave_in_progress:0") && strings.Contains(info, "rdb_last_bgsave_status:ok")
		})
	}
	sum := stop(t, r)
	load.end(t)
	wantUntouched(t, s.Pid())
	if sum.Calls == 0 {
		t.Error("nothing recorded")
	}
	if dump, err := os.ReadFile(filepath.Join(s.Dir, "dump.rdb")); err != nil || !slices.Equal(dump[:5], []byte("REDIS")) {
		t.Errorf("dump.rdb: %d bytes, %v", len(dump), err)
	}
	// What was saved can be loaded: redis compares the checksum.
	if _, err := s.Do("DEBUG", "RELOAD", "NOSAVE", "NOFLUSH", "MERGE"); err != nil && !strings.Contains(err.Error(), "DEBUG command not allowed") {
		t.Errorf("reload: %v", err)
	}
}
