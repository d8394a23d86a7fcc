package testimage

import "encoding/binary"

// Tiny makes a shared library of one executable section at 0x1000 that holds code, with the symbols given.
func Tiny(code []byte, symbols []Symbol) []byte {
	const base = 0x1000
	le := binary.LittleEndian
	names := []byte{0}
	table := make([]byte, 24)
	for _, s := range symbols {
		var e [24]byte
		le.PutUint32(e[0:], uint32(len(names)))
		e[4] = 0x12 // global function
		le.PutUint16(e[6:], 1)
		le.PutUint64(e[8:], s.Addr)
		le.PutUint64(e[16:], s.Size)
		table = append(table, e[:]...)
		names = append(append(names, s.Name...), 0)
	}
	sectionNames := []byte("\x00.text\x00.symtab\x00.strtab\x00.shstrtab\x00")
	file := make([]byte, base)
	file = append(file, code...)
	place := func(b []byte) (off uint64) {
		for len(file)%8 != 0 {
			file = append(file, 0)
		}
		off = uint64(len(file))
		file = append(file, b...)
		return off
	}
	symOff, strOff, shOff := place(table), place(names), place(sectionNames)
	var headers []byte
	section := func(name, kind uint32, flags, addr, off, size uint64, link uint32, entry uint64) {
		var h [64]byte
		le.PutUint32(h[0:], name)
		le.PutUint32(h[4:], kind)
		le.PutUint64(h[8:], flags)
		le.PutUint64(h[16:], addr)
		le.PutUint64(h[24:], off)
		le.PutUint64(h[32:], size)
		le.PutUint32(h[40:], link)
		le.PutUint64(h[56:], entry)
		headers = append(headers, h[:]...)
	}
	section(0, 0, 0, 0, 0, 0, 0, 0)
	section(1, 1, 6, base, base, uint64(len(code)), 0, 0)
	section(7, 2, 0, 0, symOff, uint64(len(table)), 3, 24)
	section(15, 3, 0, 0, strOff, uint64(len(names)), 0, 0)
	section(23, 3, 0, 0, shOff, uint64(len(sectionNames)), 0, 0)
	at := place(headers)
	copy(file, "\x7fELF\x02\x01\x01")
	le.PutUint16(file[16:], 3)  // shared
	le.PutUint16(file[18:], 62) // x86-64
	le.PutUint32(file[20:], 1)
	le.PutUint64(file[32:], 64) // program headers
	le.PutUint64(file[40:], at)
	le.PutUint16(file[52:], 64)
	le.PutUint16(file[54:], 56)
	le.PutUint16(file[56:], 1)
	le.PutUint16(file[58:], 64)
	le.PutUint16(file[60:], 5)
	le.PutUint16(file[62:], 4)
	ph := file[64:]
	le.PutUint32(ph[0:], 1) // load
	le.PutUint32(ph[4:], 5) // r-x
	le.PutUint64(ph[32:], uint64(len(file)))
	le.PutUint64(ph[40:], uint64(len(file)))
	return file
}

// Symbol is one of a global function, or of what is said to be one.
type Symbol struct {
	Name       string
	Addr, Size uint64
}
