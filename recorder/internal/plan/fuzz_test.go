package plan

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/recorder/internal/testimage"
)

// planBytes plans an image in memory; an error is as good as a plan.
func planBytes(data []byte) ([]Function, *Image, error) {
	o, err := object.Parse("tiny", data)
	if err != nil {
		return nil, nil, err
	}
	im, err := NewImage(o, "tiny")
	if err != nil {
		return nil, nil, err
	}
	_ = o.VisitSlots(func(s *object.Slot) bool {
		if !slices.Contains(im.Slots, s.Offset) {
			im.Slots = append(im.Slots, s.Offset)
		}
		return len(im.Slots) < 64
	})
	slices.Sort(im.Slots)
	fns, err := im.Plan(context.Background())
	return fns, im, err
}

// checkPlan holds a plan of any bytes against what must be true of all: the sites are inside the text, whole, and apart.
func checkPlan(t *testing.T, fns []Function, im *Image) {
	t.Helper()
	taken := map[uint64]bool{}
	take := func(from, to uint64) {
		for a := from; a < to; a++ {
			if taken[a] {
				t.Fatalf("%#x is taken twice", a)
			}
			taken[a] = true
			if im.textAt(a) == nil {
				t.Fatalf("%#x is taken, outside of the text", a)
			}
		}
	}
	hosts := map[uint64]bool{} // islands behind the jumps of sites
	for i := range fns {
		for _, s := range fns[i].Sites {
			if s.Hosted {
				if hosts[s.Island] {
					t.Fatalf("%#x is two sites' island", s.Island)
				}
				hosts[s.Island] = true
			}
		}
	}
	hosting := 0
	for i := range fns {
		f := &fns[i]
		for k := range f.Sites {
			s := &f.Sites[k]
			if s.hosts {
				hosting++
			}
			if s.Kind == SiteCopy {
				continue // nothing is written there
			}
			take(s.Addr, s.End())
			switch {
			case s.hosts:
				if !hosts[s.Addr+NearJump] || s.Size < 2*NearJump {
					t.Fatalf("site %#x of %d bytes hosts an island that nobody has", s.Addr, s.Size)
				}
			case s.Hosted:
			case s.Island != 0:
				take(s.Island, s.Island+NearJump)
			}
			if at, n := s.Patch(); at < s.Addr || at+uint64(n) > s.End() || crossesPage(at, n) {
				t.Fatalf("site %#x to %#x changes %d bytes at %#x", s.Addr, s.End(), n, at)
			}
		}
	}
	if hosting != len(hosts) {
		t.Fatalf("%d sites host islands, %d islands are hosted", hosting, len(hosts))
	}
}

// FuzzPlan plans images of made-up code, and changed copies of a real one.
func FuzzPlan(f *testing.F) {
	f.Add([]byte{0x55, 0x48, 0x89, 0xE5, 0x74, 0x02, 0x5D, 0xC3, 0xFF, 0xE0, 0xE9, 0, 0, 0, 0}, uint64(3), true)
	f.Add([]byte{0x48, 0x8D, 0x15, 0, 1, 0, 0, 0x48, 0x63, 0x04, 0x82, 0x48, 0x01, 0xD0, 0xFF, 0xE0, 0xC3}, uint64(1), true)
	f.Add([]byte{1, 2, 3}, uint64(7), false)
	real := testimage.Small()
	f.Fuzz(func(t *testing.T, code []byte, seed uint64, made bool) {
		data := testimage.Damaged(real, code, seed, made)
		start := time.Now()
		fns, im, err := planBytes(data)
		if d := time.Since(start); d > 5*time.Second {
			t.Fatalf("planning %d bytes took %v", len(data), d)
		}
		if err == nil {
			checkPlan(t, fns, im)
		}
	})
}

// What overlaps, or refers to itself, a hundred thousand times must still be planned in a moment.
func TestHostileImagesTakeBoundedTime(t *testing.T) {
	for name, data := range testimage.Hostile() {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			fns, im, err := planBytes(data)
			if d := time.Since(start); d > 10*time.Second {
				t.Errorf("%v for %d bytes", d, len(data))
			}
			if err == nil {
				checkPlan(t, fns, im)
			}
			t.Logf("%v, %d functions, %v", time.Since(start).Round(time.Millisecond), len(fns), shares(fns))
		})
	}
}
