package process

import "strconv"

// syscallName names a system call of this processor for a message: its number where it is none that syscallNames has.
func syscallName(nr uint64) string {
	if name, ok := syscallNames[nr]; ok {
		return name
	}
	return "number " + strconv.FormatUint(nr, 10)
}
