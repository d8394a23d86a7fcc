package amd64

import (
	"testing"

	"golang.org/x/arch/x86/x86asm"
)

// BenchmarkDecode decodes real code and, as a measure, lets x86asm do the same. The figure is ns/inst.
func BenchmarkDecode(b *testing.B) {
	text, _ := textOf(b, libc)
	if len(text) > 1<<20 {
		text = text[:1<<20]
	}
	b.Run("ours", func(b *testing.B) {
		b.ReportAllocs()
		var i Inst
		n := 0
		for b.Loop() {
			for at := 0; at < len(text); {
				err := DecodeTo(&i, text[at:])
				if err != nil {
					at++
					continue
				}
				at += int(i.Len)
				n++
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/inst")
	})
	b.Run("ours by value", func(b *testing.B) {
		n := 0
		for b.Loop() {
			for at := 0; at < len(text); {
				i, err := Decode(text[at:])
				if err != nil {
					at++
					continue
				}
				at += int(i.Len)
				n++
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/inst")
	})
	b.Run("x86asm", func(b *testing.B) {
		n := 0
		for b.Loop() {
			for at := 0; at < len(text); {
				i, err := x86asm.Decode(text[at:], 64)
				if err != nil {
					at++
					continue
				}
				at += i.Len
				n++
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/inst")
	})
}
