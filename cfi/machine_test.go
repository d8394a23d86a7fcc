package cfi

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
)

// rowsOf runs a program over 0x1000..0x1100 and writes a line a row.
func rowsOf(t *testing.T, b *builder, initial []byte, program ...byte) (string, error) {
	t.Helper()
	cie := b.cie(1, "", 4, -8, 16, initial)
	b.fde(cie, 0x1000, 0x100, program...)
	var lines []string
	err := b.parse(t).FDEs()[0].Rows(func(r *Row) bool {
		lines = append(lines, fmt.Sprintf("%x-%x %s", r.Start, r.End, r.Format(namesOf(amd64Names))))
		return true
	})
	return strings.Join(lines, "\n"), err
}

// Every CIE here says: CFA = rsp+8, return address at CFA-8.
var plainStart = []byte{0x0c, 7, 8, 0x80 | 16, 1}

func TestInstructions(t *testing.T) {
	for _, test := range []struct {
		name    string
		program []byte
		rows    string
	}{
		{"nothing", []byte{0, 0, 0}, "1000-1100 cfa=rsp+8 ra=[cfa-8]"},
		{"advances are multiplied by the code alignment", []byte{0x41, 0x0e, 16, 0x02, 2, 0x0e, 24, 0x03, 3, 0, 0x0e, 32, 0x04, 4, 0, 0, 0, 0x0e, 40},
			"1000-1004 cfa=rsp+8 ra=[cfa-8]\n1004-100c cfa=rsp+16 ra=[cfa-8]\n100c-1018 cfa=rsp+24 ra=[cfa-8]\n1018-1028 cfa=rsp+32 ra=[cfa-8]\n1028-1100 cfa=rsp+40 ra=[cfa-8]"},
		{"advance by 8 bytes", []byte{0x1d, 2, 0, 0, 0, 0, 0, 0, 0, 0x0e, 16}, "1000-1008 cfa=rsp+8 ra=[cfa-8]\n1008-1100 cfa=rsp+16 ra=[cfa-8]"},
		{"set_loc", []byte{0x01, 0x20, 0x10, 0, 0, 0, 0, 0, 0, 0x0e, 16}, "1000-1020 cfa=rsp+8 ra=[cfa-8]\n1020-1100 cfa=rsp+16 ra=[cfa-8]"},
		{"an advance by nothing makes no row", []byte{0x0e, 16, 0x40, 0x0e, 24}, "1000-1100 cfa=rsp+24 ra=[cfa-8]"},
		{"rows end where the code ends", []byte{0x7f, 0x0e, 16, 0x41, 0x0e, 24}, "1000-10fc cfa=rsp+8 ra=[cfa-8]\n10fc-1100 cfa=rsp+16 ra=[cfa-8]"},
		{"a program may go on behind the code", []byte{0x7f, 0x0e, 16, 0x42, 0x0e, 24}, "1000-10fc cfa=rsp+8 ra=[cfa-8]\n10fc-1104 cfa=rsp+16 ra=[cfa-8]"},
		{"offset", []byte{0x86, 2}, "1000-1100 cfa=rsp+8 rbp=[cfa-16] ra=[cfa-8]"},
		{"offset_extended", []byte{0x05, 6, 2}, "1000-1100 cfa=rsp+8 rbp=[cfa-16] ra=[cfa-8]"},
		{"offset_extended_sf", []byte{0x11, 6, 0x7e}, "1000-1100 cfa=rsp+8 rbp=[cfa+16] ra=[cfa-8]"},
		{"GNU_negative_offset_extended", []byte{0x2f, 6, 2}, "1000-1100 cfa=rsp+8 rbp=[cfa+16] ra=[cfa-8]"},
		{"val_offset", []byte{0x14, 7, 0}, "1000-1100 cfa=rsp+8 rsp=cfa+0 ra=[cfa-8]"},
		{"val_offset_sf", []byte{0x15, 7, 0x7f}, "1000-1100 cfa=rsp+8 rsp=cfa+8 ra=[cfa-8]"},
		{"undefined", []byte{0x07, 16}, "1000-1100 cfa=rsp+8 ra=undefined"},
		{"same_value", []byte{0x08, 3}, "1000-1100 cfa=rsp+8 rbx=same ra=[cfa-8]"},
		{"register", []byte{0x09, 16, 2}, "1000-1100 cfa=rsp+8 ra=rcx"},
		{"expression", []byte{0x10, 3, 2, 0x73, 8}, "1000-1100 cfa=rsp+8 rbx=[expr(rbx+8)] ra=[cfa-8]"},
		{"val_expression", []byte{0x16, 3, 3, 0x73, 8, 0x06}, "1000-1100 cfa=rsp+8 rbx=expr(rbx+8; deref) ra=[cfa-8]"},
		{"def_cfa", []byte{0x0c, 6, 16}, "1000-1100 cfa=rbp+16 ra=[cfa-8]"},
		{"def_cfa_sf", []byte{0x12, 6, 0x7e}, "1000-1100 cfa=rbp+16 ra=[cfa-8]"},
		{"def_cfa_register", []byte{0x0d, 6}, "1000-1100 cfa=rbp+8 ra=[cfa-8]"},
		{"def_cfa_offset_sf", []byte{0x13, 1}, "1000-1100 cfa=rsp-8 ra=[cfa-8]"},
		{"def_cfa_expression", []byte{0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22},
			"1000-1100 cfa=expr(rsp+8; rip+0; 15; and; 11; ge; 3; shl; plus) ra=[cfa-8]"},
		{"register for a computed CFA", []byte{0x0e, 24, 0x0f, 1, 0x30, 0x41, 0x0d, 6}, "1000-1004 cfa=expr(0) ra=[cfa-8]\n1004-1100 cfa=rbp+24 ra=[cfa-8]"},
		{"remember and restore", []byte{0x0e, 16, 0x86, 2, 0x0a, 0x41, 0x0e, 8, 0xc6, 0x41, 0x0b},
			"1000-1004 cfa=rsp+16 rbp=[cfa-16] ra=[cfa-8]\n1004-1008 cfa=rsp+8 ra=[cfa-8]\n1008-1100 cfa=rsp+16 rbp=[cfa-16] ra=[cfa-8]"},
		{"remembered states nest", []byte{0x0a, 0x0e, 16, 0x0a, 0x0e, 24, 0x41, 0x0b, 0x41, 0x0b},
			"1000-1004 cfa=rsp+24 ra=[cfa-8]\n1004-1008 cfa=rsp+16 ra=[cfa-8]\n1008-1100 cfa=rsp+8 ra=[cfa-8]"},
		{"restore gives the CIE's rule", []byte{0x90, 4, 0x41, 0xd0, 0x86, 2, 0x41, 0x06, 6},
			"1000-1004 cfa=rsp+8 ra=[cfa-32]\n1004-1008 cfa=rsp+8 rbp=[cfa-16] ra=[cfa-8]\n1008-1100 cfa=rsp+8 ra=[cfa-8]"},
		{"GNU_args_size", []byte{0x2e, 32}, "1000-1100 cfa=rsp+8 ra=[cfa-8]"},
		{"registers are sorted", []byte{0x8f, 2, 0x83, 3, 0x86, 4}, "1000-1100 cfa=rsp+8 rbx=[cfa-24] rbp=[cfa-32] r15=[cfa-16] ra=[cfa-8]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := rowsOf(t, newBuilder(), plainStart, test.program...)
			if err != nil {
				t.Fatal(err)
			}
			if got != test.rows {
				t.Errorf("got\n%s\nwant\n%s", got, test.rows)
			}
		})
	}
}

func TestBadProgramsAreErrorsThatNameTheInstruction(t *testing.T) {
	for _, test := range []struct {
		name    string
		program []byte
		says    string
	}{
		{"unknown instruction", []byte{0x3f}, "unknown instruction 0x3f"},
		{"missing operand", []byte{0x0e}, "operand ends too early"},
		{"block too long", []byte{0x0f, 20, 0x77}, "operand ends too early"},
		{"endless number", []byte{0x0e, 0x80, 0x80}, "operand ends too early"},
		{"register number", []byte{0x0d, 0xff, 0xff, 0xff, 1}, "too large"},
		{"restore without remember", []byte{0x0b}, "without a remembered state"},
		{"too deep", bytes.Repeat([]byte{0x0a}, 65), "more than 64 remembered states"},
		{"location goes back", []byte{0x01, 0, 0x08, 0, 0, 0, 0, 0, 0}, "goes back"},
		{"location wraps", []byte{0x1d, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f}, "beyond the address space"},
		{"offset of a computed CFA", []byte{0x0f, 1, 0x30, 0x0e, 8}, "not a register and an offset"},
		{"too many registers", manyRegisters(), "more than 128 registers"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBuilder()
			b.opt.Name = "x.so"
			_, err := rowsOf(t, b, plainStart, test.program...)
			if err == nil {
				t.Fatal("no error")
			}
			for _, part := range []string{"cfi: x.so: .eh_frame: FDE at 0x", "instruction 0x", test.says} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not say %q", err, part)
				}
			}
			if _, _, ok := func() (uint32, int64, bool) { return b.parse(t).FDEs()[0].InitialCFA() }(); ok && strings.HasPrefix(test.says, "operand") {
				t.Error("InitialCFA accepts the program")
			}
		})
	}
}

func manyRegisters() []byte {
	var program []byte
	for k := range 200 {
		program = append(program, 0x05)
		program = append(binary.AppendUvarint(program, uint64(k)), 1)
	}
	return program
}

func TestRowsBeforeDamageAreKept(t *testing.T) {
	b := newBuilder()
	cie := b.cie(1, "", 1, -8, 16, plainStart)
	b.fde(cie, 0x1000, 0x100, 0x44, 0x0e, 16, 0x44, 0x3f)
	f := &b.parse(t).FDEs()[0]
	rows := 0
	if err := f.Rows(func(*Row) bool { rows++; return true }); err == nil || rows != 2 {
		t.Errorf("%d rows and error %v, want 2 and one", rows, err)
	}
	if row, err := f.RowAt(0x1005); err != nil || row.CFA.Offset != 16 {
		t.Errorf("RowAt before the damage: %+v, %v", row, err)
	}
	if _, err := f.RowAt(0x1008); err == nil {
		t.Error("RowAt behind the damage has no error")
	}
}

func TestBadCIEProgramIsTheErrorOfItsFDEs(t *testing.T) {
	for _, program := range [][]byte{{0x3f}, {0x41}, {0xc6}, {0x0b}} {
		b := newBuilder()
		b.fde(b.cie(1, "", 1, -8, 16, program), 0x1000, 0x10)
		f := &b.parse(t).FDEs()[0]
		err := f.Rows(func(*Row) bool { return true })
		if err == nil || !strings.Contains(err.Error(), "CIE at 0x0") {
			t.Errorf("program %x: error %v does not name the CIE", program, err)
		}
		if _, _, ok := f.InitialCFA(); ok {
			t.Errorf("program %x: InitialCFA gives one", program)
		}
	}
}

func TestReturnAddressSigningIsToggled(t *testing.T) {
	b := newBuilder()
	b.fde(b.cie(1, "", 1, -8, 30, []byte{0x0c, 31, 0}), 0x1000, 0x100, 0x44, 0x2d, 0x0a, 0x44, 0x2d, 0x44, 0x0b)
	var signed []bool
	if err := b.parse(t).FDEs()[0].Rows(func(r *Row) bool { signed = append(signed, r.RASigned); return true }); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(signed); got != "[false true false true]" {
		t.Errorf("signed %s", got)
	}
}

func TestMachineCarriesNothingOver(t *testing.T) {
	b := newBuilder()
	cie := b.cie(1, "", 1, -8, 16, plainStart)
	b.fde(cie, 0x1000, 0x10, 0x86, 2, 0x0a, 0x2e, 8, 0x2d, 0x0c, 6, 16)
	b.fde(cie, 0x2000, 0x10)
	var m Machine
	var last Row
	for k := range b.parse(t).FDEs() {
		if err := m.Rows(&b.parse(t).FDEs()[k], func(r *Row) bool { last = r.Clone(); return true }); err != nil {
			t.Fatal(err)
		}
	}
	if got := last.Format(nil); got != "cfa=r7+8 ra=[cfa-8]" || last.ArgsSize != 0 || last.RASigned {
		t.Errorf("second FDE: %s, args %d, signed %v", got, last.ArgsSize, last.RASigned)
	}
	if err := b.parse(t).FDEs()[1].Rows(func(r *Row) bool { return r.Reg(99).Kind == Unspecified && r.RA().Kind == Offset }); err != nil {
		t.Fatal(err)
	}
}
