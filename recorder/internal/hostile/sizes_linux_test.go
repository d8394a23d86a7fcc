package hostile

import (
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// looked runs what looks at a process, each of which must end decently, and returns whether it could be recorded.
func looked(t *testing.T, pid int, flags ...string) (recorded bool) {
	t.Helper()
	id := strconv.Itoa(pid)
	reel := filepath.Join(t.TempDir(), "x.reel")
	for _, args := range [][]string{
		{"functions", "-p", id},
		{"stacks", "-p", id},
		{"doctor", "-p", id},
		{"top", "-p", id, "--once", "--interval", "100ms"},
		append([]string{"record", "-p", id, "-d", "300ms", "-o", reel}, flags...),
		{"detach", "-p", id},
	} {
		r := callreel(t, args...)
		t.Logf("%s: code %d, %d MiB, %v", args[0], r.Code, r.memory>>20, r.took)
		if t.Failed() {
			t.FailNow() // what else there is would only take long
		}
		if args[0] == "record" && r.Code == 0 {
			recorded = true
		} else if args[0] == "record" {
			t.Logf("%.300s", r.Stderr)
		}
	}
	if recorded {
		callreel(t, "report", reel)
	}
	return recorded
}

func TestRecoveryRecordSaysThatItIsHuge(t *testing.T) {
	u := realtest.NewUser(t, 0)
	p := u.Start(knowing(t, "hostile_sizes"), "recovery")
	looked(t, p.Pid())
	intact(t, p.Pid())
	p.Finish()
}

func TestMappingsAreMoreThanCanBeRead(t *testing.T) {
	u := realtest.NewUser(t, 0)
	p := u.Start(knowing(t, "hostile_sizes"), "maps", u.Folder)
	looked(t, p.Pid())
	p.Finish()
}

func TestListOfLibrariesIsACircle(t *testing.T) {
	u := realtest.NewUser(t, 0)
	realtest.Need(t, realtest.LivePtrace)
	p := u.Start(realtest.Build(t, "hostile_sizes", append(layout(), "-DLINKS")...), "links")
	if !looked(t, p.Pid(), "-m", "hostile_*") {
		t.Error("not recorded")
	}
	intact(t, p.Pid())
	p.Finish()
}

func TestThreadsComeAndGoAllTheTime(t *testing.T) {
	u := realtest.NewUser(t, 0)
	p := u.Start(knowing(t, "hostile_sizes"), "threads")
	looked(t, p.Pid(), "-f", "hostile_*")
	intact(t, p.Pid())
	p.Finish()
}

func TestChildrenComeAndGoAllTheTime(t *testing.T) {
	u := realtest.NewUser(t, 0)
	p := u.Start(knowing(t, "hostile_sizes"), "children")
	if !looked(t, p.Pid(), "-f", "hostile_*", "--follow") {
		t.Error("not recorded")
	}
	intact(t, p.Pid())
	p.Finish()
}

// Children that end before they can be restored leave their probes to the next: that is said, and never that all is as before.
func TestChildrenThatKeepProbesAreTold(t *testing.T) {
	for i := range 4 {
		u := realtest.NewUser(t, 0)
		p := u.Start(knowing(t, "hostile_sizes"), "children", strconv.Itoa(i%2*200))
		r := callreel(t, "record", "-p", strconv.Itoa(p.Pid()), "-d", "1s", "--json", "-f", "hostile_*", "--follow", "-o", filepath.Join(t.TempDir(), "x.reel"))
		var out struct {
			TextVerified bool `json:"text_verified"`
		}
		if err := json.Unmarshal([]byte(r.Stdout), &out); err != nil {
			t.Fatalf("%v: %s", err, r.Stderr)
		}
		intact(t, p.Pid())
		counts := p.Finish()
		if counts["generations"] == 0 {
			t.Fatal("no process was made: the test tests nothing")
		}
		t.Logf("%v; code %d, verified %v: %s", counts, r.Code, out.TextVerified, r.Stderr)
		keeps := counts["probed"] != 0 || strings.Contains(r.Stderr, "was not found") // which it may without probes, on a busy machine
		if keeps && (out.TextVerified || r.Code == 0 || !strings.Contains(r.Stderr, "keeps its probes")) {
			t.Errorf("processes keep their probes: code %d, verified %v: %s", r.Code, out.TextVerified, r.Stderr)
		} else if !keeps && (!out.TextVerified || r.Code != 0) {
			t.Errorf("all is as before: code %d, verified %v: %s", r.Code, out.TextVerified, r.Stderr)
		}
	}
}

// A child that can't be found keeps its probes: the kernel tells that it is there, and that is said.
func TestAChildThatHidesIsTold(t *testing.T) {
	u := realtest.NewUser(t, 0)
	p := u.Start(knowing(t, "hostile_sizes"), "hides")
	r := callreel(t, "record", "-p", strconv.Itoa(p.Pid()), "-d", "1s", "--json", "-f", "hostile_*", "--follow", "-o", filepath.Join(t.TempDir(), "x.reel"))
	var out struct {
		TextVerified bool `json:"text_verified"`
	}
	if err := json.Unmarshal([]byte(r.Stdout), &out); err != nil {
		t.Fatalf("%v: %s", err, r.Stderr)
	}
	if out.TextVerified || r.Code == 0 || !strings.Contains(r.Stderr, "keeps its probes") {
		t.Errorf("code %d, verified %v: %s", r.Code, out.TextVerified, r.Stderr)
	}
	intact(t, p.Pid())
	p.Finish()
}
