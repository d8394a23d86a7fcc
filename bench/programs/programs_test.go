package programs

import (
	"errors"
	"os"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// Every program that there is gives the same answer to each portion of work, and ends well.
func TestProgramsAnswerAlike(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace) // they run on Linux
	for _, p := range All() {
		t.Run(p.Name, func(t *testing.T) {
			if err := p.Missing(""); err != nil {
				t.Skipf("this machine lacks a capability: %v", err)
			}
			// Not t.TempDir, which other users can't enter.
			dir, err := os.MkdirTemp("", "callreel-programs-")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := os.RemoveAll(dir); err != nil {
					t.Error(err)
				}
			})
			i, err := p.Start(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			first, err := i.Work()
			for range 2 {
				again, err2 := i.Work()
				if err := errors.Join(err, err2); err != nil {
					i.Kill()
					t.Fatal(err)
				}
				if again != first || first == "" {
					t.Errorf("%q, then %q", first, again)
				}
			}
			t.Log(first)
			if err := i.End(); err != nil {
				t.Error(err)
			}
		})
	}
}
