package main

import (
	"testing"

	"github.com/callreel/callreel/unwind"
)

func TestAWalkThatIsCheaperThanItShouldBeIsRefused(t *testing.T) {
	whole := []unwind.Frame{{PC: 1, By: unwind.ByRegisters}, {PC: 2, By: unwind.ByCFI}, {PC: 3, By: unwind.ByCFI}}
	guessed := []unwind.Frame{{PC: 1, By: unwind.ByRegisters}, {PC: 2, By: unwind.ByFramePointer}}
	if err := wholeByCFI(whole, unwind.End{}); err != nil {
		t.Errorf("a whole walk: %v", err)
	}
	if wholeByCFI(guessed, unwind.End{}) == nil {
		t.Error("a frame that was found by frame pointer counts as one by CFI")
	}
	if wholeByCFI(whole, unwind.End{Reason: unwind.NotOutward}) == nil {
		t.Error("a walk that ended early counts")
	}
	if throughAllLevels(whole, unwind.End{}) == nil {
		t.Error("a walk through a part of the stack counts")
	}
	if err := throughAllLevels(make([]unwind.Frame, deepLevels), unwind.End{Reason: unwind.NotOutward}); err != nil {
		t.Errorf("a walk up to main: %v", err)
	}
}

func TestCompilersComplaintIsOneLine(t *testing.T) {
	for said, want := range map[string]string{
		"In file included\na.cc:1:10: fatal error: libunwind.h: No such file\n   1 | #include\n": "a.cc:1:10: fatal error: libunwind.h: No such file",
		"/usr/bin/ld: cannot find -lunwind\ncollect2: error: ld returned 1 exit status\n":        "/usr/bin/ld: cannot find -lunwind",
		"killed\n": "killed",
	} {
		if got := compilerComplaint(said); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestDurationsHaveAUnitThatSuitsThem(t *testing.T) {
	for ns, want := range map[float64]string{740: "740 ns", 63_049: "63.0 µs", 5_680_000: "5.7 ms", 1.1374e9: "1.14 s"} {
		if got := duration(ns); got != want {
			t.Errorf("%v: %q, want %q", ns, got, want)
		}
	}
}

func TestPerfsCountOfSamplesIsFound(t *testing.T) {
	const said = "[ perf record: Woken up 31 times to write data ]\n[ perf record: Captured and wrote 7.717 MB /tmp/perf.data (913 samples) ]\n"
	if got := capturedSamples.FindStringSubmatch(said); got == nil || got[1] != "913" {
		t.Errorf("%q", got)
	}
}
