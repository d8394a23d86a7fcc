package cfi

import (
	"debug/elf"
	"os"
	"sort"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

func TestFindGivesTheFDEThatHoldsTheAddress(t *testing.T) {
	table := section(t, library(t, "libcrypto.so.3"), ".eh_frame")
	fdes := table.FDEs()
	if !sort.SliceIsSorted(fdes, func(a, b int) bool { return fdes[a].Start < fdes[b].Start }) {
		t.Fatal("the FDEs are not sorted")
	}
	for k := range fdes {
		f := &fdes[k]
		if f.Start == f.End {
			continue
		}
		for _, pc := range []uint64{f.Start, f.End - 1} {
			if got, ok := table.Find(pc); !ok || !got.Contains(pc) {
				t.Fatalf("Find(%#x) = %+v, %v", pc, got, ok)
			}
		}
		if last := k+1 == len(fdes); last || fdes[k+1].Start > f.End {
			if got, ok := table.Find(f.End); ok {
				t.Fatalf("Find(%#x), behind %#x..%#x, gives %#x..%#x", f.End, f.Start, f.End, got.Start, got.End)
			}
		}
	}
	for _, pc := range []uint64{0, fdes[0].Start - 1, 1<<64 - 1} {
		if got, ok := table.Find(pc); ok {
			t.Errorf("Find(%#x) gives %#x..%#x", pc, got.Start, got.End)
		}
	}
}

func TestFindInOverlappingFDEsGivesTheLastToStart(t *testing.T) {
	b := newBuilder()
	cie := b.cie(1, "", 1, -8, 16, []byte{0x0c, 7, 8})
	b.fde(cie, 0x1000, 0x1000)
	b.fde(cie, 0x1100, 0x10)
	b.fde(cie, 0x1200, 0x20)
	table := b.parse(t)
	for _, test := range []struct {
		pc, start uint64
	}{{0x1000, 0x1000}, {0x1105, 0x1100}, {0x1110, 0x1000}, {0x121f, 0x1200}, {0x1220, 0x1000}, {0x1fff, 0x1000}} {
		if f, ok := table.Find(test.pc); !ok || f.Start != test.start {
			t.Errorf("Find(%#x) = %+v, %v, want the one at %#x", test.pc, f, ok, test.start)
		}
	}
	if f, ok := table.Find(0x2000); ok {
		t.Errorf("Find(0x2000) = %+v", f)
	}
}

func TestInitialCFAIsThatOfTheFirstRow(t *testing.T) {
	for _, name := range []string{"libc.so.6", "libcrypto.so.3", "libstdc++.so.6"} {
		table := section(t, library(t, name), ".eh_frame")
		var m Machine
		registers, expressions := 0, 0
		for k := range table.FDEs() {
			f := &table.FDEs()[k]
			if f.Start == f.End {
				continue
			}
			row, err := m.RowAt(f, f.Start)
			if err != nil {
				t.Fatal(err)
			}
			reg, off, ok := f.InitialCFA()
			if ok != (row.CFA.Kind == RegOffset) {
				t.Fatalf("%s: FDE at %#x: InitialCFA says %v, the row %v", name, f.Offset, ok, row.CFA)
			}
			if !ok {
				expressions++
				continue
			}
			registers++
			if reg != uint32(row.CFA.Reg) || off != row.CFA.Offset {
				t.Fatalf("%s: FDE at %#x: InitialCFA says r%d+%d, the row %v", name, f.Offset, reg, off, row.CFA)
			}
		}
		if registers == 0 {
			t.Errorf("%s: nothing compared", name)
		}
		t.Logf("%s: %d by register, %d by expression", name, registers, expressions)
	}
}

func TestRowAtGivesTheRowOfTheAddress(t *testing.T) {
	table := section(t, library(t, "libgcc_s.so.1"), ".eh_frame")
	for k := range table.FDEs() {
		f := &table.FDEs()[k]
		err := f.Rows(func(want *Row) bool {
			for _, pc := range []uint64{want.Start, want.End - 1} {
				got, err := f.RowAt(pc)
				if err != nil {
					t.Fatal(err)
				}
				if got.Start != want.Start || got.End != want.End || got.Format(nil) != want.Format(nil) {
					t.Fatalf("RowAt(%#x) = %#x..%#x %s, want %#x..%#x %s", pc,
						got.Start, got.End, got.Format(nil), want.Start, want.End, want.Format(nil))
				}
			}
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.RowAt(f.End); err == nil {
			t.Fatalf("RowAt(%#x), behind the FDE, gives a row", f.End)
		}
	}
}

func TestHeaderListsTheFDEs(t *testing.T) {
	path := library(t, "libstdc++.so.6")
	table := section(t, path, ".eh_frame")
	f, err := elf.Open(path)
	realtest.NeedThat(t, path, err)
	defer f.Close()
	s := f.Section(".eh_frame_hdr")
	data, err := s.Data()
	if err != nil {
		t.Fatal(err)
	}
	h, err := ParseEHFrameHdr(data, s.Addr, Options{})
	if err != nil {
		t.Fatal(err)
	}
	frame := f.Section(".eh_frame").Addr
	if h.EHFramePtr != frame {
		t.Errorf("pointer to .eh_frame %#x, want %#x", h.EHFramePtr, frame)
	}
	if len(h.Entries) != len(table.FDEs()) {
		t.Fatalf("%d entries for %d FDEs", len(h.Entries), len(table.FDEs()))
	}
	for k, e := range h.Entries {
		if want := &table.FDEs()[k]; e.Start != want.Start || e.FDE != frame+want.Offset {
			t.Fatalf("entry %d: %#x at %#x, want %#x at %#x", k, e.Start, e.FDE, want.Start, frame+want.Offset)
		}
	}
	if e, ok := h.Find(h.Entries[3].Start + 1); !ok || e != h.Entries[3] {
		t.Errorf("Find gives %+v, %v", e, ok)
	}
	if e, ok := h.Find(h.Entries[0].Start - 1); ok {
		t.Errorf("Find before the first gives %+v", e)
	}
}

// BenchmarkParse and BenchmarkRows read the tables of a program with 76,000 FDEs.
func BenchmarkParse(b *testing.B) {
	data, addr := largeProgram(b)
	for b.Loop() {
		if _, err := ParseEHFrame(data, addr, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRows(b *testing.B) {
	data, addr := largeProgram(b)
	table, err := ParseEHFrame(data, addr, Options{})
	if err != nil {
		b.Fatal(err)
	}
	var m Machine
	rows := 0
	for b.Loop() {
		rows = 0
		for k := range table.FDEs() {
			if err := m.Rows(&table.FDEs()[k], func(*Row) bool { rows++; return true }); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(rows), "rows/op")
}

func BenchmarkInitialCFA(b *testing.B) {
	data, addr := largeProgram(b)
	table, err := ParseEHFrame(data, addr, Options{})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		for k := range table.FDEs() {
			table.FDEs()[k].InitialCFA()
		}
	}
}

func largeProgram(b *testing.B) ([]byte, uint64) {
	const path = "/usr/bin/node"
	if _, err := os.Stat(path); err != nil {
		b.Skipf("large program absent: %v", err)
	}
	f, err := elf.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	s := f.Section(".eh_frame")
	data, err := s.Data()
	if err != nil {
		b.Fatal(err)
	}
	return data, s.Addr
}
