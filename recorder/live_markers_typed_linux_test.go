package recorder_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// Where debug information has the variable that is in an argument's place, its type says what the value is.
func TestArgumentsOfMarkersHaveTheirTypes(t *testing.T) {
	t.Parallel()
	needLive(t)
	const rounds = 300
	colors, doors, bools := []string{"RED", "GREEN", "BLUE"}, []string{"CLOSED", "OPENED"}, []string{"false", "true"}
	for _, flags := range [][]string{{"-O2"}, {"-O0"}, {"-O2", "-gdwarf-4"}} {
		program := realtest.Build(t, "marks_typed", flags...)
		p := realtest.Start(t, program, fmt.Sprint(rounds))
		r := realtest.StartRecording(t, append(pidFlag(p), "--lossless", "--markers", "typed:*", "--markers", "typed:pointer(arg1, arg2:s, arg3)")...)
		p.Go()
		p.WaitLine("counted ")
		stop(t, r)
		next := map[string]int{}
		optimized := flags[0] != "-O0" // else what was converted is in registers that no variable has
		got := passed(t, r.File, func(m *reel.Marker, values []string, _ uint32) {
			i := next[m.Name]
			next[m.Name]++
			color := colors[i%3]
			want := []string{color}
			switch m.Name {
			case "scalar":
				want = []string{color, doors[i%2], fmt.Sprint(i % 2), fmt.Sprint(i % 256), fmt.Sprint(-i)}
				if optimized {
					want[2] = bools[i%2]
				}
			case "pointer":
				want = []string{values[0], "a name", fmt.Sprint(i)}
				if m.Arguments[0].Type != "job*" || m.Arguments[0].Kind != reel.ArgumentPointer {
					t.Errorf("%q: %+v", flags, m.Arguments[0])
				}
			case "global":
				if runtime.GOARCH == "arm64" { // by an address in a register, of which nothing is known
					want = values
				}
			case "local":
				want = []string{doors[i%2]}
			}
			if !slices.Equal(values, want) {
				t.Fatalf("%q: %s, round %d: %q, not %q", flags, m.Name, i, values, want)
			}
		})
		for _, name := range []string{"scalar", "pointer", "inlined", "global", "local"} {
			if got["typed:"+name] != rounds {
				t.Errorf("%q: %d of %s", flags, got["typed:"+name], name)
			}
		}
		p.Finish()
	}
}
