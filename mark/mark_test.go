package mark

import "testing"

func TestNobodyRecords(t *testing.T) {
	if Recording() {
		t.Error("somebody records")
	}
	if n := testing.AllocsPerRun(100, func() {
		Begin("span")
		Counter("counter", 1)
		BeginText("text", "text")
		End()
		Start("another").End()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkBegin(b *testing.B) {
	for b.Loop() {
		Begin("span")
	}
}

func BenchmarkSpan(b *testing.B) {
	for b.Loop() {
		s := Start("span")
		s.End()
	}
}

func BenchmarkCounter(b *testing.B) {
	v := int64(0)
	for b.Loop() {
		v++
		Counter("queue", v)
	}
}
