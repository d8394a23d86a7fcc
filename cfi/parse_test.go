package cfi

import (
	"encoding/binary"
	"strings"
	"testing"
)

func TestFormsOfRecords(t *testing.T) {
	for _, test := range []struct {
		name    string
		version uint8
		set     func(b *builder)
	}{
		{".eh_frame", 1, func(*builder) {}},
		{".eh_frame, 64-bit lengths", 1, func(b *builder) { b.wide = true }},
		{".eh_frame, version 3", 3, func(*builder) {}},
		{".debug_frame, version 1", 1, func(b *builder) { b.eh = false }},
		{".debug_frame, version 3", 3, func(b *builder) { b.eh = false }},
		{".debug_frame, version 4", 4, func(b *builder) { b.eh = false }},
		{".debug_frame, 64-bit DWARF", 4, func(b *builder) { b.eh, b.wide = false, true }},
		{"big-endian", 1, func(b *builder) { b.order, b.opt.ByteOrder = binary.BigEndian, binary.BigEndian }},
		{"32-bit addresses", 1, func(b *builder) { b.opt.AddrSize = 4 }},
		{"big-endian .debug_frame, 32 bits", 4, func(b *builder) {
			b.order, b.opt.ByteOrder, b.opt.AddrSize, b.eh = binary.BigEndian, binary.BigEndian, 4, false
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBuilder()
			test.set(b)
			cie := b.cie(test.version, "", 1, -8, 16, plainStart)
			b.fde(cie, 0x2000, 0x20, 0x44, 0x0e, 16)
			b.data = append(b.data, 0, 0, 0, 0) // a terminator in the middle
			b.fde(cie, 0x1000, 0x10)
			table := b.parse(t)
			fdes := table.FDEs()
			if len(fdes) != 2 || fdes[0].Start != 0x1000 || fdes[0].End != 0x1010 || fdes[1].Start != 0x2000 || fdes[1].End != 0x2020 {
				t.Fatalf("FDEs %+v", fdes)
			}
			c := fdes[1].CIE
			if c.Version != test.version || c.CodeAlign != 1 || c.DataAlign != -8 || c.RAReg != 16 || c.Offset != cie {
				t.Errorf("CIE %+v", c)
			}
			row, err := fdes[1].RowAt(0x2010)
			if err != nil || row.Format(nil) != "cfa=r7+16 ra=[cfa-8]" {
				t.Errorf("row %s, %v", row.Format(nil), err)
			}
		})
	}
}

func TestAugmentations(t *testing.T) {
	b := newBuilder()
	b.addr = 0x10000
	// P: indirect, pc-relative; its four bytes stand at 0x13 of the section.
	cie := b.cieZ("zPLRS", []byte{0x9b, 0x00, 0x01, 0, 0, 0x1b, 0x1b}, plainStart)
	pointers := func(place uint64, pcrel ...uint32) (out []byte) {
		for k, v := range pcrel {
			if k != 1 { // the length is not relative
				v -= uint32(place) + 4*uint32(k)
				if k == 2 {
					v -= 1 // the augmentation's length stands before
				}
			}
			out = b.order.AppendUint32(out, v)
			if k == 1 {
				out = append(out, 4)
			}
		}
		return out
	}
	body := b.id(nil, b.back(cie))
	body = append(body, pointers(b.addr+uint64(len(b.data))+8, 0x5000, 0x40, 0x7000)...)
	b.record(body)
	f := b.parse(t).FDEs()[0]
	if f.Start != 0x5000 || f.End != 0x5040 || f.LSDA != 0x7000 {
		t.Errorf("FDE %#x..%#x, LSDA %#x", f.Start, f.End, f.LSDA)
	}
	if !f.CIE.SignalFrame || !f.CIE.PersonalityIndirect || f.CIE.Personality != 0x10100+4+4+1+6+3+1+1 {
		t.Errorf("CIE %+v", f.CIE)
	}
}

func TestDamagedRecordsCostOnlyThemselves(t *testing.T) {
	b := newBuilder()
	b.opt.Name = "x.so"
	good := b.cie(1, "", 1, -8, 16, plainStart)
	b.fde(good, 0x1000, 0x10)
	bad := b.cie(9, "", 1, -8, 16, nil)           // unknown version
	b.fde(bad, 0x2000, 0x10)                      // of a damaged CIE
	strange := b.cieZ("zQ", []byte{1}, nil)       // unknown augmentation
	b.record([]byte{1, 2})                        // too short for a CIE pointer
	b.fde(good, ^uint64(0)-4, 0x10)               // wraps around
	b.record(b.order.AppendUint32(nil, 0x7fffff)) // CIE before the section
	b.fde(good, 0x3000, 0x10)
	cut := b.fde(good, 0x4000, 0x10)
	b.data = b.data[:len(b.data)-3]
	table := b.table(t)
	if fdes := table.FDEs(); len(fdes) != 2 || fdes[0].Start != 0x1000 || fdes[1].Start != 0x3000 {
		t.Errorf("FDEs %+v", fdes)
	}
	lost := make(map[uint64]string)
	for _, d := range table.Damage() {
		lost[d.Offset] = d.Err.Error()
	}
	if len(lost) != 7 || !strings.Contains(lost[bad], "version 9") || !strings.Contains(lost[strange], `"zQ"`) || !strings.Contains(lost[cut], "beyond the section's end") {
		t.Errorf("damage %v", lost)
	}
	if err := table.Err(); err == nil || !strings.Contains(err.Error(), "cfi: x.so: .eh_frame: 7 damaged records, the first at 0x") {
		t.Errorf("error %v", err)
	}
}

func TestBadOptionsAndHeadersAreRefused(t *testing.T) {
	if _, err := ParseEHFrame(nil, 0, Options{AddrSize: 3}); err == nil {
		t.Error("an address size of 3 is accepted")
	}
	for _, data := range []string{
		"", "\x01\x1b\x03", "\x02\x1b\x03\x3b\x00\x00\x00\x00\x00\x00\x00\x00", // version
		"\x01\x1b\x03\x3b\x00\x00\x00",                                     // pointer cut
		"\x01\x1b\x03\x3b\x00\x00\x00\x00\xff\xff\xff\x7f",                 // count
		"\x01\x1b\x03\x3b\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00", // entry cut
	} {
		if h, err := ParseEHFrameHdr([]byte(data), 0x1000, Options{Name: "x.so"}); err == nil {
			t.Errorf("header %x gives %+v", data, h)
		} else if !strings.HasPrefix(err.Error(), "cfi: x.so: .eh_frame_hdr: ") {
			t.Errorf("header %x: error %q", data, err)
		}
	}
	if h, err := ParseEHFrameHdr([]byte("\x01\x1b\xff\xff\x00\x01\x00\x00"), 0x1000, Options{}); err != nil || h.EHFramePtr != 0x1104 || len(h.Entries) != 0 {
		t.Errorf("header without a table: %+v, %v", h, err)
	}
}

// FuzzEHFrame reads arbitrary bytes in every form and runs all programs.
func FuzzEHFrame(f *testing.F) {
	b := newBuilder()
	cie := b.cie(1, "", 1, -8, 16, plainStart)
	b.fde(cie, 0x1000, 0x100, 0x41, 0x0e, 16, 0x86, 2, 0x0a, 0x41, 0x0c, 6, 16, 0x0f, 2, 0x77, 8, 0x41, 0x0b, 0x10, 3, 2, 0x73, 0)
	f.Add(b.data, byte(0))
	z := newBuilder()
	z.fde(z.cieZ("zPLRS", []byte{0x9b, 0, 1, 0, 0, 0x1b, 0x00}, plainStart), 0x5000, 0x40, 0)
	f.Add(z.data, byte(0))
	d := newBuilder()
	d.eh, d.wide = false, true
	d.fde(d.cie(4, "", 1, -8, 16, plainStart), 0x1000, 0x100, 0x41, 0x0e, 16)
	f.Add(d.data, byte(1))
	f.Add([]byte("\x01\x1b\x03\x3b\x00\x01\x00\x00\x01\x00\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00"), byte(0))
	f.Fuzz(func(t *testing.T, data []byte, form byte) {
		opt := Options{ByteOrder: binary.LittleEndian, AddrSize: 8}
		if form&2 != 0 {
			opt.ByteOrder = binary.BigEndian
		}
		if form&4 != 0 {
			opt.AddrSize = 4
		}
		read := ParseEHFrame
		if form&1 != 0 {
			read = ParseDebugFrame
		}
		if h, err := ParseEHFrameHdr(data, 0x1000, opt); err == nil && len(h.Entries) > len(data) {
			t.Errorf("%d entries from %d bytes", len(h.Entries), len(data))
		}
		table, err := read(data, 0x1000, opt)
		if err != nil {
			t.Fatal(err)
		}
		var m Machine
		for k := range table.FDEs() {
			fde := &table.FDEs()[k]
			if k > 0 && table.FDEs()[k-1].Start > fde.Start {
				t.Fatal("the FDEs are not sorted")
			}
			if found, ok := table.Find(fde.Start); ok && !found.Contains(fde.Start) || !ok && fde.Start < fde.End {
				t.Fatalf("Find(%#x) = %+v, %v", fde.Start, found, ok)
			}
			checkRows(t, &m, fde)
		}
	})
}

// checkRows checks the rows of an FDE against what Rows and InitialCFA promise.
func checkRows(t *testing.T, m *Machine, f *FDE) {
	at := f.Start
	first := true
	reg, off, ok := f.InitialCFA()
	err := m.Rows(f, func(r *Row) bool {
		if r.Start != at || r.End <= r.Start {
			t.Fatalf("row %#x..%#x, want one from %#x on", r.Start, r.End, at)
		}
		at = r.End
		if first && (ok != (r.CFA.Kind == RegOffset) || ok && (reg != uint32(r.CFA.Reg) || off != r.CFA.Offset)) {
			t.Fatalf("InitialCFA r%d%+d, %v, but the row says %v", reg, off, ok, r.CFA)
		}
		first = false
		for k := range r.Regs {
			if k > 0 && r.Regs[k-1].Reg >= r.Regs[k].Reg {
				t.Fatalf("registers out of order: %s", r.Format(nil))
			}
		}
		_ = r.Format(nil)
		return true
	})
	if err == nil && at < f.End {
		t.Fatalf("rows end at %#x before %#x", at, f.End)
	}
}
