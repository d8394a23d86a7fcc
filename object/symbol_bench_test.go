package object

import "testing"

// BenchmarkSymbols reads the symbols of a program with 180,000 of them, from
// opening the file on.
func BenchmarkSymbols(b *testing.B) {
	const path = "/usr/bin/node"
	for b.Loop() {
		i, err := Open(path)
		if err != nil {
			b.Skipf("large program absent: %v", err)
		}
		if _, err := i.Symbols(); err != nil {
			b.Fatal(err)
		}
		i.Close()
	}
}
