package testimage

import (
	"bytes"
	"encoding/binary"
)

// Hostile are made-up images in which something overlaps, or refers to itself, a hundred thousand times.
func Hostile() map[string][]byte {
	const n = 100000
	repeat := func(b ...byte) []byte { return bytes.Repeat(b, n) }
	every := func(step, size uint64, count int) (s []Symbol) {
		for i := range count {
			s = append(s, Symbol{"f", 0x1000 + uint64(i)*step, size})
		}
		return s
	}
	images := map[string][]byte{}
	for name, c := range map[string]struct {
		code    []byte
		symbols []Symbol
	}{
		"symbols that all reach to the end":  {repeat(0x90, 0x90, 0x90, 0xC3), every(4, 4*n, n)},
		"one symbol over all others":         {repeat(0x90, 0x90, 0x90, 0xC3), append(every(4, 2, n), Symbol{"all", 0x1000, 4 * n})},
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
		images[name] = Tiny(c.code, c.symbols)
	}
	return images
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

func coldParts(n int) []Symbol {
	s := []Symbol{{"f", 0x1000, 5}}
	for i := 1; i < n; i++ {
		s = append(s, Symbol{"f.cold", 0x1000 + 5*uint64(i), 5})
	}
	return s
}
