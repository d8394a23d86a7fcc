package amd64

// An opcodePrefixes says for each opcode of a map with which mandatory prefixes it is an instruction. A row is
// sixteen opcodes, a hexadecimal digit is one of them, from left (x0) to right (xF). In the digit 1 stands for no
// prefix, 2 for 66, 4 for F3 and 8 for F2; f is an opcode for which the prefixes have no such meaning, 0 is none.
//
// The legacy maps are Intel SDM vol. 2 appendix A tables, with AMD's additions. VEX covers AVX, AVX2, FMA,
// FMA4, BMI, AVX-VNNI, AVX-IFMA, AVX-NE-CONVERT, CMPccXADD, SHA512, SM3, SM4 and AMX; EVEX covers AVX-512 up to FP16.
// XOP is AMD64 APM vol. 6. VEX.L, W and vvvv are not looked at, nor what EVEX has in their stead: they say nothing
// about length or operands, and a newer processor may give them a meaning.
type opcodePrefixes [16]uint64

// pp numbers the mandatory prefixes as the pp field of VEX does (Intel SDM vol. 2 §2.3.6.1).
const (
	pp66 = 1
	ppF3 = 2
	ppF2 = 3
)

// allows reports whether opcode is an instruction with mandatory prefix pp, 0 to 3.
func (t *opcodePrefixes) allows(opcode, pp uint8) bool {
	return t[opcode>>4]>>(60-4*(opcode&15)+pp)&1 != 0
}

// legacyPrefixes is indexed by Map0F to Map0F3A.
var legacyPrefixes = [...]opcodePrefixes{
	Map0F: {
		0x0: 0xffff0fffff0f0fff,
		0x1: 0xfff33373ffffffff,
		0x2: 0xffff000033ffff33,
		0x3: 0xffffff01f0300000,
		0x4: 0xffffffffffffffff,
		0x5: 0x3f553333fff7ffff,
		0x6: 0x3333333333332237,
		0x7: 0xf3333331bb00aa77,
		0x8: 0xffffffffffffffff,
		0x9: 0xffffffffffffffff,
		0xa: 0xffffff47ffffffff,
		0xb: 0xffffffff4fffffff,
		0xc: 0xfff1333fffffffff,
		0xd: 0xa33333e333333333,
		0xe: 0x333333e333333333,
		0xf: 0x833333333333333f,
	},
	Map0F38: {
		0x0: 0x3333333333330000,
		0x1: 0x2000220200003330,
		0x2: 0x2222220022220000,
		0x3: 0x2222220222222222,
		0x4: 0x2200000000000000,
		0x8: 0x2220000000000000,
		0xc: 0x0000000011111102,
		0xd: 0x0000000040026666,
		0xf: 0xbb000270e144f000,
	},
	Map0F3A: {
		0x0: 0x0000000022222223,
		0x1: 0x0000222200000000,
		0x2: 0x2220000000000000,
		0x4: 0x2220200000000000,
		0x6: 0x2222000000000000,
		0xc: 0x0000000000001022,
		0xd: 0x0000000000000002,
		0xf: 0x4000000000000000,
	},
}

// vexPrefixes is indexed by the field mmmmm of VEX.
var vexPrefixes = [...]opcodePrefixes{
	Map0F: {
		0x1: 0xfff3337300000000,
		0x2: 0x0000000033c3cc33,
		0x4: 0x0330333300330000,
		0x5: 0x3f553333fff7ffff,
		0x6: 0x2222222222222226,
		0x7: 0xe22222210000aa66,
		0x9: 0x33bb000033000000,
		0xa: 0x0000000000000010,
		0xc: 0x00f0223000000000,
		0xd: 0xa222222222222222,
		0xe: 0x222222e222222222,
		0xf: 0x8222222222222220,
	},
	Map0F38: {
		0x0: 0x2222222222222222,
		0x1: 0x0002002222202220,
		0x2: 0x2222220022222222,
		0x3: 0x2222222222222222,
		0x4: 0x220002220b0e0000,
		0x5: 0xff2200002220c0f0,
		0x6: 0x0000000000003000,
		0x7: 0x0040000022000000,
		0x8: 0x0000000000002020,
		0x9: 0x2222002222222222,
		0xa: 0x0000002222222222,
		0xb: 0xf600222222222222,
		0xc: 0x0000000000088802,
		0xd: 0x0077000000f22222,
		0xe: 0x2222222222222222,
		0xf: 0x00110d8f00000000,
	},
	Map0F3A: {
		0x0: 0x2220222022222222,
		0x1: 0x0000222222000200,
		0x2: 0x2220000000000000,
		0x3: 0x2222000022000000,
		0x4: 0x2220202022222000,
		0x5: 0x0000000000002222,
		0x6: 0x2222000022222222,
		0x7: 0x0000000022222222,
		0xc: 0x0000000000000022,
		0xd: 0x0000000000000022,
		0xf: 0x8000000000000000,
	},
}

// evexPrefixes is indexed by the field mmm of EVEX.
var evexPrefixes = [...]opcodePrefixes{
	Map0F: {
		0x1: 0xfff3337300000000,
		0x2: 0x0000000033c3cc33,
		0x5: 0x0f003333fff7ffff,
		0x6: 0x222222222222222e,
		0x7: 0xe2222220ffee006e,
		0xc: 0x00f0223000000000,
		0xd: 0x0222222022222222,
		0xe: 0x222222e222222222,
		0xf: 0x0222222022222220,
	},
	Map0F38: {
		0x0: 0x2000200000022200,
		0x1: 0x6666662022222222,
		0x2: 0x6666666666622200,
		0x3: 0x6666662266622222,
		0x4: 0x2022222200002222,
		0x5: 0x22ea220022220000,
		0x6: 0x0022222080000000,
		0x7: 0x22e2022222222222,
		0x8: 0x0002000022220202,
		0x9: 0x2222002222aa2222,
		0xa: 0x2222002222aa2222,
		0xb: 0x0000222222222222,
		0xc: 0x0000202220222202,
		0xd: 0x0000000000002222,
	},
	Map0F3A: {
		0x0: 0x2202220032320002,
		0x1: 0x0000222222220222,
		0x2: 0x2222023300000000,
		0x3: 0x0000000022220022,
		0x4: 0x0022200000000000,
		0x5: 0x2200223300000000,
		0x6: 0x0000003300000000,
		0x7: 0x2222000000000000,
		0xc: 0x0050000000000022,
	},
	Map5: {
		0x1: 0x4400000000000300,
		0x2: 0x0000000000404411,
		0x5: 0x0500000055f75555,
		0x6: 0x0000000000000020,
		0x7: 0x0000000077a63f20,
	},
	Map6: {
		0x1: 0x0003000000000000,
		0x2: 0x0000000000002200,
		0x4: 0x0022000000002222,
		0x5: 0x000000cc00000000,
		0x9: 0x0000002222222222,
		0xa: 0x0000002222222222,
		0xb: 0x0000002222222222,
		0xd: 0x000000cc00000000,
	},
}

// xopPrefixes is indexed by the field mmmmm of XOP less MapXOP8.
var xopPrefixes = [...]opcodePrefixes{
	0: {
		0x8: 0x0000011100000011,
		0x9: 0x0000011100000011,
		0xa: 0x0011001000000000,
		0xb: 0x0000001000000000,
		0xc: 0x1111000000001111,
		0xe: 0x0000000000001111,
	},
	1: {
		0x0: 0x0110000000000000,
		0x1: 0x0010000000000000,
		0x8: 0x1111000000000000,
		0x9: 0x1111111111110000,
		0xc: 0x0111001100010000,
		0xd: 0x0111001100010000,
		0xe: 0x0111000000000000,
	},
	2: {
		0x1: 0x1010000000000000,
	},
}
