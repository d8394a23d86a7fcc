package isa_test

import (
	"strings"
	"testing"

	"github.com/callreel/callreel/isa/arm"
	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/isa/i386"
)

func TestNamesLeadBackToTheirNumbers(t *testing.T) {
	for _, arch := range []struct {
		name   string
		nameOf func(int) string
		number func(string) (int, bool)
		count  int
		others map[string]int
	}{
		{"arm", arm.DWARFName, arm.DWARFNumber, 328, map[string]int{"fp": 11, "ra": 14, "ip": 12, "s0": 64, "d31": 287}},
		{"arm64", arm64.DWARFName, arm64.DWARFNumber, 128, map[string]int{"fp": 29, "lr": 30, "ra": 30, "v0": 64, "z31": 127}},
		{"i386", i386.DWARFName, i386.DWARFNumber, 96, map[string]int{"ra": 8, "eip": 8, "st0": 11, "xmm7": 28}},
	} {
		named := 0
		for n := range arch.count {
			name := arch.nameOf(n)
			if !strings.HasPrefix(name, "dwarf") {
				named++
			}
			if got, ok := arch.number(name); !ok || got != n {
				t.Errorf("%s: %q gives %d, %v, want %d", arch.name, name, got, ok, n)
			}
		}
		if named < 20 {
			t.Errorf("%s: only %d registers have names", arch.name, named)
		}
		for name, want := range arch.others {
			if got, ok := arch.number(name); !ok || got != want {
				t.Errorf("%s: %q gives %d, %v, want %d", arch.name, name, got, ok, want)
			}
		}
		if n, ok := arch.number("nonsense"); ok {
			t.Errorf("%s: nonsense is register %d", arch.name, n)
		}
	}
}
