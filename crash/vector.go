package crash

import (
	"fmt"
	"strings"

	"github.com/callreel/callreel/isa/amd64"
)

// vectorOp is an instruction with a VEX or EVEX prefix.
type vectorOp struct {
	encodings uint8
	m, pp, op uint8 // opcode map; prefix: 0 none, 1 66, 2 F3, 3 F2; opcode
	w, l      uint8 // bits of the prefix
	ext       int8  // ModRM.reg that belongs to the opcode, -1 for none
	name      string
	operands  string // in Intel's order, by the letters of vectorText
	memory    int8   // bytes in memory; 0 a whole vector, or by W; negative: a vector divided by so much
}

const (
	bothVEX uint8 = iota
	vexOnly
	evexOnly

	anyBit uint8 = 2
)

// vectorInst is an instruction and what is in its prefix that package amd64 leaves out.
type vectorInst struct {
	*amd64.Inst
	op        *vectorOp
	evex      bool
	w, length uint8 // 0, 1 and 2: 128, 256 and 512 bits
	broadcast bool
	zero      bool
	mask      uint8
}

// vectorText is the text of an instruction with a VEX or EVEX prefix in GNU's syntax, "" where its
// name isn't known.
func vectorText(in *amd64.Inst, code []byte) string {
	if in.Encoding != amd64.VEX && in.Encoding != amd64.EVEX || in.OpcodeOff == 0 || int(in.Len) > len(code) {
		return ""
	}
	v := vectorInst{Inst: in, evex: in.Encoding == amd64.EVEX}
	last := code[in.OpcodeOff-1]
	if v.length = last >> 2 & 1; v.evex {
		v.length, v.broadcast, v.zero, v.mask = last>>5&3, last&0x10 != 0, last&0x80 != 0, last&7
	}
	if in.REX&amd64.RexW != 0 {
		v.w = 1
	}
	pp := uint8(0)
	switch {
	case in.Prefixes&amd64.Opsize66 != 0:
		pp = 1
	case in.Prefixes&amd64.RepF3 != 0:
		pp = 2
	case in.Prefixes&amd64.RepneF2 != 0:
		pp = 3
	}
	for k := range vectorOps {
		op := &vectorOps[k]
		if op.m == in.Map && op.pp == pp && op.op == in.Opcode && (op.w == anyBit || op.w == v.w) && (op.l == anyBit || op.l == v.length) &&
			(op.ext < 0 || uint8(op.ext) == in.Reg&7) && op.encodings != map[bool]uint8{true: vexOnly, false: evexOnly}[v.evex] {
			v.op = op
			return v.text()
		}
	}
	return ""
}

// compares are the predicates of vcmpps and its like, and of vpcmpb and its like; the rest is written
// as a number.
var (
	compares        = []string{"eq", "lt", "le", "unord", "neq", "nlt", "nle", "ord", "eq_uq", "nge", "ngt", "false", "neq_oq", "ge", "gt", "true"}
	integerCompares = []string{"eq", "lt", "le", "", "neq", "nlt", "nle"}
)

func (v *vectorInst) text() string {
	name, operands := v.op.name, v.op.operands
	for _, c := range [...]struct {
		mark  string
		names []string
	}{{"?", compares}, {"!", integerCompares}} {
		if before, after, ok := strings.Cut(name, c.mark); ok {
			if k := uint8(v.Imm); int(k) < len(c.names) && c.names[k] != "" {
				name, operands = before+c.names[k]+after, strings.TrimSuffix(operands, "I")
			} else {
				name = before + after
			}
		}
	}
	switch { // moves of one number have another operand between registers, as others have another name
	case operands == "s" && v.Mod == 3:
		operands = "XWY"
	case operands == "s":
		operands = "XY"
	case operands == "S" && v.Mod == 3:
		operands = "YWX"
	case operands == "S":
		operands = "YX"
	case v.Mod == 3 && name == "vmovlps" && operands == "XWY":
		name = "vmovhlps"
	case v.Mod == 3 && name == "vmovhps" && operands == "XWY":
		name = "vmovlhps"
	case v.Mod != 3 && strings.HasPrefix(name, "vcvtsi2"):
		name += [...]string{"l", "q"}[v.w]
	}
	var list []string
	for k := len(operands) - 1; k >= 0; k-- {
		text := v.operand(operands[k])
		if k == 0 && v.mask != 0 {
			text += fmt.Sprintf("{%%k%d}", v.mask)
			if v.zero {
				text += "{z}"
			}
		}
		list = append(list, text)
	}
	return strings.TrimSpace(name + " " + strings.Join(list, ","))
}

// operand is the text of one operand. Letters: R, V and M are vectors in ModRM.reg, vvvv and ModRM.rm;
// X, W and Y the same of 128 bits; h is half a vector in ModRM.rm; r, v and m are general registers by
// W, d and e such of 32 bits in reg and rm; k, q and K are masks; I is an immediate, and 4 a vector in it.
func (v *vectorInst) operand(kind byte) string {
	const xmm = 0
	switch kind {
	case 'R':
		return vectorName(v.Reg, v.length)
	case 'V':
		return vectorName(v.V, v.length)
	case 'X':
		return vectorName(v.Reg, xmm)
	case 'W':
		return vectorName(v.V, xmm)
	case 'r':
		return generalName(v.Reg, v.w == 1)
	case 'v':
		return generalName(v.V, v.w == 1)
	case 'd':
		return generalName(v.Reg, false)
	case 'k':
		return fmt.Sprintf("%%k%d", v.Reg&7)
	case 'q':
		return fmt.Sprintf("%%k%d", v.V&7)
	case 'I':
		return fmt.Sprintf("$%#x", uint8(v.Imm))
	case '4':
		return vectorName(uint8(v.Imm)>>4, v.length)
	}
	if v.HasMem {
		return v.memoryText(kind)
	}
	switch kind {
	case 'M':
		return vectorName(v.RM, v.length)
	case 'h':
		return vectorName(v.RM, max(v.length, 1)-1)
	case 'm':
		return generalName(v.RM, v.w == 1)
	case 'e':
		return generalName(v.RM, false)
	case 'K':
		return fmt.Sprintf("%%k%d", v.RM&7)
	}
	return vectorName(v.RM, xmm)
}

func vectorName(n, length uint8) string {
	return fmt.Sprintf("%%%cmm%d", "xyzz"[length&3], n)
}

func generalName(n uint8, wide bool) string {
	names := [...]string{"ax", "cx", "dx", "bx", "sp", "bp", "si", "di"}
	switch {
	case n >= 8 && wide:
		return fmt.Sprintf("%%r%d", n)
	case n >= 8:
		return fmt.Sprintf("%%r%dd", n)
	case wide:
		return "%r" + names[n]
	}
	return "%e" + names[n]
}

// memoryText is the text of the memory operand. EVEX has short displacements in units of what is
// read (Intel SDM vol. 2 §2.7.5).
func (v *vectorInst) memoryText(kind byte) string {
	disp := int64(v.Disp)
	whole := int64(16) << v.length
	element := int64(4) << v.w
	size := int64(v.op.memory)
	switch {
	case v.broadcast:
		size = element
	case size < 0:
		size = whole / -size
	case size == 0 && kind == 'm':
		size = element
	case size == 0:
		size = whole
	}
	if v.evex && v.DispSize == 1 {
		disp *= size
	}
	var b strings.Builder
	switch {
	case v.Prefixes&amd64.SegFS != 0:
		b.WriteString("%fs:")
	case v.Prefixes&amd64.SegGS != 0:
		b.WriteString("%gs:")
	}
	if disp < 0 {
		fmt.Fprintf(&b, "-%#x", -disp)
	} else if v.DispSize != 0 {
		fmt.Fprintf(&b, "%#x", disp)
	}
	wide := v.Prefixes&amd64.Addr67 == 0
	base, index := "", ""
	switch {
	case v.RIPRelative:
		base = "%rip"
	case v.Base >= 0:
		base = generalName(uint8(v.Base), wide)
	}
	if v.Index >= 0 {
		index = fmt.Sprintf(",%s,%d", generalName(uint8(v.Index), wide), v.Scale)
	}
	if base != "" || index != "" {
		b.WriteString("(" + base + index + ")")
	}
	if v.broadcast {
		fmt.Fprintf(&b, "{1to%d}", whole/element)
	}
	return b.String()
}
