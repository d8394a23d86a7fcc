//go:build linux

package main

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// hostileSection is a section of a made-up ELF file. What it claims to have beyond its
// data is a hole.
type hostileSection struct {
	name    string
	kind    elf.SectionType
	flags   elf.SectionFlag
	addr    uint64
	size    uint64 // that it claims; 0 for that of the data
	data    []byte
	link    uint32 // 0 is none, 1 the first of the list …
	entSize uint64
	packed  uint64 // not 0: the data is a zlib stream of so many bytes
}

// hostileFile writes an x86-64 ELF library.
func hostileFile(t *testing.T, sections []hostileSection, change func(header []byte)) string {
	t.Helper()
	le := binary.LittleEndian
	names := []byte{0}
	var headers, body bytes.Buffer
	headers.Write(make([]byte, 64))
	var holes []int
	const start = 0x1000
	at := uint64(start)
	offs, sizes := make([]uint64, len(sections)), make([]uint64, len(sections))
	for k := range sections {
		s := &sections[k]
		if s.packed > 0 {
			var head [24]byte
			le.PutUint32(head[:], uint32(elf.COMPRESS_ZLIB))
			le.PutUint64(head[8:], s.packed)
			le.PutUint64(head[16:], 1)
			s.data = append(head[:], s.data...)
			s.flags |= elf.SHF_COMPRESSED
		}
		if s.size > uint64(len(s.data)) {
			holes = append(holes, k)
			continue
		}
		offs[k], sizes[k] = at, uint64(len(s.data))
		body.Write(s.data)
		body.Write(make([]byte, -len(s.data)&15))
		at = start + uint64(body.Len())
	}
	var loads []hostileLoad
	sectionNames := make([]int, len(sections)+1)
	for k := range sections {
		sectionNames[k] = len(names)
		names = append(names, sections[k].name+"\x00"...)
	}
	sectionNames[len(sections)] = len(names)
	names = append(names, ".shstrtab\x00"...)
	namesAt := at
	body.Write(names)
	at = (namesAt + uint64(len(names)) + 15) &^ 15
	body.Write(make([]byte, at-namesAt-uint64(len(names))))
	tableAt := at
	at += uint64(64 * (len(sections) + 2))
	type hole struct {
		at   uint64
		data []byte
	}
	var written []hole
	for _, k := range holes {
		at = (at + 0xfff) &^ 0xfff
		offs[k], sizes[k] = at, sections[k].size
		written = append(written, hole{at, sections[k].data})
		at += sections[k].size
	}
	put := func(name int, s *hostileSection, off, size uint64, link uint32) {
		var h [64]byte
		le.PutUint32(h[:], uint32(name))
		le.PutUint32(h[4:], uint32(s.kind))
		le.PutUint64(h[8:], uint64(s.flags))
		le.PutUint64(h[16:], s.addr)
		le.PutUint64(h[24:], off)
		le.PutUint64(h[32:], size)
		le.PutUint32(h[40:], link)
		le.PutUint64(h[48:], 1)
		le.PutUint64(h[56:], s.entSize)
		headers.Write(h[:])
	}
	for k := range sections {
		s := &sections[k]
		put(sectionNames[k], s, offs[k], sizes[k], s.link)
		if s.flags&elf.SHF_ALLOC != 0 {
			perm := elf.PF_R
			if s.flags&elf.SHF_EXECINSTR != 0 {
				perm |= elf.PF_X
			}
			loads = append(loads, hostileLoad{perm, offs[k], s.addr, sizes[k]})
		}
	}
	put(sectionNames[len(sections)], &hostileSection{kind: elf.SHT_STRTAB}, namesAt, uint64(len(names)), 0)

	head := make([]byte, start)
	copy(head, "\x7fELF\x02\x01\x01")
	le.PutUint16(head[16:], uint16(elf.ET_DYN))
	le.PutUint16(head[18:], uint16(elf.EM_X86_64))
	le.PutUint32(head[20:], 1)
	le.PutUint64(head[32:], 64)
	le.PutUint64(head[40:], tableAt)
	le.PutUint16(head[52:], 64)
	le.PutUint16(head[54:], 56)
	le.PutUint16(head[56:], uint16(len(loads)))
	le.PutUint16(head[58:], 64)
	le.PutUint16(head[60:], uint16(len(sections)+2))
	le.PutUint16(head[62:], uint16(len(sections)+1))
	for k, l := range loads {
		p := head[64+56*k:]
		le.PutUint32(p, uint32(elf.PT_LOAD))
		le.PutUint32(p[4:], uint32(l.perm))
		le.PutUint64(p[8:], l.off)
		le.PutUint64(p[16:], l.addr)
		le.PutUint64(p[24:], l.addr)
		le.PutUint64(p[32:], l.size)
		le.PutUint64(p[40:], l.size)
		le.PutUint64(p[48:], 0x1000)
	}
	if change != nil {
		change(head)
	}
	path := filepath.Join(t.TempDir(), "hostile.so")
	f, err := os.Create(path)
	realtest.Must(t, err)
	_, err1 := f.Write(head)
	_, err2 := f.Write(body.Bytes())
	_, err3 := f.Write(headers.Bytes())
	realtest.Must(t, errors.Join(err1, err2, err3))
	for _, h := range written {
		_, err := f.WriteAt(h.data, int64(h.at))
		realtest.Must(t, err)
	}
	if info, err := f.Stat(); err == nil && uint64(info.Size()) < at {
		realtest.Must(t, f.Truncate(int64(at)))
	}
	realtest.Must(t, f.Close())
	return path
}

type hostileLoad struct {
	perm            elf.ProgFlag
	off, addr, size uint64
}

// packed repeats something up to a size, packed with zlib.
func packed(t *testing.T, what []byte, size int) (data []byte, whole uint64) {
	t.Helper()
	var b bytes.Buffer
	w, err := zlib.NewWriterLevel(&b, zlib.BestSpeed)
	realtest.Must(t, err)
	block := bytes.Repeat(what, max(1, (1<<20)/len(what)))
	for n := 0; n < size; n += len(block) {
		_, err := w.Write(block)
		realtest.Must(t, err)
		whole += uint64(len(block))
	}
	realtest.Must(t, w.Close())
	return b.Bytes(), whole
}

const (
	hostileCode   = 0x10000000
	hostileData   = 0x90000000
	hostileAlloc  = elf.SHF_ALLOC
	hostileExec   = elf.SHF_ALLOC | elf.SHF_EXECINSTR
	maxHostileRSS = 400 << 20 // the limit, and half as much again for what the garbage collector has not found yet
)

// symbolBytes is one function's symbol.
func symbolBytes(name uint32, addr, size uint64) []byte {
	var b [24]byte
	binary.LittleEndian.PutUint32(b[:], name)
	b[4], b[6] = byte(elf.STB_GLOBAL)<<4|byte(elf.STT_FUNC), 1
	binary.LittleEndian.PutUint64(b[8:], addr)
	binary.LittleEndian.PutUint64(b[16:], size)
	return b[:]
}

func TestHostileFilesStayWithinTheMemoryLimit(t *testing.T) {
	text := func(size uint64) hostileSection {
		return hostileSection{name: ".text", kind: elf.SHT_PROGBITS, flags: hostileExec, addr: hostileCode, size: size, data: []byte{0x90, 0xc3}}
	}
	symtab := func(symbols ...[]byte) []hostileSection {
		return []hostileSection{
			{name: ".symtab", kind: elf.SHT_SYMTAB, data: bytes.Join(append([][]byte{make([]byte, 24)}, symbols...), nil), link: 3, entSize: 24},
			{name: ".strtab", kind: elf.SHT_STRTAB, data: []byte("\x00f\x00")},
		}
	}
	pack := func(s hostileSection, what []byte, size int) hostileSection {
		s.data, s.packed = packed(t, what, size)
		return s
	}
	debug := func(name string) hostileSection { return hostileSection{name: name, kind: elf.SHT_PROGBITS} }
	// One abbreviation: a unit without attributes, with children; functions of it.
	abbrev := debug(".debug_abbrev")
	abbrev.data = []byte{1, 0x11, 1, 0, 0, 2, 0x2e, 0, 0x11, 0x01, 0x12, 0x0b, 0, 0, 0}
	unitHead := []byte{0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, 1}
	function := []byte{2, 0, 0, 0, 0x10, 0, 0, 0, 0, 1}
	lineHead := []byte{
		0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 1, 1, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0, 'a', 0, 0, 0, 0, 0,
	}
	unit := debug(".debug_info")
	{
		body := bytes.Repeat(function, 20<<20)
		head := bytes.Clone(unitHead)
		binary.LittleEndian.PutUint32(head, uint32(len(body)+len(head)-4))
		var b bytes.Buffer
		w, _ := zlib.NewWriterLevel(&b, zlib.BestSpeed)
		_, err1 := w.Write(head)
		_, err2 := w.Write(body)
		realtest.Must(t, errors.Join(err1, err2, w.Close()))
		unit.data, unit.packed = b.Bytes(), uint64(len(head)+len(body))
	}
	lines := debug(".debug_line")
	lineUnit := debug(".debug_info")
	{
		body := bytes.Repeat([]byte{0x20}, 200<<20) // rows
		head := bytes.Clone(lineHead)
		binary.LittleEndian.PutUint32(head, uint32(len(body)+len(head)-4))
		binary.LittleEndian.PutUint32(head[6:], uint32(len(head)-10))
		set := []byte{0, 9, 2, 0, 0, 0, 0x10, 0, 0, 0, 0}
		binary.LittleEndian.PutUint32(head, uint32(len(body)+len(head)+len(set)+3-4))
		var b bytes.Buffer
		w, _ := zlib.NewWriterLevel(&b, zlib.BestSpeed)
		_, err1 := w.Write(head)
		_, err2 := w.Write(set)
		_, err3 := w.Write(body)
		_, err4 := w.Write([]byte{0, 1, 1})
		realtest.Must(t, errors.Join(err1, err2, err3, err4, w.Close()))
		lines.data, lines.packed = b.Bytes(), uint64(len(head)+len(set)+len(body)+3)
		lineUnit.data = []byte{0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, 1, 0, 0, 0, 0}
		lineUnit.data[0] = 12
	}
	lineAbbrev := debug(".debug_abbrev")
	lineAbbrev.data = []byte{1, 0x11, 0, 0x10, 0x17, 0, 0, 0}
	tinyUnit := []byte{8, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, 1}
	fde := func() []byte { // a CIE, and FDEs of it
		cie := []byte{20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x00, 0x0c, 7, 8, 0x90, 1, 0, 0}
		return cie
	}()
	frames := hostileSection{name: ".eh_frame", kind: elf.SHT_PROGBITS, flags: hostileAlloc, addr: hostileData}
	{
		block := bytes.Clone(fde) // which comes anew, so that blocks are the same
		for k := range 64 {
			var f [28]byte
			binary.LittleEndian.PutUint32(f[:], 24)
			binary.LittleEndian.PutUint32(f[4:], uint32(len(block)+4))
			binary.LittleEndian.PutUint64(f[8:], hostileCode+uint64(k))
			binary.LittleEndian.PutUint64(f[16:], 1)
			block = append(block, f[:]...)
		}
		frames.data, frames.packed = packed(t, block, 200<<20)
	}
	zero := make([]byte, 1<<10)
	cases := []struct {
		name     string
		sections []hostileSection
		change   func([]byte)
	}{
		{"a function of 64 MiB", append([]hostileSection{text(64 << 20)}, symtab(symbolBytes(1, hostileCode, 64<<20))...), nil},
		{"64 functions of 1 MiB", append([]hostileSection{text(64 << 20)}, symtab(manySymbols(64, 1<<20)...)...), nil},
		{"100 GiB of code", append([]hostileSection{text(100 << 30)}, symtab(symbolBytes(1, hostileCode, 100<<30))...), nil},
		{"200 MiB of code without functions", []hostileSection{text(200 << 20)}, nil},
		{"100 GiB of symbols", []hostileSection{text(0), {name: ".symtab", kind: elf.SHT_SYMTAB, size: 100 << 30, link: 3, entSize: 24}, {name: ".strtab", kind: elf.SHT_STRTAB, data: zero}}, nil},
		{"150 MiB of symbols", []hostileSection{text(0), {name: ".symtab", kind: elf.SHT_SYMTAB, size: 150 << 20, link: 3, entSize: 24}, {name: ".strtab", kind: elf.SHT_STRTAB, data: zero}}, nil},
		{"packed symbols", []hostileSection{text(32 << 20), pack(hostileSection{name: ".symtab", kind: elf.SHT_SYMTAB, link: 3, entSize: 24}, symbolBytes(1, hostileCode+0x100, 1), 200<<20), {name: ".strtab", kind: elf.SHT_STRTAB, data: []byte("\x00f\x00")}}, nil},
		{"strings of 200 MiB", []hostileSection{text(0), {name: ".symtab", kind: elf.SHT_SYMTAB, data: symbolBytes(1, hostileCode, 1), link: 3, entSize: 24}, {name: ".strtab", kind: elf.SHT_STRTAB, size: 200 << 20}}, nil},
		{"notes of 100 GiB", []hostileSection{text(0), {name: ".note", kind: elf.SHT_NOTE, flags: hostileAlloc, addr: hostileData, size: 100 << 30}}, nil},
		{".eh_frame of 100 GiB", []hostileSection{text(0), {name: ".eh_frame", kind: elf.SHT_PROGBITS, flags: hostileAlloc, addr: hostileData, size: 100 << 30}}, nil},
		{"packed FDEs", []hostileSection{text(32 << 20), frames}, nil},
		{"relocations of 200 MiB", []hostileSection{text(0), {name: ".rela.dyn", kind: elf.SHT_RELA, flags: hostileAlloc, addr: hostileData, size: 200 << 20, entSize: 24}}, nil},
		{"a line table for 100 GiB", []hostileSection{text(0), abbrev, {name: ".debug_info", kind: elf.SHT_PROGBITS, size: 100 << 30}}, nil},
		{"packed sections", []hostileSection{text(0), pack(debug(".debug_info"), zero, 200<<20), pack(debug(".debug_abbrev"), zero, 200<<20), pack(debug(".debug_line"), zero, 200<<20), pack(debug(".debug_str"), zero, 200<<20), pack(debug(".debug_ranges"), zero, 200<<20)}, nil},
		{"small units", []hostileSection{text(0), abbrev, pack(debug(".debug_info"), tinyUnit, 200<<20)}, nil},
		{"a unit of many functions", []hostileSection{text(32 << 20), abbrev, unit}, nil},
		{"many rows", []hostileSection{text(4 << 30), lineAbbrev, lineUnit, lines}, nil},
		{"many abbreviations", []hostileSection{text(0), pack(debug(".debug_abbrev"), []byte{1, 0x2e, 0, 0, 0}, 200<<20), lineUnit}, nil},
		{"Go's functions", []hostileSection{text(32 << 20), {name: ".gopclntab", kind: elf.SHT_PROGBITS, flags: hostileAlloc, addr: hostileData, size: 200 << 20, data: pclntabHead(16 << 20)}, {name: ".go.buildinfo", kind: elf.SHT_PROGBITS, flags: hostileAlloc, addr: hostileData + 0x20000000, data: buildInfo()}}, nil},
		{"section headers without end", nil, func(head []byte) { // in a hole
			binary.LittleEndian.PutUint64(head[40:], 0x100000)
			binary.LittleEndian.PutUint16(head[60:], 0)
		}},
		{"program headers without end", []hostileSection{text(1 << 30)}, func(head []byte) {
			binary.LittleEndian.PutUint16(head[56:], 0xfffe)
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			change := c.change
			if change == nil {
				change = func([]byte) {}
			}
			path := hostileFile(t, c.sections, change)
			if c.name == "section headers without end" {
				f, err := os.OpenFile(path, os.O_RDWR, 0)
				realtest.Must(t, err)
				var first [64]byte
				binary.LittleEndian.PutUint64(first[32:], 1<<30)
				_, err = f.WriteAt(first[:], 0x100000)
				realtest.Must(t, errors.Join(err, f.Truncate(100<<30), f.Close()))
			}
			for _, args := range [][]string{
				{"functions", path}, {"symbols", "build", "-o", "-", path}, {"symbols", "info", path}, {"symbols", "lookup", path, "0x10000000"},
				{"cfi", "lint", path}, {"cfi", "eval", path, "0x10000000"}, {"symbolize", "--image", path, "-"},
			} {
				r, peak := realtest.CallreelPeak(t, args...)
				said, _, _ := strings.Cut(r.Stderr, "\n")
				t.Logf("%-60s exit %d, %4d MiB, %.200s", strings.Join(args[:2], " "), r.Code, peak>>20, said)
				if peak > maxHostileRSS {
					t.Errorf("%s: %d MiB at the most", strings.Join(args, " "), peak>>20)
				}
				if strings.Contains(r.Stderr, "goroutine ") || r.Code > exitNotPermitted {
					t.Errorf("%s: exit %d\n%.2000s", strings.Join(args, " "), r.Code, r.Stderr)
				}
			}
		})
	}
}

// manySymbols are symbols of functions next to each other.
func manySymbols(n int, size uint64) (list [][]byte) {
	for k := range n {
		list = append(list, symbolBytes(1, hostileCode+uint64(k)*size, size))
	}
	return list
}

// pclntabHead is the head of a table of n functions, all of nothing.
func pclntabHead(n uint64) []byte {
	var b [72]byte
	le := binary.LittleEndian
	le.PutUint32(b[:], 0xFFFFFFF1)
	b[6], b[7] = 1, 8
	le.PutUint64(b[8:], n)
	le.PutUint64(b[24:], hostileCode)
	le.PutUint64(b[32:], 4096)
	le.PutUint64(b[64:], 8192)
	return b[:]
}

// buildInfo says that go1.26.0 has built the program.
func buildInfo() []byte {
	b := make([]byte, 32)
	copy(b, "\xff Go buildinf:")
	b[14], b[15] = 8, 2
	b = append(b, 8)
	b = append(b, "go1.26.0"...)
	return append(b, 0)
}
