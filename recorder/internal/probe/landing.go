package probe

import (
	"encoding/binary"
	"errors"
)

// Pointer encodings of the tables that unwinders read (LSB Core 5.0 §10.5.1, DW_EH_PE).
const (
	encOmit     = 0xFF
	encFormat   = 0x0F
	encRelation = 0x70
	encPCRel    = 0x10
	encULEB     = 0x01
	encU2       = 0x02
	encU4       = 0x03
	encU8       = 0x04
	encS4       = 0x0B
	encS8       = 0x0C
)

// errTooMuch ends the planning of an image whose tables overlap beyond reason.
var errTooMuch = errors.New("callreel: the tables of landing pads are larger than the image")

// markLandingPads marks where exceptions go on: the unwinder jumps there, no instruction does. They stand in the call-site
// tables of the language-specific data that CFI names (.gcc_except_table; Itanium C++ ABI, Exception Handling Tables).
func (im *Image) markLandingPads() error {
	left := 1 << 20
	for _, t := range im.loads {
		left += int(min(t.End-t.Start, 1<<32))
	}
	for _, t := range im.pads {
		left -= im.markPads(t)
		if left < 0 {
			return errTooMuch
		}
	}
	return nil
}

// padTable is a table of landing pads.
type padTable struct {
	start uint64 // of the code that its FDE describes
	lsda  uint64 // where it is
}

// markPads marks the landing pads of one table and returns how many bytes it has read. What can't be read gives none.
func (im *Image) markPads(f padTable) (read int) {
	r := lsda{im: im, at: f.lsda}
	start := f.start
	if enc := r.u8(); enc != encOmit {
		start = r.pointer(enc)
	}
	if enc := r.u8(); enc != encOmit {
		r.uleb() // where the types end
	}
	enc := r.u8()
	size := r.uleb()
	end := r.at + size
	if r.failed || end < r.at {
		return int(r.at - f.lsda)
	}
	for r.at < end && !r.failed {
		r.pointer(enc & encFormat) // from
		r.pointer(enc & encFormat) // so many bytes
		pad := r.pointer(enc & encFormat)
		r.uleb() // action
		if pad != 0 && !r.failed {
			im.markTarget(start + pad)
		}
	}
	return int(r.at - f.lsda)
}

// lsda reads on through memory; after a failure it gives zeros.
type lsda struct {
	im     *Image
	at     uint64
	buf    []byte // what follows at
	failed bool
}

func (r *lsda) bytes(n int) []byte {
	if len(r.buf) < n {
		for size := uint64(4096); ; size /= 2 { // the last page may be cut off
			b, err := r.im.Object.ReadAddr(r.at, size)
			if err == nil {
				r.buf = b
				break
			}
			if size <= uint64(n) {
				r.failed = true
				return make([]byte, 8)
			}
		}
	}
	if len(r.buf) < n {
		r.failed = true
		return make([]byte, 8)
	}
	b := r.buf[:n]
	r.buf = r.buf[n:]
	r.at += uint64(n)
	return b
}

func (r *lsda) u8() byte { return r.bytes(1)[0] }

func (r *lsda) uleb() (v uint64) {
	for shift := 0; shift < 70; shift += 7 {
		b := r.u8()
		v |= uint64(b&0x7F) << shift
		if b < 0x80 {
			return v
		}
	}
	r.failed = true
	return 0
}

// pointer reads a value of the encodings that compilers use here.
func (r *lsda) pointer(enc byte) (v uint64) {
	at := r.at
	switch enc & encFormat {
	case encULEB:
		v = r.uleb()
	case encU2:
		v = uint64(binary.LittleEndian.Uint16(r.bytes(2)))
	case encU4:
		v = uint64(binary.LittleEndian.Uint32(r.bytes(4)))
	case encS4:
		v = uint64(int64(int32(binary.LittleEndian.Uint32(r.bytes(4)))))
	case 0, encU8, encS8:
		v = binary.LittleEndian.Uint64(r.bytes(8))
	default:
		r.failed = true
	}
	switch enc & encRelation {
	case 0:
	case encPCRel:
		v += at
	default:
		r.failed = true
	}
	return v
}
