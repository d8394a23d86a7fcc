package why

import (
	"slices"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/madereel"
	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// Functions that were off while the slow call ran, or those that it is compared with, are named.
func TestFunctionsThatWereOffAreNamed(t *testing.T) {
	const end = 1 << 50
	for _, c := range []struct {
		name string
		offs func(slow *Answer) []reel.Off
		want []string
	}{
		{"none", func(*Answer) []reel.Off { return nil }, nil},
		{"at another time", func(a *Answer) []reel.Off {
			return []reel.Off{{Function: fnRefresh, From: baseTick + a.StartNS + a.DurationNS + 1, To: end}}
		}, nil},
		{"one", func(a *Answer) []reel.Off {
			return []reel.Off{{Function: fnRefresh, From: baseTick + a.StartNS + 10, To: baseTick + a.StartNS + 20}}
		}, []string{"refresh was off while it ran: time in its calls counts as that of their callers."}},
		{"several, those first that such calls call", func(a *Answer) []reel.Off {
			var list []reel.Off
			for _, fn := range []uint32{fnAnswer, fnAsk, fnRead, fnRefresh, fnParse} {
				list = append(list, reel.Off{Function: fn, From: baseTick + a.StartNS, To: baseTick + a.StartNS + 100})
			}
			return list
		}, []string{"5 functions were off while it ran, parse, refresh, read among them: time in their calls counts as that of their callers."}},
		{"while its peers ran", func(a *Answer) []reel.Off {
			return []reel.Off{{Function: fnRotate, From: 1, To: baseTick + a.StartNS - 1}, {Function: fnRotate, From: baseTick + a.StartNS + a.DurationNS + 1, To: end}}
		}, []string{"rotate was off while "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			make := func() *program {
				p := newProgram(t, true)
				r := madereel.NewRun(baseTick)
				p.requests(r, 600, 600, func(r *madereel.Run) {
					p.ordinary(r)
					r.Call(fnRotate, func() { r.Work(9 * ms) })
				})
				p.thread("worker-1", r)
				return p
			}
			slow := &explain(t, make().open(), Options{Slowest: 1}).Calls[0]
			p := make()
			realtest.Must(t, p.w.Off(c.offs(slow)))
			got := explain(t, p.open(), Options{Slowest: 1})
			notes := slices.DeleteFunc(slices.Clone(got.Calls[0].Notes), func(s string) bool { return !strings.Contains(s, " off while ") })
			if !slices.EqualFunc(notes, c.want, strings.HasPrefix) {
				t.Errorf("notes are %q, want %q\n%s", notes, c.want, got.Text())
			}
		})
	}
}
