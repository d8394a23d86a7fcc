package object

import (
	"slices"
	"testing"
)

// What is visited are the symbols of Symbols, in its order; one in several tables is visited in each.
func TestVisitedSymbolsAreThoseOfSymbols(t *testing.T) {
	for _, path := range []string{library(t, "libc.so.6"), library(t, "libgcc_s.so.1"), library(t, "libm.so.6")} {
		i := open(t, path)
		want, err := i.Symbols()
		if err != nil {
			t.Fatal(err)
		}
		m := newSymbolMerger(0)
		visited := 0
		if err := i.VisitSymbols(func(s *Symbol) bool {
			visited++
			m.add(s)
			return true
		}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(m.list, want) || visited < len(want) || len(want) == 0 {
			t.Errorf("%s: %d visited, %d without repetitions, want %d", path, visited, len(m.list), len(want))
		}
		visited = 0
		if err := i.VisitSymbols(func(*Symbol) bool { visited++; return visited < 2 }); err != nil || visited != 2 {
			t.Errorf("%s: %d visited, want to stop behind 2; %v", path, visited, err)
		}
	}
}
