package hugepage

import (
	"testing"
	"unsafe"
)

func TestASliceIsOfZeroes(t *testing.T) {
	for _, n := range []int{0, 1, 4096, 5 << 20} {
		s := Make[uint64](n)
		if len(s) != n {
			t.Fatalf("%d elements of %d", len(s), n)
		}
		for i, v := range s {
			if v != 0 {
				t.Fatalf("element %d of %d is %d", i, n, v)
			}
			s[i] = uint64(i)
		}
	}
}

func TestWhatGrowsKeepsItsElements(t *testing.T) {
	var s []int
	for i := range 1 << 20 {
		s = append(Grow(s, 1), i)
	}
	for i, v := range s {
		if v != i {
			t.Fatalf("element %d is %d", i, v)
		}
	}
	if grown := Grow(s, cap(s)); len(grown) != len(s) || cap(grown) < len(s)+cap(s) {
		t.Errorf("%d elements with room for %d, want %d and %d", len(grown), cap(grown), len(s), len(s)+cap(s))
	}
}

// Advice must not touch what it is for, least of all beyond it.
func TestAdviceChangesNothing(t *testing.T) {
	const large = 8 << 20
	all := make([]byte, large)
	for i := range all {
		all[i] = byte(i * 7)
	}
	for _, r := range [][2]int{{0, large}, {1, large - 1}, {4095, 1}, {3 << 20, 0}, {12345, 5 << 20}} {
		Advise(unsafe.Pointer(&all[r[0]]), uintptr(r[1]))
	}
	for i := range all {
		if all[i] != byte(i*7) {
			t.Fatalf("byte %d is %d", i, all[i])
		}
	}
}
