package armed

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/recorder/internal/tables"
	"github.com/callreel/callreel/recorder/internal/target"
	"github.com/callreel/callreel/reel"
)

// Functions that were off are in a dump by their numbers in all dumps, also if they have no calls there.
func TestDumpsSayWhichFunctionsWereOff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dump.reel")
	w, err := reel.Create(path, reel.Header{Clock: reel.Clock{TicksPerSecond: 1e9, BaseTick: 1}}, reel.Options{})
	realtest.Must(t, err)
	arena := &target.Arena{Fns: []stub.Probe{{Function: &plan.Function{Name: "a"}}, {Function: &plan.Function{Name: "b"}}, {Function: &plan.Function{Name: "c"}}}}
	catalog := &Catalog{}
	late := tables.NewLate(tables.NewImages(tables.Own{To: catalog}), tables.Own{To: catalog})
	realtest.Must(t, late.Add([]target.IDRange{{First: 1, Count: 3, Arena: arena}}, 4))
	dump := &catalogued{Writer: w, catalog: catalog}
	if id := late.IDOf(3); id != 1 { // it has a call
		t.Fatalf("c has the number %d", id)
	}
	budget := reel.Budget{Wanted: 0.02, CallsShare: 0.5, TimeShare: 0.5}
	a := &Loop{Config: Config{
		Functions: late,
		Offs: func(from, to uint64) []reel.Off {
			return []reel.Off{{Function: 3, From: from, To: to}, {Function: 1, From: from, To: 50}, {Function: 99, From: from, To: to}}
		},
		Budget: func() (reel.Budget, bool) { return budget, true },
	}}
	realtest.Must(t, a.writeOffs(dump, window{from: 10, to: 100}))
	realtest.Must(t, (&Loop{}).writeOffs(dump, window{from: 10, to: 100}))
	realtest.Must(t, w.Close())
	f, err := reel.Open(path)
	realtest.Must(t, err)
	defer f.Close()
	if got, want := f.Offs(), []reel.Off{{Function: 1, From: 10, To: 100}, {Function: 2, From: 10, To: 50}}; !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if fn, _ := f.Function(2); fn.Name != "a" || f.FunctionCount() != 2 {
		t.Errorf("function 2 of %d is %q", f.FunctionCount(), fn.Name)
	}
	if b, ok := f.Budget(); b != budget || !ok {
		t.Errorf("%+v", b)
	}
}
