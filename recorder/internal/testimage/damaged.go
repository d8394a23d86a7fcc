package testimage

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// Small is a small real library's file, nil if there is none.
func Small() []byte {
	for _, pattern := range []string{"/lib/x86_64-linux-gnu/libdl.so.2", "/lib/x86_64-linux-gnu/libthread_db.so.1", "/lib/aarch64-linux-gnu/libthread_db.so.1", "/lib64/libthread_db.so.1", "/usr/lib/libthread_db.so.1"} {
		if path, err := filepath.EvalSymlinks(pattern); err == nil {
			if data, err := os.ReadFile(path); err == nil {
				return data
			}
		}
	}
	return nil
}

// Damaged is for fuzzing: an image of made-up code, or a changed copy of a real one, which may be empty.
func Damaged(real, code []byte, seed uint64, made bool) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	if made || len(real) == 0 {
		code = append(code, make([]byte, 16)...)
		var symbols []Symbol
		for range r.IntN(8) {
			symbols = append(symbols, Symbol{[]string{"f", "f.cold", "g", "g.cold.1", ""}[r.IntN(5)], 0x1000 + r.Uint64N(uint64(len(code))), r.Uint64N(uint64(len(code)))})
		}
		return Tiny(code, symbols)
	}
	data := bytes.Clone(real)
	for i := 0; i+1 < len(code) && i < 64; i += 2 {
		data[(r.IntN(len(data))&^0xFF|int(code[i]))%len(data)] = code[i+1]
	}
	return data
}
