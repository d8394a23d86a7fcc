package amd64

// maxDWARF is one more than the highest DWARF register number that the ABI gives a name.
const maxDWARF = 130

// DWARFNumber returns the DWARF number of a register by its lower-case name, as [DWARFName] gives it; "rip" is the
// return address column, too.
func DWARFNumber(name string) (int, bool) {
	if name == "rip" {
		return DWARFReturnAddress, true
	}
	for n := range maxDWARF {
		if DWARFName(n) == name {
			return n, true
		}
	}
	return 0, false
}
