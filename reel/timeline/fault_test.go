//go:build unix

package timeline

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/callreel/callreel/internal/bigreel"
	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

func TestReelCutShortWhileOpenIsAnErrorNotACrash(t *testing.T) {
	name := filepath.Join(t.TempDir(), "big.reel")
	opt := Options{segment: 1 << 14, small: 1, atOnce: 1000, Workers: 2}
	shape := bigreel.Shape{Events: 400_000, Threads: 3, Depth: 20, Seed: 1}
	shape.Last = func(w *reel.Writer) error { return Append(t.Context(), w, name, opt) }
	realtest.Must(t, bigreel.Write(name, shape))
	_, tl := openTest(t, name, opt)
	if !tl.Indexed() {
		t.Fatal("the index was not used")
	}
	realtest.Must(t, os.Truncate(name, 100))
	q := Query{To: tl.Duration(), Width: 1000}
	for _, l := range tl.Lanes() {
		q.Lanes = append(q.Lanes, LaneRows{l.ID, 0, l.Rows})
	}
	for _, q.Quick = range []bool{true, false} {
		if _, err := tl.View(t.Context(), q); !errors.Is(err, reel.ErrShorter) {
			t.Errorf("a view of a file that was cut short: %v", err)
		}
	}
	for _, n := range tl.Calls() {
		if n != 0 {
			t.Error("calls were counted that are no longer in the file")
		}
	}
	if _, _, err := tl.Next(t.Context(), func(uint32) bool { return true }, Position{}, false); err != nil {
		t.Error(err)
	}
}
