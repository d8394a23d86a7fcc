package sampler

import (
	"errors"
	"testing"
)

// counted is memory that counts how much of it is read.
type counted struct {
	from  uint64
	bytes []byte
	read  int
}

func (c *counted) ReadMemory(addr uint64, buf []byte) (int, error) {
	if addr < c.from || addr-c.from > uint64(len(c.bytes)) {
		return 0, errors.New("nothing is there")
	}
	n := copy(buf, c.bytes[addr-c.from:])
	c.read += n
	return n, nil
}

// Code that a program has made, in a file that is gone, is no image: it isn't read whole to find that out.
func TestWhatIsNoImageIsNotReadWhole(t *testing.T) {
	const page = 4096
	m := &counted{from: 16 * page, bytes: make([]byte, 64*page)}
	im := &Image{Path: "/memfd:code", regions: []region{{start: m.from, end: m.from + uint64(len(m.bytes)), exec: true}}}
	if _, err := imageFromMemory(im, m, nil); !errors.Is(err, errNoImage) || m.read > 64 {
		t.Errorf("%d bytes were read, %v", m.read, err)
	}
	copy(m.bytes, "\x7fELF") // and nothing else: it is read, and refused for what else is missing
	if _, err := imageFromMemory(im, m, nil); err == nil || errors.Is(err, errNoImage) || m.read < len(m.bytes) {
		t.Errorf("%d bytes were read, %v", m.read, err)
	}
}
