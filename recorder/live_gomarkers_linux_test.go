package recorder_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// goSemaphore is what mark.Recording looks at in a program.
func goSemaphore(t *testing.T, p *realtest.Proc) int {
	t.Helper()
	list := listMarkers(t, append(pidFlag(p), "--name", "callreel:begin_s")...)
	if len(list.Markers) == 0 || list.Markers[0].Count == nil {
		t.Fatalf("%+v", list)
	}
	return *list.Markers[0].Count
}

// Whenever a recorder of a Go program's markers is killed, mark.Recording is as before once detach has cleaned up.
func TestGoProgramsKnowWhetherSomebodyRecords(t *testing.T) {
	t.Parallel()
	needLive(t)
	p := realtest.Start(t, realtest.BuildGo(t, "gomarks", "-ldflags=-s -w"), "3", "0")
	p.WaitLine("ready")
	start := time.Now()
	r := realtest.StartRecording(t, append(pidFlag(p), "--markers", "callreel:*")...)
	most := max(300*time.Millisecond, 2*time.Since(start))
	if n := goSemaphore(t, p); n != 1 {
		t.Errorf("it is %d while recorded", n)
	}
	stop(t, r)
	if n := goSemaphore(t, p); n != 0 {
		t.Errorf("it is %d behind it", n)
	}
	if got := passed(t, r.File, nil); got["callreel:instant__recorded"] == 0 {
		t.Errorf("the program doesn't know: %v", got)
	}
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	outcomes := map[string]int{}
	for i := range kills(t) {
		flags := append(pidFlag(p), "--markers", "callreel:*")
		if i%2 == 1 {
			flags = append(flags, "-d", "20ms")
		}
		if i%4 > 1 {
			flags = append(flags, "-m", "gomarks")
		}
		outcomes[killedAfter(t, p, time.Duration(random.Int64N(int64(most))), flags)]++
		if n := goSemaphore(t, p); n != 0 {
			t.Fatalf("%v: it is %d", outcomes, n)
		}
	}
	t.Logf("%v", outcomes)
	p.Finish()
}

// A marker of a Go program arms; the dump has the marks of the goroutines.
func TestGoMarkersMakeDumps(t *testing.T) {
	t.Parallel()
	needLive(t)
	p := realtest.Start(t, realtest.BuildGo(t, "gomarks"), "3", "0")
	p.WaitLine("ready")
	r := realtest.StartRecording(t, append(pidFlag(p), "--markers", "callreel:*", "--when", "marker callreel:async_end_s #500", "--max", "1")...)
	file := waitDumps(t, r, 1)[0]
	stopArmed(t, r)
	f, err := reel.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	of := map[uint64]int{}
	for _, x := range f.AllMarks {
		of[x.Goroutine]++
	}
	if len(of) < 3 || of[0] > 0 {
		t.Errorf("marks by goroutine: %v", of)
	}
	p.Finish()
}
