package recorder_test

import (
	"strconv"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// A Rust program's calls are counted exactly: of generic functions and trait methods, from eight threads, those that panics
// leave, and of drop while they do.
func TestRustProgramsAreRecordedExactly(t *testing.T) {
	needLive(t, realtest.Rustc)
	const times, threads = 60, 8
	target := realtest.Build(t, "panics")
	for _, flags := range [][]string{{"--eager"}, {"--lazy", "-m", "panics*", "-m", "libgcc_s*"}} {
		s, file := recordCounted(t, target, []string{strconv.Itoa(times), strconv.Itoa(threads)}, flags)
		if s.Dropped != 0 || s.Torn != 0 {
			t.Errorf("%v: %d calls dropped, %d events torn", flags, s.Dropped, s.Torn)
		}
		rep := reportOf(t, file)
		for _, want := range []struct {
			name        string
			calls, left int64 // of each round
		}{
			{"left_by_panic", 3, 3}, {"panicked_through", 1, 1}, {"caught_in", 1, 0}, {"resumed_in", 1, 1}, {"returns", 1, 0},
			{"panics::generic", 2, 0}, {"<u32 as panics::Add>::add", 1, 0}, {"<alloc::string::String as panics::Add>::add", 1, 0},
			{"<panics::Held as core::ops::drop::Drop>::drop", 4, 0},
		} {
			const rounds = times * threads
			if got := rep.Report.Calls(want.name); got != want.calls*rounds {
				t.Errorf("%v: %d calls of %s, the program made %d", flags, got, want.name, want.calls*rounds)
			}
			if got := rep.ends.of(want.name); got != want.left*rounds {
				t.Errorf("%v: %d calls of %s had no end of their own, want %d", flags, got, want.name, want.left*rounds)
			}
		}
	}
}
