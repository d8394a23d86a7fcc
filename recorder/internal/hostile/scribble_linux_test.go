package hostile

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
)

// bytesIn is how much is in a folder.
func bytesIn(dir string) (n int64) {
	entries, _ := os.ReadDir(dir) // what isn't there has nothing
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			n += info.Size()
		}
	}
	return n
}

// scribbled records a process that writes all over the ring memory, in one way.
func scribbled(t *testing.T, mode string, while func(pid string), args ...string) {
	t.Helper()
	u := realtest.NewUser(t, 0)
	p := u.Start(knowing(t, "hostile_scribble"), mode)
	folder := t.TempDir()
	pid := strconv.Itoa(p.Pid())
	all := append([]string{args[0], "-p", pid, "-f", "hostile_*"}, args[1:]...)
	if args[0] == "record" {
		d := "500ms"
		if while != nil { // which takes its time
			d = "1s"
		}
		all = append(all, "-d", d, "-o", filepath.Join(folder, "x.reel"))
	}
	r := start(t, all...)
	if while != nil {
		r.on(t, filepath.Join(folder, "x.reel"))
		while(pid)
	}
	out := r.wait(t)
	end := "lives"
	if !p.Alive() {
		end = p.Ended()
	}
	t.Logf("code %d, %d MiB, %v, %d bytes written, the target: %s\n%.300s", out.Code, out.memory>>20, out.took, bytesIn(folder), end, out.Stderr)
	reels, _ := filepath.Glob(filepath.Join(folder, "*.reel")) // the pattern is a good one
	more, _ := filepath.Glob(filepath.Join(folder, "x.reel", "*.reel"))
	for _, reel := range append(reels, more...) {
		if info, err := os.Stat(reel); err == nil && info.Mode().IsRegular() {
			callreel(t, "report", reel, "--limit", "5")
		}
	}
	if err := realtest.TextAsFile(p.Pid()); err != nil && !endsSoon(p) {
		t.Errorf("process %d: %v", p.Pid(), err)
	}
}

// endsSoon says whether a process has ended, or does so now: what it writes into its own memory is mostly its end.
func endsSoon(p *realtest.Proc) bool {
	for range 100 {
		if !p.Alive() {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

func TestScribblerIsRecorded(t *testing.T) {
	for _, mode := range []string{"all", "most", "idle", "registry"} {
		for _, args := range [][]string{
			{"record"},
			{"record", "--lazy"},
			{"record", "--args", "hostile_leaf", "--ret", "hostile_work"},
			{"record", "--lossless", "--min", "1us"},
			{"record", "--depth", "2", "--every", "3"},
			{"top", "--once", "--interval", "1s"},
		} {
			if mode != "idle" && len(args) > 1 && args[1] != "--once" {
				continue
			}
			t.Run(fmt.Sprint(mode, args), func(t *testing.T) { scribbled(t, mode, nil, args...) })
		}
	}
}

func TestScribblerIsFollowed(t *testing.T) {
	for _, mode := range []string{"all", "most", "idle", "registry"} {
		t.Run(mode, func(t *testing.T) { scribbled(t, mode, nil, "record", "--follow") })
	}
}

func TestScribblerIsWaitedFor(t *testing.T) {
	for _, when := range []string{"hostile_leaf > 1ns", "hostile_work == 7", "stall:100ms"} {
		t.Run(when, func(t *testing.T) {
			scribbled(t, "idle", nil, "record", "--when", when, "--keep", "100ms", "--max", "5")
		})
	}
}

func TestScribblerIsSet(t *testing.T) {
	scribbled(t, "idle", func(pid string) {
		for i := range 10 {
			flag := []string{"--all"}
			if i%2 == 0 {
				flag = []string{"-x", "hostile_leaf"}
			}
			callreel(t, append([]string{"set", "-p", pid}, flag...)...)
			time.Sleep(10 * time.Millisecond)
		}
	}, "record", "--follow")
}
