package amd64

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// The six arithmetic flags as bits of RFLAGS.
const allFlags = 1<<0 | 1<<2 | 1<<4 | 1<<6 | 1<<7 | 1<<11

// zydisAnswer is what testdata/zydis.c says of one instruction.
type zydisAnswer struct {
	length            int // 0: not an instruction
	ripRelative       bool
	ripTarget         uint64 // from address 0
	relative          bool
	branchTarget      uint64
	access            bool // reads or writes a memory operand
	read, written     uint16
	tested, changed   uint16 // flags; changed are those certainly overwritten
	dispOff, dispSize uint8
	immOff, immSize   uint8
}

const zydisAnswerSize = 48

func parseZydisAnswer(b []byte) zydisAnswer {
	le := binary.LittleEndian
	return zydisAnswer{
		length: int(b[0]), ripRelative: b[1] != 0, relative: b[2] != 0, access: b[3] == 1,
		read: le.Uint16(b[4:]), written: le.Uint16(b[6:]), tested: le.Uint16(b[8:]), changed: le.Uint16(b[10:]),
		ripTarget: le.Uint64(b[16:]), branchTarget: le.Uint64(b[24:]),
		dispOff: b[38], dispSize: b[39], immOff: b[40], immSize: b[41],
	}
}

// record is an instruction with what happens to follow.
type record [16]byte

// buildZydis compiles the oracle and returns its path.
func buildZydis(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "zydis")
	out, err := exec.Command("cc", "-O2", "-o", path, "testdata/zydis.c", "-lZydis").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(out))
	}
	realtest.NeedThat(t, "a C compiler and libzydis-dev", err)
	return path
}

// askZydis returns an answer for each record.
func askZydis(t *testing.T, path string, records []record) []zydisAnswer {
	t.Helper()
	var in bytes.Buffer
	for _, r := range records {
		in.Write(r[:])
	}
	cmd := exec.Command(path)
	cmd.Stdin = &in
	out, err := cmd.Output()
	if err != nil || len(out) != zydisAnswerSize*len(records) {
		t.Fatalf("zydis: %d bytes of answers for %d records: %v", len(out), len(records), err)
	}
	answers := make([]zydisAnswer, len(records))
	for k := range answers {
		answers[k] = parseZydisAnswer(out[zydisAnswerSize*k:])
	}
	return answers
}

// formsOf makes records with opcode in every map and encoding, with every mandatory prefix and ModRM byte.
func formsOf(opcode byte, rnd *rand.Rand) []record {
	var rs []record
	add := func(b ...byte) {
		var r record
		for k := copy(r[:], b); k < len(r); k++ {
			r[k] = byte(rnd.Uint32())
		}
		rs = append(rs, r)
	}
	for m := range 256 {
		modrm := byte(m)
		for pp, mandatory := range [][]byte{nil, {0x66}, {0xF3}, {0xF2}} {
			legacy := func(prefixes ...byte) {
				b := append(mandatory[:len(mandatory):len(mandatory)], prefixes...)
				b = b[:len(b):len(b)]
				add(append(b, opcode, modrm)...)
				add(append(b, 0x0F, opcode, modrm)...)
				add(append(b, 0x0F, 0x38, opcode, modrm)...)
				add(append(b, 0x0F, 0x3A, opcode, modrm)...)
			}
			legacy()
			if rm := modrm & 7; modrm>>6 == 1 || modrm>>6 == 2 || rm != 0 && rm != 4 && rm != 5 {
				continue // enough for the rest
			}
			legacy(0x48)
			legacy(0x4F)
			some := func() byte { return byte(rnd.Uint32()) }
			for _, w := range []byte{0, 0x80} {
				for opmap := byte(1); opmap <= 3; opmap++ {
					add(0xC4, 0xE0|opmap, w|some()&4|0x78|byte(pp), opcode, modrm)
					add(0xC4, some()&0xE0|opmap, w|some()&0x7C|byte(pp), opcode, modrm)
				}
				for opmap := byte(8); opmap <= 10; opmap++ {
					add(0x8F, 0xE0|opmap, w|some()&4|0x78|byte(pp), opcode, modrm)
				}
				for opmap := byte(1); opmap <= 7; opmap++ {
					add(0x62, 0xF0|opmap, w|0x7C|byte(pp), some()&0x7F|8, opcode, modrm)
					add(0x62, some()&0xF0|opmap, some()&0x78|w|4|byte(pp), some(), opcode, modrm)
				}
			}
		}
	}
	return rs
}

// lenient0F are opcodes of the map 0F that we take for an instruction with every mandatory prefix that one of their ModRM bytes has,
// and of which processors and manuals differ: system instructions, MPX as hints, SSE4a, PadLock.
var lenient0F = map[uint8]bool{
	0x01: true, 0x12: true, 0x16: true, 0x1A: true, 0x1B: true, 0x20: true, 0x21: true, 0x22: true, 0x23: true, 0x73: true, 0x78: true,
	0x79: true, 0xA7: true, 0xAE: true, 0xC7: true, 0xD6: true,
}

// maybeNewer reports whether i may be an instruction though Zydis 4.0 says that it is not: for VEX, EVEX and XOP we do not ask
// whether vvvv, L and W are as they must be.
func maybeNewer(i Inst) bool {
	return i.Encoding != Legacy || i.Map == Map0F && lenient0F[i.Opcode] || i.Map == Map0F38 && i.Opcode == 0xFC // aadd
}

// noOperands reports whether Zydis lists operands that are not used: hints, ud0 and ud1, and AMD's dropped profiling, which writes no register.
func noOperands(i Inst) bool {
	hint := i.Map == Map0F && (i.Opcode == 0x0D || i.Opcode >= 0x18 && i.Opcode <= 0x1F)
	if i.Opcode == 0x1E && i.Mod == 3 && i.group() == 1 && i.Prefixes&RepF3 != 0 {
		return false // rdssp
	}
	return i.Encoding == Legacy && hint || i.Kind == Undefined || i.Encoding == XOP && i.Opcode == 0x12
}

// generous reports whether we say more registers than there are, by intent.
func generous(i Inst) bool {
	if i.Encoding != Legacy {
		return false
	}
	switch i.Map {
	case MapPrimary:
		switch i.Opcode {
		case 0x90, 0xA1, 0xCD, 0xE5, 0xED: // pause with REX.B, 16-bit forms, int
			return true
		}
		return i.stringOp() // Zydis leaves the index registers out
	case Map0F:
		switch i.Opcode {
		case 0x01, 0x05, 0x1A, 0x1B, 0x1E, 0x34, 0x35, 0x37, 0xA6, 0xA7, 0xAA, 0xAE, 0xBC, 0xBD, 0xC7:
			return true
		}
	}
	return false
}

// checkAgainstZydis returns what is wrong with our decoding of r, or "".
func checkAgainstZydis(r record, a zydisAnswer) string {
	i, err := Decode(r[:])
	switch {
	case err != nil && a.length == 0:
		return ""
	case err != nil:
		return err.Error()
	case a.length == 0 && maybeNewer(i):
		return ""
	case a.length == 0:
		return "taken for an instruction"
	case int(i.Len) != a.length:
		return fmt.Sprintf("length %d, not %d", i.Len, a.length)
	}
	if target, rip := i.MemTarget(0); rip != a.ripRelative || target != a.ripTarget {
		return fmt.Sprintf("RIP-relative operand %v %#x, not %v %#x", rip, target, a.ripRelative, a.ripTarget)
	}
	if target, rel := i.Target(0); rel != a.relative || target != a.branchTarget {
		return fmt.Sprintf("branch %v %#x, not %v %#x", rel, target, a.relative, a.branchTarget)
	}
	if i.HasModRM && i.HasMem && (i.DispSize != a.dispSize || i.DispSize != 0 && i.DispOff != a.dispOff) {
		return fmt.Sprintf("displacement %d@%d, not %d@%d", i.DispSize, i.DispOff, a.dispSize, a.dispOff)
	}
	if a.immSize != 0 && a.immSize != i.ImmSize+i.RelSize {
		return fmt.Sprintf("immediate of %d, not %d bytes", i.ImmSize+i.RelSize, a.immSize)
	}
	if what := checkRegisters(i, a); what != "" {
		return what
	}
	return checkFlags(i, a)
}

func checkRegisters(i Inst, a zydisAnswer) string {
	read, written := i.GPRRead(), i.GPRWritten()
	if missed := a.read &^ read; missed != 0 && !noOperands(i) {
		return fmt.Sprintf("reads %#04x, misses %#04x", read, missed)
	}
	if missed := a.written &^ written; missed != 0 && !noOperands(i) {
		return fmt.Sprintf("writes %#04x, misses %#04x", written, missed)
	}
	if more := read&^a.read | written&^a.written; more != 0 && !generous(i) && !noOperands(i) {
		return fmt.Sprintf("registers %#04x too many", more)
	}
	if _, known := i.StackDelta(); !known && a.written&RSP.Mask() == 0 && i.Kind != FarBranch && i.Kind != Syscall && !generous(i) {
		return "stack change is unknown though rsp is not written"
	}
	stack := a.written&RSP.Mask() != 0
	if a.access && !stack && !noOperands(i) && !i.ownStack() && !i.MayFault() {
		return "accesses memory and may not fault"
	}
	return ""
}

func checkFlags(i Inst, a zydisAnswer) string {
	// The flag that repe cmps and scas test is the one they have made themselves.
	if a.tested != 0 && !i.FlagsRead() && !i.stringOp() {
		return "does not read flags"
	}
	if a.tested == 0 && i.FlagsRead() && i.Kind == Other {
		return "reads flags"
	}
	// Of vptest and vtestps Zydis knows only two flags; Intel SDM vol. 2 says that the rest is cleared.
	vtest := i.Encoding == VEX && i.Map == Map0F38 && (i.Opcode == 0x0E || i.Opcode == 0x0F || i.Opcode == 0x17)
	if i.FlagsWritten() && (a.changed != allFlags || a.tested != 0) && !vtest {
		return "overwrites all flags"
	}
	return ""
}

func TestAgreesWithZydis(t *testing.T) {
	t.Parallel()
	zydis := buildZydis(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	wrong, instructions := 0, 0
	for opcode := range 256 {
		records := formsOf(byte(opcode), rnd)
		for k, a := range askZydis(t, zydis, records) {
			if a.length != 0 {
				instructions++
			}
			if what := checkAgainstZydis(records[k], a); what != "" {
				if wrong++; wrong <= 30 {
					t.Errorf("% x: %s", records[k], what)
				}
			}
		}
	}
	t.Logf("%d instructions, %d differences", instructions, wrong)
}
