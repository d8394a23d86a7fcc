package crash

import (
	"encoding/binary"
	"fmt"
	"strings"

	"golang.org/x/arch/arm64/arm64asm"
	"golang.org/x/arch/x86/x86asm"

	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/unwind"
)

// An Instruction is one instruction of the code around the crashed thread's PC.
type Instruction struct {
	Address uint64
	Bytes   []byte
	Text    string // in GNU's syntax; "" where it isn't known
	At      bool   // the PC is here
}

// How much code is shown before the PC, where a sure way back is known, and from it on.
const (
	codeBefore = 6
	codeBehind = 6
)

// disassemble shows the code around the PC of the crashed thread.
func (r *Report) disassemble() {
	if len(r.Threads) == 0 || !r.Threads[0].Crashed || r.arch == nil || len(r.Threads[0].Frames) == 0 {
		return
	}
	t := r.Threads[0]
	at := t.Frames[0].Address
	if t.regs != nil {
		at = t.regs.PC
	}
	code := func(addr uint64, n int) []byte {
		b := make([]byte, n)
		got := 0
		if r.memory != nil {
			got, _ = r.memory.ReadMemory(addr, b)
		}
		if got == 0 {
			got = copy(b, r.fileBytes(addr, uint64(n)))
		}
		if c := r.bytes; got == 0 && c != nil && addr >= c.start && addr-c.start < uint64(len(c.data)) {
			got = copy(b, c.data[addr-c.start:])
		}
		return b[:got]
	}
	r.Code = r.before(at, code)
	b := code(at, (codeBehind+1)*15)
	for k := 0; k <= codeBehind && len(b) > 0; k++ {
		text, n := instruction(r.arch, b, at)
		if n == 0 {
			if n = 1; r.arch == unwind.ARM64 {
				n = 4
			}
			n = min(n, len(b))
		}
		r.Code = append(r.Code, Instruction{Address: at, Bytes: b[:n:n], Text: text, At: k == 0})
		if b, at = b[n:], at+uint64(n); text == "" && r.arch != unwind.ARM64 {
			break // where the next one begins isn't known
		}
	}
}

// before lists the instructions before the PC. On x86 they can't be read backwards: several
// beginnings are tried, and the one counts that all further ones join.
func (r *Report) before(pc uint64, code func(uint64, int) []byte) []Instruction {
	const back = codeBefore * 8
	var b []byte
	start := pc
	for n := back; n > 0 && len(b) == 0; n -= 4 {
		if uint64(n) > pc {
			continue
		}
		if got := code(pc-uint64(n), n); len(got) == n {
			b, start = got, pc-uint64(n)
		}
	}
	step := 1
	if r.arch == unwind.ARM64 {
		step = 4
	}
	for from := 0; from < min(len(b), 16); from += step {
		var list []Instruction
		for at := from; at < len(b); {
			text, n := instruction(r.arch, b[at:], start+uint64(at))
			if r.arch == unwind.ARM64 {
				n = min(4, len(b)-at)
			}
			if n == 0 || at+n > len(b) {
				list = nil
				break
			}
			list = append(list, Instruction{Address: start + uint64(at), Bytes: b[at : at+n : at+n], Text: text})
			at += n
		}
		if len(list) > 0 {
			return list[max(0, len(list)-codeBefore):]
		}
	}
	return nil
}

// instruction decodes one instruction. The text is empty and the length 0 where it isn't known.
func instruction(a *unwind.Arch, b []byte, pc uint64) (text string, size int) {
	switch a {
	case unwind.ARM64:
		if len(b) < 4 {
			return "", 0
		}
		in, err := arm64asm.Decode(b)
		if err != nil {
			return "", 0
		}
		if word := binary.LittleEndian.Uint32(b); word>>26&0x1f == 5 { // B and BL: where they go (Arm ARM C6.2.26)
			return fmt.Sprintf("%s %#x", strings.ToLower(in.Op.String()), pc+uint64(int64(int32(word<<6)>>6)*4)), 4
		}
		return absolute(strings.TrimSpace(arm64asm.GNUSyntax(in)), pc), 4
	case unwind.AMD64:
		return x86Instruction(b, pc, 64)
	case unwind.I386:
		return x86Instruction(b, pc, 32)
	}
	return "", 0
}

// absolute puts the address in the place of one that is relative to the instruction: ".+0x10".
func absolute(text string, pc uint64) string {
	before, offset, ok := strings.Cut(text, ".+0x")
	v, valid := parseHex(offset)
	if !ok || !valid {
		return text
	}
	if strings.HasPrefix(text, "adrp") {
		pc &^= 1<<12 - 1
	}
	return fmt.Sprintf("%s%#x", before, pc+v)
}

func x86Instruction(b []byte, pc uint64, mode int) (string, int) {
	in, err := x86asm.Decode(b[:min(len(b), 15)], mode)
	known := err == nil && in.Len > 0
	if mode != 64 {
		if !known {
			return "", 0
		}
		return x86asm.GNUSyntax(in, pc, nil), in.Len
	}
	// Our own decoder knows the length of newer instructions, whose names it doesn't have.
	var own amd64.Inst
	switch {
	case amd64.DecodeTo(&own, b) != nil:
		return "", 0
	case own.Len == 4 && string(b[:4]) == "\xf3\x0f\x1e\xfa":
		return "endbr64", 4
	case own.Encoding != amd64.Legacy:
		if text := vectorText(&own, b); text != "" {
			return text, int(own.Len)
		}
	case known && in.Len == int(own.Len):
		return x86asm.GNUSyntax(in, pc, nil), in.Len
	}
	return "(not known)", int(own.Len)
}
