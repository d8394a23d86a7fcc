package trigger

import (
	"errors"
	"testing"
	"time"
)

func TestParseReadsWhatWhenIsGiven(t *testing.T) {
	const ms = time.Millisecond
	for text, want := range map[string]Trigger{
		"F > 5ms":        {Function: "F", Kind: OnDuration, Op: ">", Duration: 5 * ms},
		"F<=1.5s":        {Function: "F", Kind: OnDuration, Op: "<=", Duration: 1500 * ms},
		"ns::f(int)>1ms": {Function: "ns::f(int)", Kind: OnDuration, Op: ">", Duration: ms},
		"F == 0":         {Function: "F", Kind: OnResult, Op: "=="},
		"F = -1":         {Function: "F", Kind: OnResult, Op: "==", Value: -1},
		"F != 0x10":      {Function: "F", Kind: OnResult, Op: "!=", Value: 16},
		" F* ":           {Function: "F*", Kind: OnCall},
		"F #100":         {Function: "F", Kind: OnCall, Value: 100},
		"stall:200ms":    {Kind: OnStall, Duration: 200 * ms},
		"marker a:b__*":  {Marker: "a:b__*", Kind: OnCall},
		"marker a:b #7":  {Marker: "a:b", Kind: OnCall, Value: 7},
		"span q > 20ms":  {Span: "q", Kind: OnDuration, Op: ">", Duration: 20 * ms},
		"span":           {Function: "span", Kind: OnCall},
	} {
		want.Text = text
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", " ", "F > 5x", "F > -5ms", "F == 5ms", "F != 5ms", "F #0", "F #99999999999999999999",
		"marker a:b > 5ms", "marker a == 0", "span q", "span q == 1", "span span q > 1ms", "marker span q", "marker stall:1s",
		"stall:", "stall:0s", "stall:-1s", "stall:x"} {
		if got, err := Parse(text); !errors.Is(err, Err) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("F > 5ms")
	f.Add("F #1")
	f.Add("stall:1s")
	f.Add("span q > 20ms")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Parse(text)
		if err != nil {
			if !errors.Is(err, Err) {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if got.Text != text || got.Function+got.Marker+got.Span == "" != (got.Kind == OnStall) || got.Duration < 0 || got.Kind == OnCall && got.Value < 0 {
			t.Errorf("%q: %+v", text, got)
		}
	})
}
