package object

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/klauspost/compress/zstd"

	"github.com/callreel/callreel/object/internal/inflate"
)

const (
	// maxInflated bounds one inflated section. The largest .debug_info sections
	// of today's browsers are below it; DWARF's 32-bit format ends there too.
	maxInflated = min(4<<30, math.MaxInt)

	// maxDeflateRatio is the most that deflate can expand: 258 bytes from two
	// bits (RFC 1951 §3.2.5 with one-bit codes).
	maxDeflateRatio = 1032

	// maxZstdRatio is above what zstd can expand: an RLE block makes 128 KiB of
	// four bytes (RFC 8878 §3.1.1.2).
	maxZstdRatio = 128 << 10 / 4

	// maxZstdWindow is what zstd --ultra --long=27 needs; linkers use far less.
	maxZstdWindow = 128 << 20
)

var errShortHeader = errors.New("too short for a compression header")

// inflateSection inflates a section with SHF_COMPRESSED, whose contents start
// with a Chdr (gABI, chapter 4, Compression Header).
func (i *Image) inflateSection(raw []byte) ([]byte, error) {
	header := 24
	if i.Class == Class32 {
		header = 12
	}
	if len(raw) < header {
		return nil, errShortHeader
	}
	kind := elf.CompressionType(i.ByteOrder.Uint32(raw))
	var size uint64
	if i.Class == Class32 {
		size = uint64(i.ByteOrder.Uint32(raw[4:]))
	} else {
		size = i.ByteOrder.Uint64(raw[8:])
	}
	switch kind {
	case elf.COMPRESS_ZLIB:
		return i.contents.inflateZlib(raw[header:], size)
	case elf.COMPRESS_ZSTD:
		return i.contents.inflateZstd(raw[header:], size)
	}
	return nil, fmt.Errorf("unknown compression type %d, want zlib (1) or zstd (2)", uint32(kind))
}

// inflateZdebug inflates a .zdebug_ section: "ZLIB", the size as eight
// big-endian bytes, a zlib stream.
func (i *Image) inflateZdebug(raw []byte) ([]byte, error) {
	body, ok := bytes.CutPrefix(raw, []byte("ZLIB"))
	if !ok || len(body) < 8 {
		return nil, errShortHeader
	}
	return i.contents.inflateZlib(body[8:], binary.BigEndian.Uint64(body))
}

func (c *contents) inflateZlib(packed []byte, size uint64) ([]byte, error) {
	if err := c.checkInflatedSize(packed, size, maxDeflateRatio); err != nil {
		return nil, err
	}
	out, err := inflate.Zlib(packed, int(size))
	if err != nil {
		return nil, fmt.Errorf("zlib: %w", err)
	}
	return out, nil
}

func (c *contents) inflateZstd(packed []byte, size uint64) ([]byte, error) {
	if err := c.checkInflatedSize(packed, size, maxZstdRatio); err != nil {
		return nil, err
	}
	r, err := zstd.NewReader(bytes.NewReader(packed),
		zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxZstdWindow))
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	defer r.Close()
	out, err := readExactly(r, size, len(packed))
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	return out, nil
}

// checkInflatedSize refuses a header whose size the packed bytes cannot reach, or
// that there is no room for.
func (c *contents) checkInflatedSize(packed []byte, size uint64, ratio uint64) error {
	if size > maxInflated || size > uint64(len(packed))*ratio {
		return fmt.Errorf("header promises %d bytes, impossible from %d packed ones", size, len(packed))
	}
	return c.take(size, "what it inflates to")
}

// readExactly reads size bytes and then the end of the stream. Memory for all is taken
// once the stream has yielded sixteen times what it is packed in, more than nearly
// every real section: a header that lies costs little.
func readExactly(r io.Reader, size uint64, packed int) ([]byte, error) {
	out := make([]byte, min(size, 16*uint64(packed)+4096))
	n, err := io.ReadFull(r, out)
	if err == nil && uint64(n) < size {
		whole := make([]byte, size)
		copy(whole, out)
		out = whole
		var k int
		k, err = io.ReadFull(r, out[n:])
		n += k
	}
	if err != nil {
		return nil, fmt.Errorf("after %d of %d bytes: %w", n, size, unexpected(err))
	}
	// The last read makes the decoder check its checksum and shows surplus data.
	var one [1]byte
	switch k, err := io.ReadFull(r, one[:]); {
	case k > 0:
		return nil, fmt.Errorf("yields more than the %d bytes that its header promises", size)
	case !errors.Is(err, io.EOF):
		return nil, err
	}
	return out, nil
}

// unexpected turns an end of stream, which is no error by itself, into one.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
