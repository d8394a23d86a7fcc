package recorder

import (
	"bytes"
	"context"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/probe"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// At every moment what is restored is all patches of higher levels, and none of lower ones, whatever page they are on; but what has to do
// with its own page only is restored with the first of that page.
func TestTextIsRestoredLevelByLevel(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	for _, times := range []int{1, 3 * leastPages / 4} {
		mem, now, base := mapPages(t, 5*times)
		patches := manyLayeredPatches(base, times)
		for i := range patches {
			p := &patches[i]
			p.Alone = p.Addr&0xFFF == 0x100 // of a page with levels 0, 1 and 3
			copy(now[p.Addr-base:], p.New())
		}
		maps := []process.Mapping{{Start: base, End: base + uint64(len(now)), Perm: process.PermRead | process.PermExec}}
		text, err := restoreLayers(mem, maps, patches)
		if err != nil {
			t.Fatal(err)
		}
		if len(text.pages) != 4*times || len(text.layers) != 4 || text.foreign != 0 {
			t.Fatalf("%d pages in %d layers, %d foreign, want %d in 4", len(text.pages), len(text.layers), text.foreign, 4*times)
		}
		want := slices.Clone(now)
		for level, layer := range slices.Backward(text.layers) {
			if err := writeThere(mem, layer); err != nil {
				t.Fatal(err)
			}
			for i := range patches {
				if p := &patches[i]; !p.Alone && int(p.Level) == level || p.Alone && level == 3 {
					copy(want[p.Addr-base:], p.Old())
				}
			}
			if !bytes.Equal(now, want) {
				t.Errorf("after level %d the text is not as it should be", level)
			}
		}
		if !bytes.Equal(now, make([]byte, len(now))) {
			t.Error("the text is not restored")
		}
		for i := range text.pages {
			if pg := &text.pages[i]; pg.partly != ((pg.addr-base)%(5*pageSize) == 0 || (pg.addr-base)%(5*pageSize) == pageSize ||
				(pg.addr-base)%(5*pageSize) == 2*pageSize) {
				t.Errorf("page %#x is written more than once: %v", pg.addr-base, pg.partly)
			}
		}
	}
}

// Pages whose patches have to do with no other page are written once, whatever their levels.
func TestAPageByItselfIsWrittenOnce(t *testing.T) {
	mem, now, base := mapPages(t, 5)
	patches := layeredPatches(base)
	for i := range patches {
		patches[i].Alone = true
	}
	layers, all, err := prepareLayers(mem, patches)
	if err != nil {
		t.Fatal(err)
	}
	if len(layers) != 1 || len(layers[0]) != 4 || len(all) != 4 {
		t.Fatalf("%d pages in %d layers", len(all), len(layers))
	}
	if err := writeLayer(mem, layers[0]); err != nil {
		t.Fatal(err)
	}
	want := make([]byte, len(now))
	for i := range patches {
		copy(want[patches[i].Addr-base:], patches[i].New())
	}
	if !bytes.Equal(now, want) {
		t.Error("the text is not as it should be")
	}
	now[0x1000] ^= 0xFF // somebody's breakpoint on a site
	maps := []process.Mapping{{Start: base, End: base + uint64(len(now)), Perm: process.PermRead | process.PermExec}}
	text, err := restoreLayers(mem, maps, patches)
	if err != nil {
		t.Fatal(err)
	}
	if len(text.layers) != 1 || text.foreign != 1 || slices.ContainsFunc(text.pages, func(p page) bool { return p.partly }) {
		t.Errorf("%d layers, %d foreign", len(text.layers), text.foreign)
	}
	if err := writeThere(mem, text.layers[0]); err != nil {
		t.Fatal(err)
	}
	clear(want)
	copy(want[0x1000:], now[0x1000:0x1005])
	if !bytes.Equal(now, want) || now[0x1000] == 0 {
		t.Error("the text is not restored, or somebody's breakpoint with it")
	}
}

// What is patched, and not changed by anybody meanwhile, is restored with what was prepared; a page that has changed between the
// preparation and the stop is not overwritten with it.
func TestTextThatChangesBeforeTheStop(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace)
	p, finish := startCat(t)
	for _, changes := range []bool{false, true} {
		before := mappedAndOpen(t, p)
		s := &session{p: p, fd: -1, arenas: []*arena{{size: 3 * pageSize}}}
		maps, err := p.Maps()
		if err != nil {
			t.Fatal(err)
		}
		s.arenas[0].base = maps[0].Start - 64*pageSize
		set := ring.Setup{Chunks: 16}
		s.size, s.records = ring.Size(set.Chunks), 4*pageSize
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
		patch := probe.NewPatch(at, old[:5], []byte{0xE9, 1, 2, 3, 4})
		patch.Level = 1
		write := func(b []byte, at uint64) {
			t.Helper()
			if _, err := p.WriteAt(b, at); err != nil {
				t.Fatal(err)
			}
		}
		write(patch.New(), at)
		w, err := prepareUndo(p, &recovery{arenas: spansOf(s.arenas), patches: []probe.Patch{patch}})
		if err != nil {
			t.Fatal(err)
		}
		w.shared = s.shared()
		w.judgeBy(nil)
		want := slices.Clone(old)
		if changes {
			want[32] ^= 0xFF
			write(want[32:33], at+32)
		}
		var left string
		stop(func(st *process.Stopped) (err error) {
			left, err = w.in(st)
			return err
		})
		if left != "" {
			t.Errorf("changes: %v: %s", changes, left)
		}
		if atOnce := w.text != nil; atOnce == changes {
			t.Errorf("changes: %v: what was prepared was written: %v", changes, atOnce)
		} else if atOnce && len(w.text.layers) > 0 {
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

// A thread that came first is as it was before.
func TestComingFirstIsOver(t *testing.T) {
	policy := func() uintptr {
		now, _, err := unix.RawSyscall(unix.SYS_SCHED_GETSCHEDULER, 0, 0, 0)
		if err != 0 {
			t.Fatal(err)
		}
		return now
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := policy()
	back := comeFirst()
	t.Logf("policy %d, %#x meanwhile", before, policy())
	back()
	if now := policy(); now&^0x40000000 != before {
		t.Errorf("policy %#x afterwards, %#x before", now, before)
	}
}
