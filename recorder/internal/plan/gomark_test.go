package plan

import (
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/recorder/internal/golang"
	"github.com/callreel/callreel/recorder/internal/testimage"
)

// A function of package mark is a marker, written by one store where the Go compiler has optimized it, and no function any more.
func TestFunctionsOfPackageMarkAreMarkers(t *testing.T) {
	for _, c := range []struct {
		arch   string
		flags  []string
		single bool
	}{
		{"amd64", nil, true}, {"amd64", []string{"-buildmode=pie", "-ldflags=-s -w"}, true}, {"amd64", []string{"-gcflags=all=-N -l"}, false},
		{"arm64", nil, true}, {"arm64", []string{"-buildmode=pie", "-ldflags=-s -w"}, true}, {"arm64", []string{"-gcflags=all=-N -l"}, true},
	} {
		im, err := NewImage(testimage.Open(t, realtest.BuildGoFor(t, c.arch, "gomarks", c.flags...)), "gomarks")
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range golang.MarkNotes(im.Object) {
			im.Marks = append(im.Marks, n.Addr)
		}
		fns, err := im.Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		byAddr := map[uint64]*Function{}
		for i := range fns {
			byAddr[fns[i].Addr] = &fns[i]
		}
		for i := range im.Marked {
			m := &im.Marked[i]
			f := byAddr[m.Addr]
			if m.Alone.Reason != ReasonNone || len(m.Alone.Sites) != 1 || m.Alone.Sites[0].Role != RoleMark || m.Alone.Sites[0].Exits() != 0 {
				t.Errorf("%q: %+v", c.flags, m)
			}
			if c.single && !m.Single() {
				t.Errorf("%q: %#x isn't written by one store", c.flags, m.Addr)
			}
			if f == nil || f.Reason != ReasonMarker || f.Tier != TierNone || m.With != MarkApart {
				t.Errorf("%q: %+v in %+v", c.flags, m, f)
			}
		}
		if len(im.Marked) == 0 {
			t.Errorf("%q: no markers", c.flags)
		}
	}
}

// Of any other address in a Go program that is said to be a marker's, sites are made only where a function begins that has no frame.
func TestOtherPlacesOfGoProgramsAreNoMarkers(t *testing.T) {
	for _, arch := range []string{"amd64", "arm64"} {
		t.Run(arch, func(t *testing.T) { wantNoMarkersElsewhere(t, arch) })
	}
}

func wantNoMarkersElsewhere(t *testing.T, arch string) {
	t.Helper()
	im, err := NewImage(testimage.Open(t, realtest.BuildGoFor(t, arch, "gomarks")), "gomarks")
	if err != nil {
		t.Fatal(err)
	}
	entries := map[uint64]bool{}
	for i := range im.Go.Functions {
		f := &im.Go.Functions[i]
		entries[f.Start] = true
		im.Marks = append(im.Marks, f.Start, f.Start+1, f.Start) // twice, and inside
	}
	if _, err := im.Plan(t.Context()); err != nil {
		t.Fatal(err)
	}
	taken, made := map[uint64]uint64{}, 0
	for i := range im.Marked {
		m := &im.Marked[i]
		if len(m.Alone.Sites) == 0 {
			continue
		}
		made++
		s := &m.Alone.Sites[0]
		if !entries[m.Addr] || s.Addr != m.Addr || len(m.Alone.Sites) > 1 {
			t.Errorf("%+v", m)
		}
		for a := s.Addr; a < s.End(); a++ {
			if other, is := taken[a]; is {
				t.Errorf("%#x and %#x both have %#x", m.Addr, other, a)
			}
			taken[a] = m.Addr
		}
	}
	if made == 0 {
		t.Error("no function without a frame")
	}
}
