package timeline

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// recordTarget records a program from Go on until it has counted.
func recordTarget(t *testing.T, target string, args ...string) *reel.File {
	t.Helper()
	p := realtest.Start(t, target, args...)
	r := realtest.StartRecording(t, "-p", strconv.Itoa(p.Pid()))
	p.Go()
	p.WaitLine("counted")
	r.Stop()
	p.Finish()
	f, err := reel.Open(r.File)
	realtest.Must(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

// checkReal compares the answers from the recorder's index, and from one made
// anew, with all calls of a recording.
func checkReal(t *testing.T, f *reel.File, makeModel func([]Lane) *model) {
	t.Helper()
	stored, err := Open(t.Context(), f, Options{})
	realtest.Must(t, err)
	if !stored.Indexed() {
		t.Error("the recorder stored no index")
	}
	made, err := newTimeline(small()).index(t.Context(), f, nil)
	realtest.Must(t, err)
	tl := newTimeline(small())
	tl.live.Store(made)
	m := makeModel(stored.Lanes())
	rng := rand.New(rand.NewPCG(1, 1))
	checkSome(t, stored, m, rng, 5)
	checkSome(t, tl, m, rng, 5)
	sum := reel.Summarize(f, reel.SummaryOptions{})
	calls := stored.Calls()
	for _, fn := range sum.Functions {
		if calls[fn.ID] != fn.Calls {
			t.Errorf("%d calls of %s, report has %d", calls[fn.ID], fn.Name, fn.Calls)
		}
	}
}

func TestRecordingOfThreads(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace, realtest.GCC)
	f := recordTarget(t, realtest.Build(t, "throws"), "2", "3")
	checkReal(t, f, func([]Lane) *model { return newModel(f) })
}

func TestRecordingOfGoroutines(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace, realtest.GoTool)
	tool, err := realtest.GoTool.Find()
	realtest.Must(t, err)
	target := filepath.Join(t.TempDir(), "goroutines")
	cmd := exec.Command(tool, "build", "-o", target, "./testdata/targets/goroutines")
	cmd.Dir, cmd.Env = realtest.Root(), append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	f := recordTarget(t, target, "rounds", "3")
	checkReal(t, f, func(lanes []Lane) *model { return newGoroutineModel(f, lanes) })
}
