package symbolize

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

func TestOverlappingImagesOfOneCaptureContradictEachOther(t *testing.T) {
	a := &Image{Path: "a", Load: 0x1000, Size: 0x3000}
	b := &Image{Path: "b", Load: 0x2000, Size: 0x1000}
	c := &Image{Path: "c", Load: 0x8000}
	d := &Image{Path: "d", Load: 0x9000, Size: 0x10}
	twice := &Image{Path: "a", Load: 0x1000, Size: 0x3000}
	s := newSpace([]*Image{d, c, b, a, twice})
	for _, q := range []struct {
		addr  uint64
		image *Image
		clash bool
	}{
		{0xfff, nil, false}, {0x1000, a, false}, {0x1fff, a, false}, {0x2000, b, true}, {0x2fff, b, true}, {0x3000, a, false}, {0x3fff, a, false},
		{0x4000, nil, false}, {0x8000, c, false}, {0x8fff, c, false}, {0x9000, d, false}, {0x900f, d, false}, {0x9010, nil, false}, {^uint64(0), nil, false},
	} {
		p, ok := s.find(q.addr)
		if ok != (q.image != nil) || ok && (p.rival != nil) != q.clash {
			t.Errorf("%#x: %+v %v", q.addr, p, ok)
		}
		if ok && !q.clash && !p.image.same(q.image) {
			t.Errorf("%#x: %s, want %s", q.addr, p.image.Path, q.image.Path)
		}
	}
}

func TestImagesOfTextReplaceWhatWasThere(t *testing.T) {
	var s space
	put := func(path string, load, size uint64) { s.put(&Image{Path: path, Load: load, Size: size}) }
	put("a", 0x1000, 0x4000)
	put("b", 0x2000, 0x1000)
	put("open", 0x8000, 0)
	put("c", 0x9000, 0x1000)
	put("d", 0x4800, 0x400)
	for addr, want := range map[uint64]string{
		0xfff: "", 0x1000: "a", 0x1fff: "a", 0x2000: "b", 0x2fff: "b", 0x3000: "a", 0x4800: "d", 0x4bff: "d", 0x4c00: "a", 0x4fff: "a", 0x5000: "",
		0x8000: "open", 0x8fff: "open", 0x9000: "c", 0x9fff: "c", 0xa000: "",
	} {
		got := ""
		if p, ok := s.find(addr); ok {
			got = p.image.Path
		}
		if got != want {
			t.Errorf("%#x: %q, want %q", addr, got, want)
		}
	}
	put("all", 0, 0x100000)
	if len(s.pieces) != 1 {
		t.Errorf("%d pieces, want 1", len(s.pieces))
	}
}

// Both ways of laying images out, checked against asking every image.
func TestSpaceIsRightForAnyImages(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var list []*Image
		var last space
		for k := range 1 + r.IntN(12) {
			im := &Image{Path: fmt.Sprint(k), Load: uint64(r.IntN(60)), Size: uint64(1 + r.IntN(20))}
			list = append(list, im)
			last.put(im)
		}
		s := newSpace(list)
		checkDisjoint(t, s)
		checkDisjoint(t, last)
		for addr := range uint64(90) {
			var holders []*Image
			for _, im := range list {
				if addr >= im.Load && addr < im.end() {
					holders = append(holders, im)
				}
			}
			p, ok := s.find(addr)
			if ok != (len(holders) > 0) || ok && (p.rival != nil) != (len(holders) > 1) || len(holders) == 1 && p.image != holders[0] {
				t.Fatalf("%#x of %d images: %+v %v", addr, len(list), p, ok)
			}
			q, ok := last.find(addr)
			if ok != (len(holders) > 0) || ok && q.image != holders[len(holders)-1] {
				t.Fatalf("%#x of %d images, one after the other: %+v %v", addr, len(list), q, ok)
			}
		}
	}
}

func checkDisjoint(t *testing.T, s space) {
	t.Helper()
	for k, p := range s.pieces {
		if p.end <= p.start || k > 0 && p.start < s.pieces[k-1].end {
			t.Fatalf("piece %d: %#x to %#x", k, p.start, p.end)
		}
	}
}

// Nested images, each of which claims the ends of all others, must not cost their square.
func TestHostileImagesAreLaidOutInTime(t *testing.T) {
	nested := make([]*Image, maxImages)
	for k := range nested {
		nested[k] = &Image{Path: fmt.Sprint(k), Load: uint64(k), Size: uint64(4 * (len(nested) - k))}
	}
	start := time.Now()
	s := newSpace(nested)
	if len(s.pieces) > 2*len(nested) {
		t.Errorf("%d pieces of %d images", len(s.pieces), len(nested))
	}
	var p space
	for _, im := range nested[:maxImages/4] {
		p.put(im)
	}
	if len(p.pieces) > 2*len(nested) {
		t.Errorf("%d pieces of %d images", len(p.pieces), len(nested))
	}
	t.Logf("%d images: %v", len(nested), time.Since(start))
}
