package process

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Auxv holds the values of the auxiliary vector that locate the program and
// its loader (System V AMD64 ABI §3.4.3; getauxval(3)). 0 means absent.
type Auxv struct {
	Entry    uint64 // AT_ENTRY: the program's entry point
	Base     uint64 // AT_BASE: load address of the dynamic loader, 0 for static programs
	Phdr     uint64 // AT_PHDR: address of the program headers
	Phnum    uint64 // AT_PHNUM
	VDSO     uint64 // AT_SYSINFO_EHDR: address of the vdso's ELF header
	PageSize uint64 // AT_PAGESZ
	HWCap    uint64 // AT_HWCAP: what the processor can do, by its own bits
	HWCap2   uint64 // AT_HWCAP2
}

var errAuxv = errors.New("malformed auxiliary vector")

// ParseAuxv reads a /proc/PID/auxv file of a 64-bit little-endian process.
func ParseAuxv(data []byte) (Auxv, error) {
	var a Auxv
	fields := map[uint64]*uint64{3: &a.Phdr, 5: &a.Phnum, 6: &a.PageSize, 7: &a.Base, 9: &a.Entry, 16: &a.HWCap, 26: &a.HWCap2, 33: &a.VDSO}
	for offset := 0; ; offset += 16 {
		if len(data)-offset < 16 {
			return Auxv{}, fmt.Errorf("auxv: offset %d: %w: no end mark", offset, errAuxv)
		}
		tag := binary.LittleEndian.Uint64(data[offset:])
		if tag == 0 {
			return a, nil
		}
		if p := fields[tag]; p != nil {
			*p = binary.LittleEndian.Uint64(data[offset+8:])
		}
	}
}
