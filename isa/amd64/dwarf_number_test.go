package amd64

import "testing"

func TestDWARFNamesLeadBackToTheirNumbers(t *testing.T) {
	for n := range maxDWARF {
		if got, ok := DWARFNumber(DWARFName(n)); !ok || got != n {
			t.Errorf("%q gives %d, %v, want %d", DWARFName(n), got, ok, n)
		}
	}
	if n, ok := DWARFNumber("nonsense"); ok {
		t.Errorf("nonsense is register %d", n)
	}
}
