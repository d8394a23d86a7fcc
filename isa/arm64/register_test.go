package arm64

import (
	"strings"
	"testing"
)

func TestNamesLeadBackToTheirNumbers(t *testing.T) {
	named := 0
	for n := range maxDWARF {
		name := DWARFName(n)
		if !strings.HasPrefix(name, "dwarf") {
			named++
		}
		if got, ok := DWARFNumber(name); !ok || got != n {
			t.Errorf("%q gives %d, %v, want %d", name, got, ok, n)
		}
	}
	if named < 20 {
		t.Errorf("only %d registers have names", named)
	}
	for _, a := range aliases {
		if got, ok := DWARFNumber(a.name); !ok || got != a.number {
			t.Errorf("%q gives %d, %v, want %d", a.name, got, ok, a.number)
		}
	}
	if n, ok := DWARFNumber("nonsense"); ok {
		t.Errorf("nonsense is register %d", n)
	}
}
