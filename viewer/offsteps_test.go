package viewer

import (
	"math"
	"slices"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

func TestHowManyFunctionsWereOffAtOnceIsTold(t *testing.T) {
	c := serveReels(t, offReel(t))
	type view = offViewJSON
	for _, test := range []struct {
		request string
		want    view
	}{
		{"offview", view{Most: 2, Whole: true, Runs: []offRun{{0, 5000, 1}, {5000, 7000, 2}, {7000, 8000, 1}, {8000, 9000, 2}, {9000, 10_000, 1}}}},
		{"offview?from=5500&to=6500", view{Most: 2, Whole: true, Runs: []offRun{{5000, 7000, 2}}}},
		{"offview?from=0&to=10000&width=2", view{Most: 2, Runs: []offRun{{0, 5000, 1}, {5000, 10_000, 2}}}},
		{"offview?from=0&to=10000&width=4", view{Most: 2, Runs: []offRun{{0, 5000, 1}, {5000, 10_000, 2}}}},
		{"offview?from=5500&to=6500&q=INN", view{Most: 2, Whole: true, Runs: []offRun{{5000, 7000, 2}}, Found: 1, Name: "inner", FoundRuns: []offRun{{5000, 7000, 1}}}},
		{"offview?from=5500&to=6500&q=*", view{Most: 2, Whole: true, Runs: []offRun{{5000, 7000, 2}}, Found: 2, FoundRuns: []offRun{{5000, 7000, 2}}}},
		{"offview?from=9100&to=9200&f=2", view{Most: 2, Whole: true, Runs: []offRun{{9000, 10_000, 1}}, Found: 1, Name: "inner"}},
		{"offview?from=9100&to=9200&q=work", view{Most: 2, Whole: true, Runs: []offRun{{9000, 10_000, 1}}}},
	} {
		got := ask[view](c, test.request)
		if got.Most != test.want.Most || got.Whole != test.want.Whole || got.Found != test.want.Found || got.Name != test.want.Name ||
			!slices.Equal(got.Runs, test.want.Runs) || !slices.Equal(got.FoundRuns, test.want.FoundRuns) {
			t.Errorf("%s:\n%+v, want\n%+v", test.request, got, test.want)
		}
	}
	if none := ask[*view](serveReels(t, oneCall(t)), "offview"); none != nil {
		t.Errorf("nothing was off: %+v", none)
	}
}

func TestFunctionsThatWereOffAreListedWithTheirWholeTimes(t *testing.T) {
	c := serveReels(t, offReel(t))
	at := ask[offsJSON](c, "offs?whole=1&from=6000&to=6000")
	if at.Functions != 2 || len(at.Longest) != 2 {
		t.Fatalf("%+v", at)
	}
	i := slices.IndexFunc(at.Longest, func(o offFunction) bool { return o.Name == "inner" })
	if o := at.Longest[i]; o.Times != 1 || o.FromNS != 5000 || o.ToNS != 7000 || o.OffNS != 2000 || o.EstimatedCalls != 10 {
		t.Errorf("inner: %+v", o)
	}
	if o := at.Longest[1-i]; o.FromNS != 0 || o.ToNS != 10_000 || o.OffNS != 10_000 {
		t.Errorf("hash: %+v", o)
	}
	if some := ask[offsJSON](c, "offs?whole=1&limit=1&from=6500&to=8500"); some.Functions != 2 || len(some.Longest) != 1 {
		t.Errorf("one of them: %+v", some)
	}
	both := ask[offsJSON](c, "offs?whole=1&from=6500&to=8500").Longest[1]
	if both.Times != 2 || both.FromNS != 5000 || both.ToNS != 9000 || both.EstimatedCalls != 15 || both.OffNS != 3000 {
		t.Errorf("inner, twice: %+v", both)
	}
}

// A hostile reel may say that functions were off a million times, and at any tick.
func TestManyTimesInWhichFunctionsWereOffAreBounded(t *testing.T) {
	path := madeReel(t, []string{"work", "hash"}, func(w *reel.Writer) {
		thread(t, w, "first", reel.Entry(1000, 0x10000, 1), reel.Exit(3_000_000, 0x10000, 1))
		list := []reel.Off{{Function: 1, From: math.MaxUint64 - 1, To: math.MaxUint64}}
		for i := range uint64(200_000) {
			list = append(list, reel.Off{Function: 2, From: 2000 + 10*i, To: 2003 + 10*i, Estimated: math.MaxUint64})
		}
		realtest.Must(t, w.Off(list))
	})
	c := serveReels(t, path)
	got := ask[offViewJSON](c, "offview?width=4096&q=*")
	if n := len(got.Runs); got.Whole || n == 0 || n > maxOffWidth || len(got.FoundRuns) > maxOffWidth || got.Most != 1 {
		t.Errorf("%d and %d stretches, of %d at once; whole: %v", n, len(got.FoundRuns), got.Most, got.Whole)
	}
	if got := ask[offViewJSON](c, "offview?width=4096&from=1000000&to=1000100"); !got.Whole || len(got.Runs) < 10 || len(got.Runs) > 12 {
		t.Errorf("near by: %+v", got)
	}
	if o := ask[offsJSON](c, "offs?whole=1").Longest; len(o) == 0 || o[0].Times != 200_000 && o[1].Times != 200_000 {
		t.Errorf("%+v", o)
	}
	a, _ := c.do("/"+c.token+"/api/offview?width=4097", nil)
	if a.StatusCode != 400 {
		t.Errorf("too wide: %s", a.Status)
	}
}
