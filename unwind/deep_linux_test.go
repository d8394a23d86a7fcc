package unwind_test

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/unwind"
)

const deepLevels = 60

// deepTarget starts the target with its 60 functions under one another.
func deepTarget(t testing.TB, mode []string, flags ...string) *target {
	t.Helper()
	realtest.Need(t, realtest.GXX, realtest.LivePtrace)
	return start(t, realtest.Build(t, "deep", flags...), mode...)
}

func TestDeepStackIsTheOneTheProgramNoted(t *testing.T) {
	for name, flags := range map[string][]string{
		"without frame pointers": {"-fomit-frame-pointer"},
		"with frame pointers":    {"-fno-omit-frame-pointer"},
		"unoptimized":            {"-O0"},
		"static":                 {"-static", "-fomit-frame-pointer"},
		"stripped":               {"-s", "-fomit-frame-pointer", "-rdynamic"},
		"only .debug_frame":      {"-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fno-exceptions"},
		"no CFI":                 {"-g0", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fno-exceptions", "-fno-omit-frame-pointer"},
	} {
		t.Run(name, func(t *testing.T) {
			x := deepTarget(t, nil, flags...)
			s := x.stop(nil)
			frames, end := unwind.NewWalker(unwind.Host(), x.maps, unwind.Options{}).Walk(&s, nil)
			if !end.Complete() {
				t.Errorf("the walk ended: %v", end)
			}
			if name == "stripped" {
				if len(frames) < deepLevels+4 {
					t.Errorf("%d frames", len(frames))
				}
				return
			}
			want := reversed(x.words(x.symbol("deep_shadow"), deepLevels))
			got := pcs(frames)
			// Inside of the noted functions are bottom and what it waits in.
			at := slices.Index(got, want[0])
			if at < 0 || len(got) < at+len(want) || !slices.Equal(got[at:at+len(want)], want) {
				t.Errorf("walked %#x\nnoted  %#x", got, want)
			}
		})
	}
}

// benchSnapshot is a thread more than 60 calls deep.
func benchSnapshot(b *testing.B, mode []string, flags ...string) (*target, unwind.Snapshot) {
	b.Helper()
	x := deepTarget(b, mode, flags...)
	return x, x.stop(nil)
}

// cpuTime is the processor time that this process has used, in nanoseconds: machines
// that measure are shared.
func cpuTime() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts); err != nil {
		return 0
	}
	return ts.Nano()
}

func BenchmarkWalkCFI(b *testing.B) {
	x, s := benchSnapshot(b, nil, "-fomit-frame-pointer")
	w := unwind.NewWalker(unwind.Host(), x.maps, unwind.Options{})
	frames, end := w.Walk(&s, nil)
	if !end.Complete() {
		b.Fatal(end)
	}
	for _, f := range frames[1:] {
		if f.By != unwind.ByCFI {
			b.Fatalf("frame %#x was found by %v", f.PC, f.By)
		}
	}
	b.ReportAllocs()
	before := cpuTime()
	for b.Loop() {
		frames, _ = w.Walk(&s, frames[:0])
	}
	b.ReportMetric(float64(cpuTime()-before)/float64(b.N*len(frames)), "cpu-ns/frame")
}

func BenchmarkWalkFramePointer(b *testing.B) {
	x, s := benchSnapshot(b, []string{"busy"}, "-g0", "-fno-omit-frame-pointer")
	w := unwind.NewWalker(unwind.Host(), x.maps, unwind.Options{})
	frames, end := w.WalkFramePointers(&s, nil)
	for tries := 0; len(frames) < deepLevels; tries++ { // the C library keeps no frame pointers
		if tries == 1000 {
			b.Fatal(len(frames), end)
		}
		s = x.stop(nil)
		frames, end = w.WalkFramePointers(&s, frames[:0])
	}
	b.ReportAllocs()
	before := cpuTime()
	for b.Loop() {
		frames, _ = w.WalkFramePointers(&s, frames[:0])
	}
	b.ReportMetric(float64(cpuTime()-before)/float64(b.N*len(frames)), "cpu-ns/frame")
}

func BenchmarkWalkCold(b *testing.B) {
	x, s := benchSnapshot(b, nil, "-fomit-frame-pointer")
	w := unwind.NewWalker(unwind.Host(), x.maps, unwind.Options{})
	frames, _ := w.Walk(&s, nil)
	before := cpuTime()
	for b.Loop() {
		w.SetImages(x.maps)
		frames, _ = w.Walk(&s, frames[:0])
	}
	b.ReportMetric(float64(cpuTime()-before)/float64(b.N*len(frames)), "cpu-ns/frame")
}
