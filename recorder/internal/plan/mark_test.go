package plan

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/mark/sdt"
)

// markedImage is a real image with all of its markers to be planned.
func markedImage(t *testing.T, name string) *Image {
	t.Helper()
	im := realImage(t, name)
	notes, err := sdt.Read(im.Object)
	if err == nil && len(notes) == 0 {
		err = errors.New("there are none")
	}
	realtest.NeedThat(t, "markers in "+name, err)
	for i := range notes {
		im.Marks = append(im.Marks, notes[i].Addr)
	}
	return im
}

// The sites of functions and of the markers in them have nothing in common, and each marker that is joined is moved by its function.
func TestMarkersAndFunctionsShareNoBytes(t *testing.T) {
	for _, name := range []string{"libstdc++", "python"} {
		t.Run(name, func(t *testing.T) {
			im := markedImage(t, name)
			plain, err := realImage(t, name).Plan(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			fns, err := im.Plan(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			without, with := 0, 0
			for i := range plain {
				without += btoi(plain[i].Tier != TierNone)
			}
			taken := map[uint64]uint64{} // bytes that are written, by whom
			take := func(who uint64, sites []Site) {
				for i := range sites {
					s := &sites[i]
					if s.Kind == SiteCopy {
						continue
					}
					from, to := s.Addr, s.End()
					for a := from; a < to; a++ {
						if other, is := taken[a]; is && other != who {
							t.Errorf("%#x and %#x both have %#x", who, other, a)
						}
						taken[a] = who
					}
				}
			}
			byAddr := map[uint64]*Function{}
			for i := range fns {
				byAddr[fns[i].Addr] = &fns[i]
				with += btoi(fns[i].Tier != TierNone)
				take(fns[i].Addr, fns[i].Sites)
			}
			if with != without {
				t.Errorf("%d functions are recorded with markers, %d without", with, without)
			}
			apart, joined := 0, 0
			for i := range im.Marked {
				m := &im.Marked[i]
				host := byAddr[m.Host]
				switch {
				case host == nil || m.With == MarkLost:
				case m.With == MarkJoined:
					joined++
					moved := false
					for k := range host.Sites {
						for _, in := range im.Moved(&host.Sites[k], nil) {
							moved = moved || in.Addr == m.Addr
						}
					}
					if !moved {
						t.Errorf("%#x is joined with %s, which doesn't move it", m.Addr, host.Name)
					}
				case m.Alone.Tier != TierNone:
					apart++
					take(m.Addr, m.Alone.Sites)
				}
			}
			if apart+joined == 0 {
				t.Error("no marker can be recorded with functions")
			}
			t.Logf("%d of %d markers apart, %d joined", apart, len(im.Marked), joined)
		})
	}
}

// A marker's own site does whole instructions, its own among them, and nothing jumps into it that isn't led elsewhere.
func TestMarkersHoldAgainstObjdump(t *testing.T) {
	for _, name := range []string{"libstdc++", "python"} {
		t.Run(name, func(t *testing.T) {
			im := markedImage(t, name)
			im.MarksOnly = true
			path, err := filepath.EvalSymlinks(im.Object.Name())
			if err != nil {
				t.Fatal(err)
			}
			l := list(t, path)
			if _, err := im.Plan(t.Context()); err != nil {
				t.Fatal(err)
			}
			planned := 0
			for i := range im.Marked {
				m := &im.Marked[i]
				if m.Alone.Tier == TierNone {
					t.Logf("%#x: %s", m.Addr, m.Alone.Reason)
					continue
				}
				planned++
				holds := false
				for k := range m.Alone.Sites {
					s := &m.Alone.Sites[k]
					moved := im.Moved(s, nil)
					at := s.Addr
					for n, in := range moved {
						if size := uint64(l.insts[at].size); size != uint64(in.Inst.Len) {
							t.Errorf("%#x: the instruction at %#x has %d bytes, not %d", m.Addr, at, size, in.Inst.Len)
						}
						holds = holds || s.Role == RoleMark && in.Addr == m.Addr && n == int(s.Before) || s.Kind == SiteBranch && s.Role == RoleMark && in.Addr == m.Addr+1
						if to, is := l.targetIn(at+uint64(btoi(n == 0)), at+uint64(in.Inst.Len)); is && !in.Target {
							t.Errorf("%#x: something jumps to %#x", m.Addr, to)
						}
						if in.Exit || in.Loop {
							t.Errorf("%#x: %#x is an exit", m.Addr, at)
						}
						at += uint64(in.Inst.Len)
					}
				}
				if !holds {
					t.Errorf("%#x: none of its sites has it: %+v", m.Addr, m.Alone.Sites)
				}
			}
			if planned == 0 {
				t.Error("none can be recorded")
			}
		})
	}
}
