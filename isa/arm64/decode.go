package arm64

import (
	"encoding/binary"
	"errors"
)

// The errors of Decode. They carry nothing, so that a scan over data does not allocate; the caller knows the address.
var (
	// ErrTruncated means that there are fewer than four bytes.
	ErrTruncated = errors.New("instruction is cut off by the end of the bytes")
	// ErrInvalid means that the word is no instruction that this package knows: see the package comment.
	ErrInvalid = errors.New("not a known A64 instruction")
)

// Decode reads the instruction at the start of code, which is little-endian as all A64 code is; bytes behind it have
// no effect. The error is ErrTruncated or ErrInvalid, and the Inst is then empty. Decode does not allocate.
func Decode(code []byte) (inst Inst, err error) {
	err = DecodeTo(&inst, code)
	return inst, err
}

// DecodeTo is Decode into a variable of the caller's.
func DecodeTo(inst *Inst, code []byte) error {
	if len(code) < Len {
		*inst = Inst{}
		return ErrTruncated
	}
	return DecodeWord(inst, binary.LittleEndian.Uint32(code))
}

// DecodeWord is DecodeTo for a word that was read already.
func DecodeWord(inst *Inst, word uint32) error {
	*inst = Inst{Word: word, Base: NoReg}
	if !inst.decode() {
		*inst = Inst{}
		return ErrInvalid
	}
	return nil
}

// decode goes by the main encoding table (Arm ARM C4.1).
func (i *Inst) decode() bool {
	switch i.field(25, 4) {
	case 0b0000:
		if i.bit(31) {
			return i.scalable(SME)
		}
		return i.reserved()
	case 0b0010:
		return i.scalable(SVE)
	case 0b1000, 0b1001:
		return i.immediate()
	case 0b1010, 0b1011:
		return i.branch()
	case 0b0100, 0b0110, 0b1100, 0b1110:
		return i.memory()
	case 0b0101, 0b1101:
		return i.register()
	case 0b0111, 0b1111:
		return i.vector()
	}
	return false
}

// reserved is udf (C4.1.1). It reports registers to whoever handles the signal.
func (i *Inst) reserved() bool {
	i.Class, i.Kind = Reserved, Undefined
	return i.field(16, 16) == 0
}

// scalable is all of SVE's or SME's encoding space. A general register that is written is always in the lowest five
// bits (SVE: Arm ARM C4.1 "SVE encodings"), and those read are among the places for Rd, Rn and Rm and, for the slices of
// ZA, X8 to X15. Flags may be set by predicate instructions and are read by none but cterm's.
func (i *Inst) scalable(c Class) bool {
	i.Class = c
	i.readsSP(i.Rd())
	i.readsSP(i.Rn())
	i.readsSP(i.Rm())
	i.writesSP(i.Rd())
	i.read |= 0xFF00
	i.readsFlags, i.writesFlags = true, true
	return true
}
