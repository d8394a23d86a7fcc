package dwarf

import "github.com/callreel/callreel/internal/leb128"

// encoding is how the value of a form is laid out.
type encoding uint8

// The encodings. Those up to encFixedMax are numbers of that many bytes; no form
// but flag_present and implicit_const has none.
const (
	encNothing  encoding = 0
	encFixedMax encoding = 16

	encULEB encoding = iota + encFixedMax - 1
	encSLEB
	encString
	encBlock // length as ULEB128
	encBlock1
	encBlock2
	encBlock4
	encConst    // the value stands in the abbreviation
	encIndirect // the form stands before the value
	encUnknown

	// These become fixed ones once the unit's sizes are known.
	encAddr
	encOffset
	encRefAddr
)

// formEncodings holds the encodings of the standard's forms by number (DWARF 5
// §7.5.6).
var formEncodings = [...]encoding{
	0x00: encUnknown, 0x02: encUnknown,
	formAddr: encAddr, formBlock2: encBlock2, formBlock4: encBlock4,
	formData2: 2, formData4: 4, formData8: 8, formString: encString,
	formBlock: encBlock, formBlock1: encBlock1, formData1: 1, formFlag: 1,
	formSdata: encSLEB, formStrp: encOffset, formUdata: encULEB, formRefAddr: encRefAddr,
	formRef1: 1, formRef2: 2, formRef4: 4, formRef8: 8, formRefUdata: encULEB,
	formIndirect: encIndirect, formSecOffset: encOffset, formExprloc: encBlock,
	formFlagPresent: encNothing, formStrx: encULEB, formAddrx: encULEB,
	formRefSup4: 4, formStrpSup: encOffset, formData16: 16, formLineStrp: encOffset,
	formRefSig8: 8, formImplicitConst: encConst, formLoclistx: encULEB,
	formRnglistx: encULEB, formRefSup8: 8,
	formStrx1: 1, formStrx2: 2, formStrx3: 3, formStrx4: 4,
	formAddrx1: 1, formAddrx2: 2, formAddrx3: 3, formAddrx4: 4,
}

// shape is what the sizes of forms depend on.
type shape struct {
	addr   uint8 // bytes of an address
	offset uint8 // bytes of an offset: 4, or 8 in the 64-bit format
	v2     bool  // DWARF 2 §7.5.4: ref_addr has the size of an address
}

// encode returns how the form is laid out, and the form itself as it is to be
// understood: the GNU ones mean what later became standard.
func (s shape) encode(form uint64) (encoding, uint8) {
	switch form {
	case formGNUAddrIndex:
		return encULEB, formAddrx
	case formGNUStrIndex:
		return encULEB, formStrx
	case formGNURefAlt:
		return encoding(s.offset), formRefSup4
	case formGNUStrpAlt:
		return encoding(s.offset), formStrpSup
	}
	if form >= uint64(len(formEncodings)) {
		return encUnknown, 0
	}
	e := formEncodings[form]
	switch e {
	case encAddr:
		e = encoding(s.addr)
	case encOffset:
		e = encoding(s.offset)
	case encRefAddr:
		if e = encoding(s.offset); s.v2 {
			e = encoding(s.addr)
		}
	}
	return e, uint8(form)
}

// value reads a value of the encoding at b[at] and returns where it ends, -1 when
// it does not fit. For strings and blocks, the value is where the contents start.
func (e encoding) value(b []byte, at int, big bool) (v uint64, end int) {
	if e <= encFixedMax {
		if at > len(b) || len(b)-at < int(e) {
			return 0, -1
		}
		v, _ = fixed(b[at:], int(e), big) // of 16 bytes nobody wants the value
		return v, at + int(e)
	}
	switch e {
	case encULEB:
		return leb128.Uint(b, at)
	case encSLEB:
		s, end := leb128.Int(b, at)
		return uint64(s), end
	case encString:
		return uint64(at), skipString(b, at)
	case encBlock:
		n, start := leb128.Uint(b, at)
		return uint64(start), skipBlock(b, start, n)
	case encBlock1, encBlock2, encBlock4:
		size := 1 << (e - encBlock1)
		n, start := encoding(size).value(b, at, big)
		return uint64(start), skipBlock(b, start, n)
	}
	return 0, -1
}

// skipBlock returns where n bytes from b[at] end, -1 when there are fewer. at may
// be -1 itself, from a length that could not be read.
func skipBlock(b []byte, at int, n uint64) int {
	if at < 0 || at > len(b) || n > uint64(len(b)-at) {
		return -1
	}
	return at + int(n)
}

// skipString returns where the string at b[at] ends, its NUL included. Strings in
// entries are short, as linkers merge the others, so that a loop beats a call.
func skipString(b []byte, at int) int {
	for uint(at) < uint(len(b)) {
		at++
		if b[at-1] == 0 {
			return at
		}
	}
	return -1
}
