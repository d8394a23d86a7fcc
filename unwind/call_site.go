package unwind

import (
	"encoding/binary"

	"github.com/callreel/callreel/isa/amd64"
)

// What is looked at around an address: the longest call instruction before it, and
// the longest code of a signal trampoline from it on.
const (
	maxCallLen       = 10
	maxTrampolineLen = 12
)

// around is the code around an address.
type around struct {
	pc    uint64
	buf   [maxCallLen + maxTrampolineLen]byte
	start int // offset of the first byte that could be read, before pc or at it
	end   int
}

// before is the code that ends at pc.
func (a *around) before() []byte { return a.buf[a.start:maxCallLen] }

// from is the code from pc on.
func (a *around) from() []byte { return a.buf[maxCallLen:max(a.end, maxCallLen)] }

// codeAround reads the code around an address, with one read unless code begins or ends
// there. The result is valid until the next call.
func (w *Walker) codeAround(pc uint64) *around {
	a := &w.around
	a.pc, a.start = pc, maxCallLen
	a.end = len(w.reader.code(pc-maxCallLen, a.buf[:]))
	if a.end > maxCallLen {
		a.start = 0
		return a
	}
	a.end = maxCallLen + len(w.reader.code(pc, a.buf[maxCallLen:]))
	for _, n := range [...]int{maxCallLen, 5, 4, 2} {
		if len(w.reader.code(pc-uint64(n), a.buf[maxCallLen-n:maxCallLen])) == n {
			a.start = maxCallLen - n
			break
		}
	}
	return a
}

// isCall says whether code ends with a call instruction.
func (w *Walker) isCall(code []byte) bool {
	if w.arch.lr >= 0 {
		return len(code) >= 4 && isARM64Call(code[len(code)-4:])
	}
	return isX86Call(code)
}

// isX86Call says whether one of the code's last bytes begins a call that ends with it:
// E8 rel32, or FF /2 with any operand (Intel SDM vol. 2, CALL).
func isX86Call(code []byte) bool {
	var in amd64.Inst
	for n := 2; n <= len(code); n++ {
		tail := code[len(code)-n:]
		// The first byte of either, or a prefix of it.
		if b := tail[0]; b != 0xe8 && b != 0xff && b&0xf0 != 0x40 && b != 0x3e && b != 0xf2 && b != 0x66 && b != 0x67 && b != 0x64 && b != 0x65 && b != 0x2e {
			continue
		}
		if amd64.DecodeTo(&in, tail) == nil && int(in.Len) == n && (in.Kind == amd64.Call || in.Kind == amd64.IndirectCall) {
			return true
		}
	}
	return false
}

// isARM64Call knows BL, BLR and the BLRA forms that check a signature (Arm ARM C6.2).
func isARM64Call(code []byte) bool {
	in := binary.LittleEndian.Uint32(code)
	return in>>26 == 0x25 || in&0xfffffc1f == 0xd63f0000 || in&0xfefff800 == 0xd63f0800
}

// atReturn says whether code begins with a near return.
func (w *Walker) atReturn(code []byte) bool {
	return w.arch.amd64 && (len(code) > 0 && code[0] == 0xc3 || len(code) > 1 && code[0] == 0xf3 && code[1] == 0xc3)
}
