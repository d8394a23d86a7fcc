package arm64

import "testing"

// BenchmarkDecode decodes random words of the base instruction set and of all. The figure is ns/inst, of wall time.
func BenchmarkDecode(b *testing.B) {
	words := randomOf(1<<16, 3)
	b.ReportAllocs()
	var i Inst
	n := 0
	for b.Loop() {
		for _, w := range words {
			_ = DecodeWord(&i, w)
		}
		n += len(words)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/inst")
}
