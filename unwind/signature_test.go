package unwind

import "testing"

func TestAddressesOfThisMachineKeepTheirBits(t *testing.T) {
	const leastBits = 39 // of addresses, as arm64's kernels are built
	host := Host()
	if host == nil {
		t.Skip("no walk is possible here")
	}
	if want := uint64(1)<<leastBits - 1; host.strip&want != want {
		t.Errorf("of addresses %#x is left", host.strip)
	}
	if full := ArchOf(host.object); host.strip&^full.strip != 0 {
		t.Errorf("%#x is more than %#x", host.strip, full.strip)
	}
}
