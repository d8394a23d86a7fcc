package arm64

// SystemRegister is a system register as mrs and msr number it: op0, op1, CRn, CRm and op2, from high to low (2, 3, 4, 4
// and 3 bits).
type SystemRegister uint16

// The system registers that somebody asks about (Arm ARM D24).
const (
	SystemNZCV     SystemRegister = 3<<14 | 3<<11 | 4<<7 | 2<<3
	SystemTPIDR    SystemRegister = 3<<14 | 3<<11 | 13<<7 | 2
	SystemCNTFRQ   SystemRegister = 3<<14 | 3<<11 | 14<<7
	SystemCNTVCT   SystemRegister = 3<<14 | 3<<11 | 14<<7 | 2
	SystemCNTVCTSS SystemRegister = 3<<14 | 3<<11 | 14<<7 | 6   // the same, in order with what surrounds it (FEAT_ECV)
	randomRNDR     SystemRegister = 3<<14 | 3<<11 | 2<<7 | 4<<3 // rndr; rndrrs has the lowest bit set
)

// SystemRegister returns which register mrs, mrrs, msr or msrr moves from or to; it means something only for these,
// and not for msr with an immediate.
func (i *Inst) SystemRegister() SystemRegister { return SystemRegister(i.field(5, 16)) }
