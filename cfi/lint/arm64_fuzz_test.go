package lint

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/callreel/callreel/cfi"
	"github.com/callreel/callreel/isa/arm64"
)

// FuzzARM64 follows any code with any rows.
func FuzzARM64(f *testing.F) {
	words := func(list ...uint32) (b []byte) {
		for _, w := range list {
			b = binary.LittleEndian.AppendUint32(b, w)
		}
		return b
	}
	f.Add(words(0xA9BF7BFD, 0x910003FD, 0x94000000, 0xA8C17BFD, 0xD65F03C0), []byte{0x41, 0x0e, 0x10, 0x9d, 2, 0x9e, 1, 0x43, 0xde, 0xdd, 0x0e, 0})
	f.Add(words(0xD503233F, 0xD10083FF, 0x910083FF, 0xD50323BF, 0xD65F03C0), []byte{0x41, 0x2d, 0x41, 0x0e, 32, 0x41, 0x0e, 0, 0x41, 0x2d})
	f.Add(words(0x7100081F, 0x54000108, 0x10000001, 0x38604822, 0x10000063, 0x8B228862, 0xD61F0040, 0xD503201F, 0xD65F03C0), []byte{})
	f.Add(words(0x6DBF27E8, 0x927AE93F, 0x1E604008, 0xD2824690, 0xCB3063FF, 0xEB2963FF, 0x54FFFFC1, 0xD65F0BFF), []byte{0x41, 0x0f, 3, 0x8f, 0x10, 0x06})
	f.Fuzz(func(t *testing.T, code, program []byte) {
		const start, most = 0x10000, 1 << 12
		if len(code) > most || len(program) > most {
			return
		}
		table, err := cfi.ParseEHFrame(frameOf(start, uint32(len(code)), program), 0x1000, cfi.Options{})
		if err != nil || len(table.FDEs()) != 1 {
			return
		}
		p := newARM64()
		l := &linter{table: table, fdes: table.FDEs()}
		var m cfi.Machine
		left := 1 << 16
		rows, _ := rowsOf(&m, &l.fdes[0], &left)
		read := func(addr, n uint64) ([]byte, error) {
			if off := addr - start; off < uint64(len(code)) && n <= uint64(len(code))-off {
				return code[off:][:n], nil
			}
			return nil, errors.New("nothing is there")
		}
		k := checker{read: read, described: func(addr uint64) bool { return addr-start < uint64(len(code)) },
			symbolsEnd: func(uint64, uint64) uint64 { return 0 }, follows: func(uint64, uint64) bool { return true }}
		for _, entered := range []bool{true, false} {
			fn := &function{p: p, parts: []part{{start: start, end: start + uint64(len(code)), code: code, rows: rows, abiEntry: entered, bKey: len(program)%2 == 1}}}
			for _, x := range k.check(fn) {
				if x.Address < start || x.Address > start+uint64(len(code)) || x.Says == "" || x.Truth == "" {
					t.Fatalf("%+v", x)
				}
			}
		}
		var in inst
		for at := 0; at+arm64.Len <= len(code); at += arm64.Len {
			if p.decode(&in, code[at:], start+uint64(at)) && (in.size != arm64.Len || in.direct && in.way == goesOn) {
				t.Fatalf("%+v", in)
			}
		}
	})
}

// frameOf is an .eh_frame with one FDE.
func frameOf(start uint64, size uint32, program []byte) []byte {
	b := []byte{0, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 4, 0x78, arm64.LR, 1, 0x00, 0x0c, arm64.SP, 0} // absolute addresses
	binary.LittleEndian.PutUint32(b, uint32(len(b)-4))
	at := len(b)
	b = append(b, 0, 0, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(at+4))
	b = binary.LittleEndian.AppendUint64(b, start)
	b = binary.LittleEndian.AppendUint64(b, uint64(size))
	b = append(append(b, 0), program...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	binary.LittleEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	return append(b, 0, 0, 0, 0)
}
