package amd64

import (
	"testing"

	"golang.org/x/arch/x86/x86asm"
)

// decoders are ours, in both of its forms, and x86asm as a measure. Each decodes what code begins with and returns its length.
var decoders = []struct {
	name   string
	decode func(i *Inst, code []byte) (int, error)
}{
	{"ours", func(i *Inst, code []byte) (int, error) {
		err := DecodeTo(i, code)
		return int(i.Len), err
	}},
	{"by-value", func(_ *Inst, code []byte) (int, error) {
		i, err := Decode(code)
		return int(i.Len), err
	}},
	{"x86asm", func(_ *Inst, code []byte) (int, error) {
		i, err := x86asm.Decode(code, 64)
		return i.Len, err
	}},
}

// sweep decodes text from one end to the other and returns how many instructions that were.
func sweep(decode func(i *Inst, code []byte) (int, error), text []byte) (n int) {
	var i Inst
	for at := 0; at < len(text); {
		size, err := decode(&i, text[at:])
		if err != nil {
			at++
			continue
		}
		at += size
		n++
	}
	return n
}

// BenchmarkDecode decodes libc's .text. The figure is ns/inst, of wall time.
func BenchmarkDecode(b *testing.B) {
	text, _ := textOf(b, libc)
	for _, d := range decoders {
		b.Run(d.name, func(b *testing.B) {
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				n += sweep(d.decode, text)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/inst")
		})
	}
}
