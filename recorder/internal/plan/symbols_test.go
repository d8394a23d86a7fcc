package plan

import (
	"slices"
	"testing"
)

func TestNamesOfColdParts(t *testing.T) {
	for name, want := range map[string]string{
		"f.cold": "f", "f.cold.1": "f", "f.cold.12": "f", "f.part.0.cold": "f.part.0", "f.cold.cold": "f.cold", "f.cold.1.cold": "f.cold.1",
		"f": "", "f.cold.": "", "f.cold.x": "", "f.coldest": "", "f.cold1": "", "f.1": "", "f.cold.1.2": "", "": "", "12": "",
	} {
		if got, ok := coldBase(name); ok != (want != "") || ok && got != want {
			t.Errorf("%s: the cold part of %q (%v), want %q", name, got, ok, want)
		}
	}
}

// Symbols come by address, of each the best name first, and those in several tables once.
func TestSymbolsOfEachAddress(t *testing.T) {
	var l symbols
	for i := range symbolBlock {
		l.add(symbol{name: "other", addr: uint64(1000 + i)})
	}
	for _, s := range []symbol{
		{name: "__f", addr: 10, size: 4}, {name: "f", addr: 10, local: true}, {name: "longer", addr: 10},
		{name: "g", addr: 5, local: true}, {name: "f", addr: 10, size: 8, dynamic: true}, {name: "e", addr: 10, local: true},
	} {
		l.add(s)
	}
	var at []uint64
	l.eachAddress(l.inPlace(), func(list []*symbol) {
		if at = append(at, list[0].addr); list[0].addr != 10 {
			return
		}
		var names []string
		for _, s := range list {
			names = append(names, s.name)
		}
		if want := []string{"longer", "f", "e", "__f"}; !slices.Equal(names, want) {
			t.Errorf("the names are %q, want %q", names, want)
		}
		if f := list[1]; f.size != 8 || !f.dynamic || !f.local {
			t.Errorf("f is %+v, from two tables", f)
		}
	})
	if len(at) != symbolBlock+2 || at[0] != 5 || !slices.IsSorted(at) {
		t.Errorf("%d addresses from %v on, sorted %v", len(at), at[0], slices.IsSorted(at))
	}
}
