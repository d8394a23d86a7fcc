package hostile

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
)

// privileged records a process of root's whose child has given up its privileges and reaches for its parent, and returns both.
func privileged(t *testing.T, mode string, flags ...string) (p *realtest.Proc, r *running) {
	t.Helper()
	program := knowing(t, "hostile_privileged", "-no-pie")
	u := realtest.NewUser(t, 0)
	file := filepath.Join(u.Folder, "forged")
	p = realtest.Start(t, program, strconv.Itoa(int(u.ID)), mode, file)
	site := symbolOf(t, program, "hostile_leaf")
	now, err := memoryOf(p.Pid(), site, 5)
	if err == nil {
		err = os.WriteFile(file, forged(p.Pid(), site, now, ofJIT), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	reel := filepath.Join(t.TempDir(), "x.reel")
	r = start(t, append([]string{"record", "-p", strconv.Itoa(p.Pid()), "-f", "hostile_*", "-o", reel}, flags...)...)
	if !r.on(t, reel) {
		r.wait(t)
		t.Fatal("not recorded")
	}
	return p, r
}

// reached is how often the child could write to what both see.
func reached(t *testing.T, p *realtest.Proc) int64 {
	t.Helper()
	counts, err := realtest.ParseCounts(p.WaitLine("attacked"))
	if err != nil {
		t.Fatal(err)
	}
	return counts["reached"]
}

// sharing tries one way without --follow, where parent and child share nothing that either writes.
func sharing(t *testing.T, mode string) {
	p, r := privileged(t, mode)
	if n := reached(t, p); n > 0 {
		t.Errorf("the child could write to memory that its parent's probes use, %d times", n)
	}
	r.interrupt()
	if out := r.wait(t); out.Code != 0 {
		t.Errorf("exit code %d: %s", out.Code, out.Stderr)
	}
	intact(t, p.Pid())
	if n := p.Finish()["spoiled"]; n != 0 {
		t.Errorf("the parent's memory was changed %d times", n)
	}
}

func TestChildTakesItsParentsEventsElsewhere(t *testing.T) { sharing(t, "claim") }

func TestChildOfASetgidProgramTakesItsParentsEventsElsewhere(t *testing.T) { sharing(t, "group") }

func TestChildWritesItsParentsStubs(t *testing.T) { sharing(t, "code") }

// Followed children have the rings, but never the code for writing.
func TestFollowedChildWritesItsParentsStubs(t *testing.T) {
	p, r := privileged(t, "code", "--follow")
	if n := reached(t, p); n > 0 {
		t.Errorf("the child could write to its parent's stubs, %d arenas", n)
	}
	r.interrupt()
	r.wait(t)
	p.Finish()
}

func onlyChild(t testing.TB, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return child
}

// A followed child that has given up its privileges is set apart: what it writes into rings is its own matter, and it is recorded as before.
func TestFollowedChildThatGaveUpItsPrivilegesIsSetApart(t *testing.T) {
	p, r := privileged(t, "later", "--follow", "--json")
	if reached(t, p) == 0 {
		t.Error("the child has no rings: it isn't recorded any more")
	}
	child := onlyChild(t, p.Pid())
	time.Sleep(300 * time.Millisecond)
	r.interrupt()
	out := r.wait(t)
	if out.Code != 0 || !strings.Contains(out.Stderr, "hasn't the rights") || !strings.Contains(out.Stdout, `"late":1`) {
		t.Errorf("exit code %d: %s%s", out.Code, out.Stdout, out.Stderr)
	}
	intact(t, child)
	intact(t, p.Pid())
	if n := p.Finish()["spoiled"]; n != 0 {
		t.Errorf("the parent's memory was changed %d times", n)
	}
}

// Neither what a child has written nor what a followed one has makes detach harm the parent.
func TestChildForgesTheRecordOfADeadRecorder(t *testing.T) {
	for _, flags := range [][]string{nil, {"--follow"}} {
		t.Run(filepath.Join(append([]string{"record"}, flags...)...), func(t *testing.T) {
			p, r := privileged(t, "record", flags...)
			if n := reached(t, p); n > 0 {
				t.Errorf("the child could write what there is to be undone, %d times", n)
			}
			r.kill()
			s := &served{Proc: p}
			d := callreel(t, "detach", "-p", strconv.Itoa(p.Pid()))
			t.Logf("detach: code %d\n%s%s", d.Code, d.Stdout, d.Stderr)
			if !p.Alive() {
				t.Fatalf("detach ended the parent: %s", p.Ended())
			}
			s.unharmed(t, "detach")
			p.Finish()
		})
	}
}
