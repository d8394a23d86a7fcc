package inflate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// The errors that are wrapped by those of Zlib.
var (
	ErrHeader    = errors.New("no zlib header")
	ErrTruncated = errors.New("stream ends early")
	ErrCorrupt   = errors.New("corrupt stream")
	ErrTooLong   = errors.New("stream yields more than it should")
	ErrTooShort  = errors.New("stream yields less than it should")
	ErrChecksum  = errors.New("checksum does not match")
)

// Zlib decodes a zlib stream (RFC 1950) of exactly size bytes into a new slice and
// checks its Adler-32. What follows the stream is not looked at. Memory for sixteen
// times the packed size is taken at first, and for all once the stream has yielded that,
// so that a size that lies costs little. Errors name the place in the packed bytes.
func Zlib(packed []byte, size int) ([]byte, error) {
	if err := checkHeader(packed); err != nil {
		return nil, err
	}
	d := decoder{in: packed, pos: 2, size: size, sum: adlerStart}
	d.out = make([]byte, min(size, firstSize(len(packed))))
	if err := d.blocks(); err != nil {
		return nil, fmt.Errorf("at packed byte %d of %d, after %d of %d bytes: %w", min(d.pos, len(packed)), len(packed), d.n, size, err)
	}
	if d.n != size {
		return nil, fmt.Errorf("after %d of %d bytes: %w", d.n, size, ErrTooShort)
	}
	d.check()
	if len(packed)-d.pos < 4 {
		return nil, fmt.Errorf("checksum: %w", ErrTruncated)
	}
	if want := binary.BigEndian.Uint32(packed[d.pos:]); d.sum != want {
		return nil, fmt.Errorf("Adler-32 is %#08x, want %#08x: %w", d.sum, want, ErrChecksum)
	}
	return d.out[:d.n:d.n], nil
}

// firstSize is what is taken at once: enough for nearly every real section. Strings,
// which pack best, come to nine times their packed size.
func firstSize(packed int) int {
	if packed > (math.MaxInt-4096)/16 {
		return math.MaxInt
	}
	return 16*packed + 4096
}

// checkHeader checks the two bytes before the DEFLATE stream (RFC 1950 §2.2).
func checkHeader(packed []byte) error {
	if len(packed) < 2 {
		return fmt.Errorf("%w: %d bytes", ErrHeader, len(packed))
	}
	const deflate, maxWindow, dictionary = 8, 7, 0x20
	head := binary.BigEndian.Uint16(packed)
	if packed[0]&15 != deflate || packed[0]>>4 > maxWindow || head%31 != 0 {
		return fmt.Errorf("%w: %#04x", ErrHeader, head)
	}
	if packed[1]&dictionary != 0 {
		return fmt.Errorf("%w: it needs a preset dictionary", ErrHeader)
	}
	return nil
}
