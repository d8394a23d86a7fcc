package amd64

// shape says which parts follow an opcode, and which opcodes need a closer look than the table can give.
type shape uint16

const (
	// What ends the instruction: its size in bytes without a prefix that changes it, and its nature.
	shapeTailSize shape = 0x07
	shapeTail     shape = 0x7F

	shapeModRM   shape = 1 << (iota + 5) // a ModRM byte follows
	shapePrefix                          // not an opcode but a legacy or REX prefix
	shapeEscape                          // leads to another map or encoding
	shapeInvalid                         // no instruction in 64-bit mode
	shapeFlow                            // of a kind other than Other
	shapeGroup                           // not every ModRM byte is an instruction: see validModRM
	shapeNoMem                           // ModRM.mod is ignored: the operand is a register (mov to and from CRn, DRn)
	shapeOpReg                           // the low three bits of the opcode are a register
)

// What ends an instruction; z is 2 bytes with the prefix 66 and 4 without, as in Intel SDM vol. 2 appendix A.2. The
// low three bits are shapeTailSize, those above number the nature.
const (
	tailNone  shape = 0
	tailByte  shape = 1        // signed
	tail32    shape = 4        // signed
	tailRel8  shape = 1<<3 | 1 // a branch displacement
	tailRel32 shape = 1<<3 | 4 // a branch displacement; 66 does not shorten it (see the package comment)
	tailZ     shape = 2<<3 | 4 // 2 or 4 bytes, signed

	// Size or value of these depend on more than the prefix 66: see special.

	tailV     shape = 3<<3 | 4 // 2, 4, or with REX.W 8 bytes, signed
	tailUByte shape = 4<<3 | 1 // unsigned: ports and interrupt numbers
	tailWord  shape = 5<<3 | 2 // unsigned
	tailEnter shape = 6<<3 | 3 // 2 bytes and 1
	tailMoffs shape = 7 << 3   // an address: 8 bytes, with the prefix 67 only 4
	tailTest8 shape = 8<<3 | 1 // none unless ModRM.reg is 0 or 1
	tailTestZ shape = 9<<3 | 4 // 2 or 4 bytes, none unless ModRM.reg is 0 or 1
	tailSSE4a shape = 10 << 3  // 2 single bytes with 66 or F2
)

// Two-letter names keep the tables below in the form of the manuals' opcode maps.
const (
	no = shapeInvalid
	px = shapePrefix
	es = shapeEscape

	op = tailNone              // the opcode alone
	or = shapeOpReg            // a register in the opcode
	o1 = shapeOpReg | tailByte // a register in the opcode and an immediate
	ov = shapeOpReg | tailV    // the same in full size
	i1 = tailByte              // immediates
	iu = tailUByte             // ports
	iz = tailZ                 // immediates
	en = tailEnter             // enter
	mo = tailMoffs             // an absolute address

	fl = shapeFlow             // a flow of control, the opcode alone
	fu = shapeFlow | tailUByte // int
	f2 = shapeFlow | tailWord  // ret
	j1 = shapeFlow | tailRel8  // branches
	j4 = shapeFlow | tailRel32 // branches

	rm = shapeModRM                                     // operands
	m1 = shapeModRM | tailByte                          // operands and an immediate
	mz = shapeModRM | tailZ                             // operands and an immediate
	mt = shapeModRM | tailTest8                         // the group with test and not
	mT = shapeModRM | tailTestZ                         // the same in full size
	s4 = shapeModRM | tailSSE4a                         // vmread, extrq, insertq
	mg = shapeModRM | shapeGroup                        // groups
	g1 = shapeModRM | shapeGroup | tailByte             // groups with an immediate
	fm = shapeModRM | shapeFlow                         // ud0, ud1
	gf = shapeModRM | shapeGroup | shapeFlow            // groups of which some are flows of control
	x1 = shapeModRM | shapeGroup | shapeFlow | tailByte // mov and xabort
	xz = shapeModRM | shapeGroup | shapeFlow | tailZ    // mov and xbegin
	cr = shapeModRM | shapeGroup | shapeNoMem           // mov to and from control and debug registers
)

// primaryShapes is the one-byte map (Intel SDM vol. 2 appendix A, table A-2).
var primaryShapes = [256]shape{
	// 0   1   2   3   4   5   6   7   8   9   A   B   C   D   E   F
	rm, rm, rm, rm, i1, iz, no, no, rm, rm, rm, rm, i1, iz, no, es, // 00
	rm, rm, rm, rm, i1, iz, no, no, rm, rm, rm, rm, i1, iz, no, no, // 10
	rm, rm, rm, rm, i1, iz, px, no, rm, rm, rm, rm, i1, iz, px, no, // 20
	rm, rm, rm, rm, i1, iz, px, no, rm, rm, rm, rm, i1, iz, px, no, // 30
	px, px, px, px, px, px, px, px, px, px, px, px, px, px, px, px, // 40
	or, or, or, or, or, or, or, or, or, or, or, or, or, or, or, or, // 50
	no, no, es, rm, px, px, px, px, iz, mz, i1, m1, op, op, op, op, // 60
	j1, j1, j1, j1, j1, j1, j1, j1, j1, j1, j1, j1, j1, j1, j1, j1, // 70
	m1, mz, no, m1, rm, rm, rm, rm, rm, rm, rm, rm, mg, mg, mg, es, // 80
	or, or, or, or, or, or, or, or, op, op, no, op, op, op, op, op, // 90
	mo, mo, mo, mo, op, op, op, op, i1, iz, op, op, op, op, op, op, // A0
	o1, o1, o1, o1, o1, o1, o1, o1, ov, ov, ov, ov, ov, ov, ov, ov, // B0
	m1, m1, f2, fl, es, es, x1, xz, en, op, f2, fl, fl, fu, no, fl, // C0
	rm, rm, rm, rm, no, no, no, op, mg, mg, mg, mg, mg, mg, mg, mg, // D0
	j1, j1, j1, j1, iu, iu, iu, iu, j4, j4, no, j1, op, op, op, op, // E0
	px, fl, px, px, fl, op, mt, mT, op, op, op, op, op, op, mg, gf, // F0
}

// shapes0F is the map 0F (Intel SDM vol. 2 appendix A, table A-3). Which prefixes an opcode takes stands in legacyPrefixes.
var shapes0F = [256]shape{
	// 0   1   2   3   4   5   6   7   8   9   A   B   C   D   E   F
	mg, gf, rm, rm, no, fl, op, fl, op, op, no, fl, no, rm, op, es, // 00
	rm, rm, rm, mg, rm, rm, rm, mg, rm, rm, rm, rm, rm, rm, rm, rm, // 10
	cr, cr, cr, cr, no, no, no, no, rm, rm, rm, mg, rm, rm, rm, rm, // 20
	op, op, op, op, fl, fl, no, op, es, no, es, no, no, no, no, no, // 30
	rm, rm, rm, rm, rm, rm, rm, rm, rm, rm, rm, rm, rm, rm, rm, rm, // 40
	mg, rm, rm, rm, rm, rm, rm, rm, rm, rm, rm, rm, rm, rm, rm, rm, // 50
	rm, rm, rm, rm, rm, rm, rm, rm, rm, rm, rm, rm, rm, rm, rm, rm, // 60
	m1, g1, g1, g1, rm, rm, rm, op, s4, rm, no, no, rm, rm, rm, rm, // 70
	j4, j4, j4, j4, j4, j4, j4, j4, j4, j4, j4, j4, j4, j4, j4, j4, // 80
	rm, rm, rm, rm, rm, rm, rm, rm, rm, rm, rm, rm, rm, rm, rm, rm, // 90
	op, op, op, rm, m1, rm, mg, mg, op, op, fl, rm, m1, rm, mg, rm, // A0
	rm, rm, mg, rm, mg, mg, rm, rm, rm, fm, g1, rm, rm, rm, rm, rm, // B0
	rm, rm, m1, mg, m1, g1, m1, mg, or, or, or, or, or, or, or, or, // C0
	rm, rm, rm, rm, rm, rm, rm, mg, rm, rm, rm, rm, rm, rm, rm, rm, // D0
	rm, rm, rm, rm, rm, rm, rm, mg, rm, rm, rm, rm, rm, rm, rm, rm, // E0
	mg, rm, rm, rm, rm, rm, rm, mg, rm, rm, rm, rm, rm, rm, rm, fm, // F0
}

// The maps 0F 38 and 0F 3A have one shape each.
const (
	shape0F38 = shapeModRM | shapeGroup
	shape0F3A = shapeModRM | shapeGroup | tailByte
)
