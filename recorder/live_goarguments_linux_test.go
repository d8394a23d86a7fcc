package recorder_test

import (
	"fmt"
	"testing"
)

// What a Go function gets is found where Go's convention has it: in registers, and on the stack what is too large, or one too many.
func TestGoArgumentsAreInRegistersOrOnTheStack(t *testing.T) {
	t.Parallel()
	needLive(t)
	const rounds = 40
	c := argumentCase{rounds: fmt.Sprint(rounds), wanted: []wantedArguments{
		{function: "main.many", values: []string{"e", "r.ID", "r.Path", "r.Weight", "x"}},
		{function: "main.deep", values: []string{"n", "pad[3]"}},
	}}
	got := c.recorded(t, goProgram(t, "arguments"))
	if n := len(got["main.many"]); n != rounds {
		t.Errorf("%d calls of many", n)
	}
	for i, v := range got["main.many"] {
		if want := fmt.Sprint([]any{i, -i, fmt.Sprintf("/r/%d", i), float64(i) / 8, -float64(i)}); fmt.Sprint(v) != want {
			t.Errorf("call %d of many: %v, want %s", i, v, want)
		}
	}
	var want []string // each call that makes another changes what it got
	for i := range rounds {
		for n, pad := i%3, 0; n >= 0; n, pad = n-1, n {
			want = append(want, fmt.Sprint([]any{n, pad}))
		}
	}
	deep := got["main.deep"]
	if len(deep) != len(want) {
		t.Fatalf("%d calls of deep, want %d", len(deep), len(want))
	}
	for i, v := range deep {
		if fmt.Sprint(v) != want[i] {
			t.Errorf("call %d of deep: %v, want %s", i, v, want[i])
		}
	}
}
