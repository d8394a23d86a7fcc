package process

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestMappingsWithoutEndAreRefused(t *testing.T) {
	limit, err := os.ReadFile("/proc/sys/vm/max_map_count")
	if err != nil {
		t.Fatal(err)
	}
	most, err := strconv.Atoi(strings.TrimSpace(string(limit)))
	if err != nil {
		t.Fatal(err)
	}
	g := startTarget(t, build(t, "manymaps.c", "gcc"), t.TempDir(), strconv.Itoa(min(most-100, 65_000)))
	if made, err := strconv.Atoi(g.line()); err != nil || made < 20_000 {
		t.Fatalf("%d mappings, %v", made, err)
	}
	p, err := Open(g.pid())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	_, err = p.Maps()
	runtime.ReadMemStats(&after)
	if !errors.Is(err, ErrTooMuch) {
		t.Errorf("%v, want ErrTooMuch", err)
	}
	t.Logf("refused after %v: %v", time.Since(began), err)
	if taken := after.TotalAlloc - before.TotalAlloc; taken > 64<<20 {
		t.Errorf("%d bytes were taken", taken)
	}
	seen := 0
	if err := VisitMaps(g.pid(), func(*Mapping) bool { seen++; return true }); !errors.Is(err, ErrTooMuch) || seen == 0 {
		t.Errorf("after %d mappings %v, want ErrTooMuch", seen, err)
	}
	// Who wants to may have them.
	p.LimitMemory(8 << 30)
	if maps, err := p.Maps(); err != nil || len(maps) < 20_000 {
		t.Errorf("%d mappings, %v", len(maps), err)
	}
}

func TestWhatAProcessTellsOfItselfIsBounded(t *testing.T) {
	g := startTarget(t, build(t, "manymaps.c", "gcc"), t.TempDir(), "1")
	p, err := Open(g.pid())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	args, err := p.Cmdline()
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	for _, a := range args {
		size += len(a) + 1
	}
	if size > maxCmdline+1 {
		t.Errorf("a command line of %d bytes", size)
	}
	if size < maxCmdline/2 {
		t.Errorf("a command line of %d bytes only: the program could not forge it", size)
	}
	if name := p.Comm(); name != "\n) R 1 1\x1b[2J" {
		t.Errorf("name %q", name)
	}
	maps, err := p.Maps()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range maps {
		if strings.HasSuffix(m.Path, "/file") && strings.Count(m.Path, "\n") < 15*250 {
			t.Errorf("path %q", m.Path)
		}
	}
}

// Where the leader has ended others show the memory; of a process that has ended nothing is seen.
func TestMappingsAreVisitedWithoutALeader(t *testing.T) {
	g := startTarget(t, build(t, "states.c", "gcc"), "leaderless")
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		if st, err := readStat(g.pid(), g.pid()); err != nil {
			t.Fatal(err)
		} else if st.state == 'Z' {
			break
		}
		if time.Since(start) > time.Minute {
			t.Fatal("its leader hasn't ended")
		}
	}
	seen, code := 0, 0
	if err := VisitMaps(g.pid(), func(m *Mapping) bool {
		if seen++; strings.Contains(m.Path, "states") && m.Perm&PermExec != 0 {
			code++
		}
		return true
	}); err != nil || code == 0 {
		t.Errorf("%d mappings, %d of its code, %v", seen, code, err)
	}
	zombie := exec.Command("true")
	if err := zombie.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = zombie.Wait() }()
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		if st, err := readStat(zombie.Process.Pid, zombie.Process.Pid); err == nil && st.state == 'Z' {
			break
		}
		if time.Since(start) > time.Minute {
			t.Fatal("it hasn't ended")
		}
	}
	if err := VisitMaps(zombie.Process.Pid, func(*Mapping) bool { t.Error("a mapping of a zombie"); return false }); err != nil && !errors.Is(err, ErrNoProcess) {
		t.Error(err)
	}
}
