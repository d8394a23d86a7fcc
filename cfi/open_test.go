package cfi

import (
	"cmp"
	"slices"
	"sync"
	"testing"

	"github.com/callreel/callreel/internal/ehtable"
	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
)

// sections reads what OpenEHFrame needs.
func sections(t testing.TB, path string) (hdr, frame Section) {
	t.Helper()
	im, err := object.Open(path)
	realtest.NeedThat(t, path, err)
	t.Cleanup(func() { im.Close() })
	if hdr.Data, hdr.Addr, err = im.EHFrameHdr(); err != nil {
		t.Fatal(err)
	}
	if frame.Data, frame.Addr, err = im.EHFrame(); err != nil {
		t.Fatal(err)
	}
	return hdr, frame
}

func TestOpenedTableFindsWhatAParsedOneFinds(t *testing.T) {
	for _, name := range []string{"libc.so.6", "libcrypto.so.3"} {
		hdr, frame := sections(t, library(t, name))
		whole, err := ParseEHFrame(frame.Data, frame.Addr, Options{})
		if err != nil {
			t.Fatal(err)
		}
		lazy, err := OpenEHFrame(hdr, frame, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if lazy.index == nil {
			t.Fatalf("%s: the header is not used", name)
		}
		var group sync.WaitGroup
		for part := range 2 {
			group.Go(func() { // both look the same FDEs up
				for k := range whole.FDEs() {
					f := &whole.FDEs()[k]
					for _, pc := range []uint64{f.Start - 1, f.Start, f.End - 1, f.End} {
						want, ok := whole.Find(pc)
						got, ok2 := lazy.Find(pc)
						if ok != ok2 || ok && (got.Start != want.Start || got.End != want.End || got.Offset != want.Offset || got.LSDA != want.LSDA) {
							t.Errorf("%s %d: Find(%#x) = %+v, %v, want %+v, %v", name, part, pc, got, ok2, want, ok)
							return
						}
						if !ok {
							continue
						}
						a, err := got.RowAt(pc)
						b, err2 := want.RowAt(pc)
						if err != nil || err2 != nil || a.Format(nil) != b.Format(nil) {
							t.Errorf("%s: %#x: row %s, %v, want %s, %v", name, pc, a.Format(nil), err, b.Format(nil), err2)
							return
						}
					}
				}
			})
		}
		group.Wait()
		for _, table := range []*Table{whole, lazy} {
			var visited []FDE
			table.VisitFDEs(func(f *FDE) bool {
				visited = append(visited, *f)
				return true
			})
			slices.SortFunc(visited, func(a, b FDE) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Offset, b.Offset)) })
			if !slices.EqualFunc(visited, whole.FDEs(), func(a, b FDE) bool {
				return a.Start == b.Start && a.End == b.End && a.Offset == b.Offset && a.LSDA == b.LSDA && a.CIE.Offset == b.CIE.Offset
			}) {
				t.Errorf("%s: %d FDEs are visited, want %d", name, len(visited), len(whole.FDEs()))
			}
			first := 0
			table.VisitFDEs(func(*FDE) bool { first++; return first < 3 })
			if first != 3 {
				t.Errorf("%s: %d FDEs are visited, want to stop behind 3", name, first)
			}
		}
		if len(lazy.FDEs()) != len(whole.FDEs()) || lazy.Err() != nil {
			t.Errorf("%s: %d FDEs, want %d; %v", name, len(lazy.FDEs()), len(whole.FDEs()), lazy.Err())
		}
	}
}

func TestUnusableHeadersAreDoneWithout(t *testing.T) {
	hdr, frame := sections(t, library(t, "libgcc_s.so.1"))
	whole, err := ParseEHFrame(frame.Data, frame.Addr, Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := &whole.FDEs()[len(whole.FDEs())/2]
	for name, bad := range map[string]func(h *Section){
		"none":            func(h *Section) { h.Data = nil },
		"cut":             func(h *Section) { h.Data = h.Data[:20] },
		"version":         func(h *Section) { h.Data[0] = 2 },
		"no table":        func(h *Section) { h.Data[3] = byte(ehtable.Omit) },
		"LEB128 pointers": func(h *Section) { h.Data[3] = byte(ehtable.ULEB) },
		"other section":   func(h *Section) { h.Data[4]++ },
	} {
		h := Section{append([]byte(nil), hdr.Data...), hdr.Addr}
		bad(&h)
		table, err := OpenEHFrame(h, frame, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := table.Find(f.Start); !ok || got.Offset != f.Offset {
			t.Errorf("%s: Find gives %+v, %v", name, got, ok)
		}
	}
}

func TestFDEAtReadsOneRecord(t *testing.T) {
	_, frame := sections(t, library(t, "libgcc_s.so.1"))
	table, err := ParseEHFrame(frame.Data, frame.Addr, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for k := range table.FDEs() {
		want := &table.FDEs()[k]
		if got, err := table.FDEAt(want.Offset); err != nil || got.Start != want.Start || got.End != want.End {
			t.Fatalf("%+v, %v, want %+v", got, err, want)
		}
	}
	for _, at := range []uint64{0, uint64(len(frame.Data)), 1 << 63, table.FDEs()[0].CIE.Offset} {
		if f, err := table.FDEAt(at); err == nil {
			t.Errorf("offset %#x gives %+v", at, f)
		}
	}
}

func FuzzOpenEHFrame(f *testing.F) {
	b := newBuilder()
	cie := b.cie(1, "", 1, -8, 16, plainStart)
	at := b.fde(cie, 0x1000, 0x100, 0x41, 0x0e, 16)
	hdr := []byte{1, 0x03, 0x03, 0x03, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0x10, 0, 0, byte(at), 0, 0, 0}
	f.Add(hdr, b.data, uint64(0x1004))
	f.Fuzz(func(t *testing.T, hdr, frame []byte, pc uint64) {
		table, err := OpenEHFrame(Section{hdr, 0x500}, Section{frame, 0}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		fde, ok := table.Find(pc)
		if !ok {
			return
		}
		if !fde.Contains(pc) {
			t.Errorf("Find(%#x) = %#x..%#x", pc, fde.Start, fde.End)
		}
		_ = fde.Rows(func(*Row) bool { return true })
	})
}

// BenchmarkOpenAndFind opens the table of a large program and looks an FDE up, as an
// unwinder does for an image that it meets for the first time.
func BenchmarkOpenAndFind(b *testing.B) {
	hdr, frame := sections(b, "/usr/bin/node")
	h, err := ParseEHFrameHdr(hdr.Data, hdr.Addr, Options{})
	if err != nil {
		b.Fatal(err)
	}
	pc := h.Entries[len(h.Entries)/3].Start
	for b.Loop() {
		table, err := OpenEHFrame(hdr, frame, Options{})
		if err != nil {
			b.Fatal(err)
		}
		if _, ok := table.Find(pc); !ok {
			b.Fatal("not found")
		}
	}
}
