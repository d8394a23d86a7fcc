package reel

import (
	"path/filepath"
	"testing"
)

// Calls that were made and not recorded are counted, over all that is said of them; what can't be is damage.
func TestCallsMadeAreCounted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made.reel")
	w, err := Create(path, Header{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, calls := range []map[uint32]uint64{nil, {1: 10, 7: 1 << 40}, {7: 1, MaxID: 3}} {
		if err := w.Made(100, calls); err != nil {
			t.Fatal(err)
		}
	}
	bad := frame{kind: KindMade, count: 2}
	if err := w.put(bad, append(make([]byte, frameSize), 100, 3, 5, 0, 5)); err != nil { // function 3, twice
		t.Fatal(err)
	}
	if err := w.put(bad, append(make([]byte, frameSize), 1, 3, 5)); err != nil { // one in one
		t.Fatal(err)
	}
	if err := w.put(bad, append(make([]byte, frameSize), 100, 4, 5)); err != nil { // just one function
		t.Fatal(err)
	}
	f := reopen(t, w, path)
	if f.Every() != 100 {
		t.Errorf("one in %d", f.Every())
	}
	for id, want := range map[uint32]uint64{1: 10, 7: 1<<40 + 1, MaxID: 3, 3: 5, 4: 5} {
		if got, ok := f.Made(id); got != want || !ok {
			t.Errorf("%d calls of function %d, %v; want %d", got, id, ok, want)
		}
	}
	if _, ok := f.Made(2); ok {
		t.Error("function 2 is counted")
	}
	if n := len(f.Damage()); n != 3 {
		t.Errorf("%d places are damaged, want 3: %v", n, f.Damage())
	}
}
