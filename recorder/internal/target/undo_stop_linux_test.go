package target

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/recovery"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// What is patched, and not changed by anybody meanwhile, is Undo with what was prepared; a page that has changed between the
// preparation and the stop is not overwritten with it.
func TestTextThatChangesBeforeTheStop(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace)
	p, finish := startCat(t)
	for _, changes := range []bool{false, true} {
		before := mappedAndOpen(t, p)
		s := New(p)
		s.Arenas = []*Arena{{Size: 3 * PageSize}}
		maps, err := p.Maps()
		if err != nil {
			t.Fatal(err)
		}
		s.Arenas[0].Base = maps[0].Start - 64*PageSize
		set := ring.Setup{Chunks: 16}
		s.Size, s.Records = ring.Size(set.Chunks), 4*PageSize
		stop := func(f func(st *process.Stopped) error) {
			t.Helper()
			if _, err := p.Stop(context.Background(), process.StopOptions{}, f); err != nil {
				t.Fatal(err)
			}
		}
		stop(func(st *process.Stopped) error { return s.mapAll(st, maps, set) })
		// What is behind the end of the code on its last page is run by nobody.
		i := slices.IndexFunc(maps, func(m process.Mapping) bool { return m.Perm&process.PermExec != 0 })
		at := maps[i].End - 64
		old := make([]byte, 64)
		if _, err := p.ReadAt(old, at); err != nil {
			t.Fatal(err)
		}
		patch := stub.NewPatch(at, old[:5], []byte{0xE9, 1, 2, 3, 4})
		patch.Level = 1
		write := func(b []byte, at uint64) {
			t.Helper()
			if _, err := p.WriteAt(b, at); err != nil {
				t.Fatal(err)
			}
		}
		write(patch.New(), at)
		w, err := prepareUndo(p, &recovery.Record{Arenas: spansOf(s.Arenas), Patches: []stub.Patch{patch}})
		if err != nil {
			t.Fatal(err)
		}
		w.shared = s.Shared()
		w.judgeBy(nil)
		want := slices.Clone(old)
		if changes {
			want[32] ^= 0xFF
			write(want[32:33], at+32)
		}
		var kept string
		stop(func(st *process.Stopped) (err error) {
			kept, err = w.in(st)
			return err
		})
		if kept != "" {
			t.Errorf("changes: %v: %s", changes, kept)
		}
		if atOnce := w.text != nil; atOnce == changes {
			t.Errorf("changes: %v: what was prepared was written: %v", changes, atOnce)
		} else if atOnce && len(w.text.Layers) > 0 {
			t.Error("it would be written once more in another stop")
		}
		now := make([]byte, len(old))
		if _, err := p.ReadAt(now, at); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(now, want) {
			t.Errorf("changes: %v: there is % x, want % x", changes, now, want)
		}
		write(old, at)
		s.closeMemory()
		if now := mappedAndOpen(t, p); now != before {
			t.Errorf("changes: %v: before\n%s\nnow\n%s", changes, before, now)
		}
	}
	finish()
}
