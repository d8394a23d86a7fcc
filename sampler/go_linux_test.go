package sampler_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/sampler"
)

// Stacks of a stripped Go program are whole, through the runtime's change from a goroutine's stack to the thread's own, and named.
func TestStrippedGoProgramsAreWalkedWhole(t *testing.T) {
	needEvents(t, realtest.GoTool)
	for _, flags := range [][]string{{"-ldflags=-s -w"}, {"-ldflags=-s -w", "-buildmode=pie"}, nil} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "goroutines")
			build := exec.Command("go", append(append([]string{"build"}, flags...), "-o", program, "./testdata/targets/goroutines")...)
			build.Dir = ".."
			build.Env = append(os.Environ(), "CGO_ENABLED=0")
			if said, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, said)
			}
			target := realtest.Start(t, program, "steady")
			p := sampleUntil(t, sampler.SampleOptions{PID: target.Pid(), Rate: 499}, samples(2000))
			if p.Incomplete*25 > p.Samples { // stacks are moved while they are read
				ends := map[string]uint64{}
				for k := range p.Stacks {
					if s := &p.Stacks[k]; s.End != 0 {
						ends[s.End.String()+" "+strings.Join(functions(p, s), ";")] += s.Count
					}
				}
				t.Errorf("%d of %d stacks are not whole: %v", p.Incomplete, p.Samples, ends)
			}
			// What the runtime does on the thread's own stack is done for a goroutine.
			crossed := countIf(p, func(_ *sampler.ProfileStack, names []string) bool {
				n := len(names)
				return n > 1 && strings.HasPrefix(names[n-1], "runtime.goexit") && strings.Contains(strings.Join(names[:n-1], " ")+" ", "runtime.systemstack")
			})
			own := countIf(p, func(_ *sampler.ProfileStack, names []string) bool {
				return strings.Contains(strings.Join(names, " "), "main.")
			})
			t.Logf("%d samples, %d not whole, %d in the program's own functions, %d from a goroutine to the thread's stack", p.Samples, p.Incomplete, own, crossed)
			if own*10 < p.Samples || crossed == 0 {
				t.Errorf("%d samples, %d in the program's own functions, %d from a goroutine to the thread's stack", p.Samples, own, crossed)
			}
		})
	}
}
