package viewer

import (
	"path/filepath"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// offReel is of 10 µs: "work" calls "inner" at first; then that was off, and another function always was.
func offReel(t testing.TB) string {
	return madeReel(t, []string{"work", "inner", "hash"}, func(w *reel.Writer) {
		thread(t, w, "first", reel.Entry(1000, 0x10000, 1), reel.Entry(2000, 0xff00, 2), reel.Exit(3000, 0xff00, 2), reel.Exit(4000, 0x10000, 1),
			reel.Entry(5000, 0x10000, 1), reel.Exit(11_000, 0x10000, 1))
		realtest.Must(t, w.Off([]reel.Off{{Function: 2, From: 6000, To: 8000, Estimated: 10}, {Function: 2, From: 9000, To: 10_000, Estimated: 5}, {Function: 3, From: 500}}))
		realtest.Must(t, w.Budget(reel.Budget{Wanted: 0.02, Measured: 0.017, CallsShare: 0.5, TimeShare: 0.75}))
	})
}

func TestFunctionsThatWereOffAreTold(t *testing.T) {
	c := serveReels(t, offReel(t))
	type table struct {
		Functions []struct {
			Name string `json:"name"`
			*FunctionOff
		} `json:"functions"`
		Off *offsJSON `json:"off"`
	}
	of := func(r table, name string) *FunctionOff {
		for _, f := range r.Functions {
			if f.Name == name {
				return f.FunctionOff
			}
		}
		return nil
	}
	for _, test := range []struct {
		request   string
		functions int
		inner     *FunctionOff
		longest   string
	}{
		{"functions", 2, &FunctionOff{3000, 0.3, 15}, "hash"},
		{"functions?from=500&to=2500", 1, nil, "hash"},
		{"functions?from=1500&to=6000", 2, &FunctionOff{1000, 1.0 / 4.5, 5}, "hash"},
	} {
		r := ask[table](c, test.request)
		inner := of(r, "inner")
		if r.Off == nil || r.Off.Functions != test.functions || len(r.Off.Longest) != test.functions || r.Off.Longest[0].Name != test.longest {
			t.Errorf("%s: off %+v", test.request, r.Off)
		}
		if (inner == nil) != (test.inner == nil) || inner != nil && *inner != *test.inner || of(r, "work") != nil {
			t.Errorf("%s: inner %+v, work %+v", test.request, inner, of(r, "work"))
		}
	}
	times := ask[offsJSON](c, "offs?f=2&from=6000&to=20000")
	if want := []offTime{{5000, 7000, 10}, {8000, 9000, 5}}; len(times.Times) != 2 || times.Times[0] != want[0] || times.Times[1] != want[1] || times.More != 0 {
		t.Errorf("%+v", times)
	}
	call := ask[callJSON](c, "call?lane=0&row=0&at=6000")
	if call.Off == nil || call.Off.Functions != 2 || call.Off.Longest[1].Name != "inner" || call.Off.Longest[1].OffNS != 3000 {
		t.Errorf("the call: %+v", call.Off)
	}
	call = ask[callJSON](c, "call?lane=0&row=1&at=1500")
	if call.Off == nil || call.Off.Functions != 1 {
		t.Errorf("the call in it: %+v", call.Off)
	}
	info := ask[struct{ Reels []reelJSON }](c, "info")
	if b := info.Reels[0].Budget; !info.Reels[0].Off || b == nil || *b != (budgetJSON{0.02, 0.017, 0.5, 0.75}) {
		t.Errorf("info: %+v", b)
	}
}

func TestOffsOfAReelThatGrowsAreFollowed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "grows.reel")
	w := newReel(t, path, []string{"work", "hash"})
	tw := thread(t, w, "main", reel.Entry(2000, 0x10000, 1), reel.Exit(2500, 0x10000, 1))
	realtest.Must(t, w.Flush())
	c := serve(t, Options{Paths: []string{path}, Recording: true})
	until(c, "offs", func(o *offsJSON) bool { return o == nil })
	realtest.Must(t, w.Off([]reel.Off{{Function: 2, From: 2200}}))
	realtest.Must(t, tw.Append([]reel.Event{reel.Entry(5000, 0x10000, 1), reel.Exit(6000, 0x10000, 1)}))
	realtest.Must(t, w.Flush())
	until(c, "offs", func(o *offsJSON) bool { return o != nil && o.Functions == 1 && o.Longest[0].Name == "hash" })
	realtest.Must(t, w.Close())
	c.Ended()
}
