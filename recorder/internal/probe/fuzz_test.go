package probe

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/callreel/callreel/object"
)

// tinyELF makes a shared library of one executable section at 0x1000 that holds code, with the symbols given.
func tinyELF(code []byte, symbols []tinySymbol) []byte {
	const base = 0x1000
	le := binary.LittleEndian
	names := []byte{0}
	table := make([]byte, 24)
	for _, s := range symbols {
		var e [24]byte
		le.PutUint32(e[0:], uint32(len(names)))
		e[4] = 0x12 // global function
		le.PutUint16(e[6:], 1)
		le.PutUint64(e[8:], s.addr)
		le.PutUint64(e[16:], s.size)
		table = append(table, e[:]...)
		names = append(append(names, s.name...), 0)
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

type tinySymbol struct {
	name       string
	addr, size uint64
}

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
	hosts := map[uint64]bool{} // islands behind the jumps of windows
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
	var selected []Selected
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
				if !hosts[s.Addr+nearJump] || s.Size < 2*nearJump {
					t.Fatalf("site %#x of %d bytes hosts an island that nobody has", s.Addr, s.Size)
				}
			case s.Hosted:
			case s.Island != 0:
				take(s.Island, s.Island+nearJump)
			}
			if at, n := s.Patch(); at < s.Addr || at+uint64(n) > s.End() || crossesPage(at, n) {
				t.Fatalf("site %#x to %#x changes %d bytes at %#x", s.Addr, s.End(), n, at)
			}
		}
		if f.Tier != TierNone {
			selected = append(selected, Selected{Function: f, Image: im, ID: uint32(i + 1)})
		}
	}
	if hosting != len(hosts) {
		t.Fatalf("%d sites host islands, %d islands are hosted", hosting, len(hosts))
	}
	code, err := Compile(0x100000, Config{Gate: 0x200000, Ring: 1 << 40}, selected, nil)
	if err != nil {
		return // operands that lead nowhere near
	}
	for _, p := range code.Patches {
		if len(p.New()) == 0 || bytes.Equal(p.Old(), p.New()) {
			t.Fatalf("the patch at %#x makes % x of % x", p.Addr, p.New(), p.Old())
		}
	}
}

// FuzzPlan plans images of made-up code, and changed copies of a real one.
func FuzzPlan(f *testing.F) {
	f.Add([]byte{0x55, 0x48, 0x89, 0xE5, 0x74, 0x02, 0x5D, 0xC3, 0xFF, 0xE0, 0xE9, 0, 0, 0, 0}, uint64(3), true)
	f.Add([]byte{0x48, 0x8D, 0x15, 0, 1, 0, 0, 0x48, 0x63, 0x04, 0x82, 0x48, 0x01, 0xD0, 0xFF, 0xE0, 0xC3}, uint64(1), true)
	f.Add([]byte{1, 2, 3}, uint64(7), false)
	real := realBytes()
	f.Fuzz(func(t *testing.T, code []byte, seed uint64, made bool) {
		r := rand.New(rand.NewPCG(seed, 1))
		var data []byte
		if made || len(real) == 0 {
			code = append(code, make([]byte, 16)...)
			var symbols []tinySymbol
			for range r.IntN(8) {
				symbols = append(symbols, tinySymbol{[]string{"f", "f.cold", "g", "g.cold.1", ""}[r.IntN(5)], 0x1000 + r.Uint64N(uint64(len(code))), r.Uint64N(uint64(len(code)))})
			}
			data = tinyELF(code, symbols)
		} else {
			data = bytes.Clone(real)
			for i := 0; i+1 < len(code) && i < 64; i += 2 {
				data[(r.IntN(len(data))&^0xFF|int(code[i]))%len(data)] = code[i+1]
			}
		}
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

// realBytes is a small real library.
func realBytes() []byte {
	for _, pattern := range []string{"/lib/x86_64-linux-gnu/libdl.so.2", "/lib/x86_64-linux-gnu/libthread_db.so.1", "/lib64/libthread_db.so.1", "/usr/lib/libthread_db.so.1"} {
		if path, err := filepath.EvalSymlinks(pattern); err == nil {
			if data, err := os.ReadFile(path); err == nil {
				return data
			}
		}
	}
	return nil
}

// What overlaps, or refers to itself, a hundred thousand times must still be planned in a moment.
func TestHostileImagesTakeBoundedTime(t *testing.T) {
	const n = 100000
	repeat := func(b ...byte) []byte { return bytes.Repeat(b, n) }
	every := func(step, size uint64, count int) (s []tinySymbol) {
		for i := range count {
			s = append(s, tinySymbol{"f", 0x1000 + uint64(i)*step, size})
		}
		return s
	}
	for name, c := range map[string]struct {
		code    []byte
		symbols []tinySymbol
	}{
		"symbols that all reach to the end":  {repeat(0x90, 0x90, 0x90, 0xC3), every(4, 4*n, n)},
		"one symbol over all others":         {repeat(0x90, 0x90, 0x90, 0xC3), append(every(4, 2, n), tinySymbol{"all", 0x1000, 4 * n})},
		"symbols of one byte each":           {repeat(0xC3), every(1, 1, n)},
		"symbols without a size":             {repeat(0x90, 0x90, 0x90, 0xC3), every(4, 0, n)},
		"one function of returns":            {repeat(0x90, 0x90, 0x90, 0x90, 0x90, 0xC3), every(0, 6*n, 1)},
		"one function of short exits":        {repeat(0x7F, 0x80, 0x90), every(0, 3*n, 1)},
		"one function of indirect jumps":     {repeat(0x48, 0x01, 0xC8, 0xFF, 0xE0), every(0, 5*n, 1)},
		"indirect jumps to one place":        {repeat(0xFF, 0xE0, 0xEB, 0xFC), every(0, 4*n, 1)},
		"tables found at the end":            {tableJumps(n), every(0, uint64(7*n+9), 1)},
		"operands over the whole image":      {repeat(0x48, 0x8D, 0x05, 0, 0, 0, 0), every(0, 7*n, 1)},
		"operands in many functions":         {repeat(0x48, 0x8D, 0x05, 0xF0, 0xFF, 0xFF, 0xFF, 0xC3), every(8, 8, n)},
		"functions that jump into the first": {jumpsTo(n, 2), every(5, 5, n)},
		"cold parts of one function":         {jumpsTo(n, 0), coldParts(n)},
		"padding, short functions":           {repeat(0xC3, 0x90, 0x90, 0x90, 0xC3, 0xC3), every(6, 1, n)},
		"zeros":                              {make([]byte, 4*n), every(0, 4*n, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			data := tinyELF(c.code, c.symbols)
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

// jumpsTo is n jumps of 5 bytes each, all to the same offset.
func jumpsTo(n, offset int) []byte {
	code := make([]byte, 0, 5*n)
	for i := range n {
		code = append(code, 0xE9)
		code = binary.LittleEndian.AppendUint32(code, uint32(int32(offset-5*(i+1))))
	}
	return code
}

// tableJumps is n indirect jumps by a table whose address is loaded behind them all; it is the code itself.
func tableJumps(n int) []byte {
	code := bytes.Repeat([]byte{0x48, 0x01, 0xD0, 0x3E, 0xFF, 0xE0, 0x90}, n)
	code = append(code, 0x48, 0x8D, 0x15)
	code = binary.LittleEndian.AppendUint32(code, 0)
	return append(code, 0, 0, 0, 0, 0xC3, 0xC3)
}

func coldParts(n int) []tinySymbol {
	s := []tinySymbol{{"f", 0x1000, 5}}
	for i := 1; i < n; i++ {
		s = append(s, tinySymbol{"f.cold", 0x1000 + 5*uint64(i), 5})
	}
	return s
}
