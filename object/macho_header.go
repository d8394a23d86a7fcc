package object

import (
	"encoding/binary"
	"fmt"
)

// The first four bytes of a Mach-O file as a little-endian number (mach-o/loader.h,
// MH_MAGIC and its kin): the reversed ones are files of the other byte order.
const (
	machMagic32        = 0xfeedface
	machMagic64        = 0xfeedfacf
	machMagic32Swapped = 0xcefaedfe
	machMagic64Swapped = 0xcffaedfe
)

// The sizes of mach_header and mach_header_64.
const (
	machHeaderSize32, machHeaderSize64 = 28, 32
)

// machNameSize is the size of the fields for the names of segments and sections.
const machNameSize = 16

// The segments that are known by name (mach-o/loader.h, SEG_TEXT; DWARF by custom).
const (
	segmentText  = "__TEXT"
	segmentDWARF = "__DWARF"
)

// isMachO says whether the bytes start like a file of one architecture.
func isMachO(data []byte) bool {
	if len(data) < 4 {
		return false
	}
	switch binary.LittleEndian.Uint32(data) {
	case machMagic32, machMagic64, machMagic32Swapped, machMagic64Swapped:
		return true
	}
	return false
}

// parseMachO reads the file header, the load commands, the segments and the sections.
func (i *Image) parseMachO() error {
	i.Format = MachO
	d, err := i.slice(0, min(i.size, machHeaderSize64))
	if err != nil {
		return i.errorf("Mach-O header: %d bytes %w", len(d), err)
	}
	magic := binary.LittleEndian.Uint32(d)
	i.ByteOrder = binary.ByteOrder(binary.LittleEndian)
	if magic == machMagic32Swapped || magic == machMagic64Swapped {
		i.ByteOrder = binary.BigEndian
	}
	i.Class = Class32
	size := machHeaderSize32
	if magic == machMagic64 || magic == machMagic64Swapped {
		i.Class, size = Class64, machHeaderSize64
	}
	if len(d) < size {
		return i.errorf("Mach-O header: %d bytes, want %d", len(d), size)
	}
	o := i.ByteOrder
	m := &i.mach
	m.cpu, m.cpuSubtype = o.Uint32(d[4:]), o.Uint32(d[8:])&^cpuSubtypeMask
	i.Arch = machArch(m.cpu)
	i.Type = machType(o.Uint32(d[12:]))
	if err := m.readCommands(uint64(size), o.Uint32(d[16:]), o.Uint32(d[20:])); err != nil {
		return err
	}
	i.indexLoads()
	i.indexSections()
	m.findEntry()
	return nil
}

// machType translates filetype (mach-o/loader.h, MH_OBJECT and its kin).
func machType(filetype uint32) Type {
	switch filetype {
	case 1: // MH_OBJECT
		return Relocatable
	case 2, 5: // MH_EXECUTE, MH_PRELOAD
		return Executable
	case 4:
		return Core
	case 3, 6, 7, 9: // MH_FVMLIB, MH_DYLIB, MH_DYLINKER, MH_DYLIB_STUB
		return Shared
	case 8, 11: // MH_BUNDLE, MH_KEXT_BUNDLE
		return Bundle
	case 10: // MH_DSYM
		return DebugCompanion
	}
	return OtherType
}

// The CPU types (mach/machine.h): a family and two bits for the width of addresses.
const (
	cpu64     = 0x01000000
	cpu64On32 = 0x02000000 // 64-bit instructions, 32-bit addresses

	cpuX86   = 7
	cpuARM   = 12
	cpuPPC   = 18
	cpuAMD64 = cpuX86 | cpu64
	cpuARM64 = cpuARM | cpu64
	cpuPPC64 = cpuPPC | cpu64

	// cpuSubtypeMask covers capability bits of a subtype, which do not tell
	// architectures apart: CPU_SUBTYPE_LIB64, the version of arm64e's ABI.
	cpuSubtypeMask = 0xff000000
)

// machArch translates a CPU type. Others keep a number that no ELF machine has.
func machArch(cpu uint32) Arch {
	switch cpu {
	case cpuX86:
		return I386
	case cpuAMD64:
		return AMD64
	case cpuARM:
		return ARM
	case cpuARM64, cpuARM | cpu64On32:
		return ARM64
	case cpuPPC:
		return PPC
	case cpuPPC64:
		return PPC64
	}
	return Arch(0)
}

// machArchName gives the name that Apple's tools know the architecture by.
func machArchName(cpu, subtype uint32) string {
	switch cpu {
	case cpuX86:
		return "i386"
	case cpuAMD64:
		if subtype == 8 { // Haswell
			return "x86_64h"
		}
		return "x86_64"
	case cpuARM:
		return armName(subtype)
	case cpuARM64:
		if subtype == 2 {
			return "arm64e"
		}
		return "arm64"
	case cpuARM | cpu64On32:
		return "arm64_32"
	case cpuPPC:
		return ppcName(subtype)
	case cpuPPC64:
		return "ppc64"
	}
	return fmt.Sprintf("cpu %#x subtype %d", cpu, subtype)
}

// armName names the subtypes of 32-bit ARM (mach/machine.h, CPU_SUBTYPE_ARM_V4T …).
func armName(subtype uint32) string {
	switch subtype {
	case 5:
		return "armv4t"
	case 6:
		return "armv6"
	case 7:
		return "armv5"
	case 8:
		return "xscale"
	case 9:
		return "armv7"
	case 10:
		return "armv7f"
	case 11:
		return "armv7s"
	case 12:
		return "armv7k"
	case 14:
		return "armv6m"
	case 15:
		return "armv7m"
	case 16:
		return "armv7em"
	}
	return "arm"
}

// ppcName names the subtypes of PowerPC that were shipped.
func ppcName(subtype uint32) string {
	switch subtype {
	case 9:
		return "ppc750"
	case 10:
		return "ppc7400"
	case 11:
		return "ppc7450"
	case 100:
		return "ppc970"
	}
	return "ppc"
}
