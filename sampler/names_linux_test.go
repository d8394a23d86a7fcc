package sampler_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/sampler"
	"github.com/callreel/callreel/symbols"
	"github.com/callreel/callreel/unwind"
)

// capture takes stacks, which are closed when the test is over.
func capture(t *testing.T, pid int, o sampler.Options) *sampler.Capture {
	t.Helper()
	c, err := sampler.Stacks(context.Background(), pid, o)
	return closing(t, c, err)
}

func TestMadeCodeHasTheNamesOfItsMap(t *testing.T) {
	realtest.Need(t, realtest.GCC)
	for mode, made := range map[string]int{"memory": 1, "memfd": 1, "interpreter": 2} {
		t.Run(mode, func(t *testing.T) {
			pid := start(t, realtest.Build(t, "jit"), mode)
			path := fmt.Sprintf("/tmp/perf-%d.map", pid) // the target removes it
			for _, raw := range []bool{false, true} {
				th := &capture(t, pid, sampler.Options{NoNames: raw}).Threads[0]
				want := map[bool]string{false: "JS:*made by hand, 1"}[raw]
				found := 0
				for k := range th.Frames {
					if f := &th.Frames[k]; f.Function == want && (f.Image == nil || f.Image.Err() != nil) {
						found++
					}
				}
				if found != made || !th.End.Complete() {
					t.Errorf("%d frames %q, want %d; %v\n%s", found, want, made, th.End, listing(th))
				}
			}
			if err := os.Chmod(path, 0o666); err != nil {
				t.Fatal(err)
			}
			c := capture(t, pid, sampler.Options{})
			said := false
			for _, err := range c.Problems {
				said = said || strings.Contains(err.Error(), path)
			}
			if !said || strings.Contains(listing(&c.Threads[0]), "made by hand") {
				t.Errorf("problems: %v\n%s", c.Problems, listing(&c.Threads[0]))
			}
		})
	}
}

func TestNamesAreThoseThatGDBShows(t *testing.T) {
	realtest.Need(t, realtest.GCC, realtest.GDB, realtest.AMD64) // names has functions in assembly
	for name, flags := range map[string][]string{
		"debug": nil, "symbols": {"-g0"}, "static": {"-static"}, "code apart": {"-Wl,-z,separate-code"},
	} {
		t.Run(name, func(t *testing.T) {
			path := realtest.Build(t, "names", flags...)
			pid := start(t, path)
			core := gdbCore(t, pid)
			want := gdbStacks(t, path, core)[pid]
			names := sampler.NewMapNames(context.Background(), &symbols.Finder{})
			defer func() {
				if err := names.Close(); err != nil {
					t.Error(err)
				}
			}()
			th := &capture(t, pid, sampler.Options{Symbolizer: names}).Threads[0]
			ours := frames(th)
			if len(ours) != len(want) {
				t.Fatalf("%d frames, gdb has %d\n%s", len(ours), len(want), listing(th))
			}
			compared := 0
			for k, f := range ours {
				if f.Image.Path != path || want[k].name == "" || strings.HasPrefix(f.Function, "__libc") {
					continue // of the C library's names gdb may choose another
				}
				compared++
				if want := want[k].name; f.Function != want && (name != "symbols" || !isAlias(f.Function, want)) {
					t.Errorf("frame %d is %q, gdb has %q", k, f.Function, want)
				}
			}
			if compared < 9 {
				t.Errorf("%d frames compared\n%s", compared, listing(th))
			}
		})
	}
}

// isAlias says whether two names are of one function of the target, of which gdb without
// debug information takes any, or differ in the number of a variant, which it leaves out.
func isAlias(a, b string) bool {
	of := func(s string) string {
		switch s {
		case "alias", "_inner_alias":
			return "zz_definition"
		}
		s, _, _ = strings.Cut(s, ".")
		return s
	}
	return of(a) == of(b)
}

func TestStackOfAnOverflowIsWhole(t *testing.T) {
	realtest.Need(t, realtest.GCC)
	pid := start(t, realtest.Build(t, "overflow"), "handler")
	th := &capture(t, pid, sampler.Options{}).Threads[0]
	calls, at := 0, -1
	for k := range th.Frames {
		if th.Frames[k].Flags.Has(unwind.SignalFrame) {
			at = k + 1
		}
		if th.Frames[k].Function == "endless" {
			calls++
		}
	}
	// The stack pointer of the interrupted frame was below all that is mapped.
	if calls < 100 || at < 1 || th.Frames[at].Function != "endless" || !th.End.Complete() {
		t.Errorf("%d calls, %v\n%.2000s", calls, th.End, listing(th))
	}
}

func TestDeepRecursionIsWholeOrCutWhereAsked(t *testing.T) {
	realtest.Need(t, realtest.GCC)
	const depth = 100_000
	pid := start(t, realtest.Build(t, "overflow"), "deep", strconv.Itoa(depth))
	for _, most := range []int{0, 1000} {
		th := &capture(t, pid, sampler.Options{MaxFrames: most}).Threads[0]
		calls := 0
		for k := range th.Frames {
			if th.Frames[k].Function == "deeper" {
				calls++
			}
		}
		switch {
		case most == 0 && (calls != depth+1 || !th.End.Complete()):
			t.Errorf("%d calls, want %d; %v", calls, depth+1, th.End)
		case most > 0 && (len(frames(th)) != most || th.End.Reason != unwind.TooDeep):
			t.Errorf("%d frames, want %d; %v", len(th.Frames), most, th.End)
		}
	}
}
