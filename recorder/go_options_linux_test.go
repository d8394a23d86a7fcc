package recorder

import (
	"testing"

	"github.com/callreel/callreel/recorder/internal/target"
)

// Functions that are skipped since goroutines are preempted in them count as refused, by the reason's name.
func TestSkippedFunctionsHaveTheirReasonsName(t *testing.T) {
	r := &recording{shared: &shared{}, s: &target.Target{Skipped: map[uint32]bool{3: true, 5: true}}, result: Result{Traced: 7, Refused: map[string]int{"preempted-inside": 1}}}
	r.first = r
	r.countSkipped()
	if r.result.Traced != 5 || len(r.result.Refused) != 1 || r.result.Refused["preempted-inside"] != 3 {
		t.Errorf("%d traced, refused %v", r.result.Traced, r.result.Refused)
	}
}
