package isa

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Code is machine code that is appended for a known address, with labels in it. An architecture's assembler has one in it, and
// appends instructions; what is the same for all architectures is here.
//
// Errors are kept, the first of them, and given by Finish, so that straight-line code stays readable. The zero Code stands at address 0.
type Code struct {
	base   uint64
	buf    []byte
	labels []int // offset of each label, -1 while unplaced
	err    error
}

// Label names a place in one Code.
type Label int

// Start makes c code that will stand at base. It is appended to buf, whose contents are lost.
func (c *Code) Start(base uint64, buf []byte) { *c = Code{base: base, buf: buf[:0]} }

// PC is the address of the next byte.
func (c *Code) PC() uint64 { return c.base + uint64(len(c.buf)) }

// Len is the number of bytes so far.
func (c *Code) Len() int { return len(c.buf) }

// Base is the address of the first byte.
func (c *Code) Base() uint64 { return c.base }

// Since is the code from offset off on. It may be changed until more is appended.
func (c *Code) Since(off int) []byte { return c.buf[off:] }

// Extend appends n bytes as they are in the buffer, and returns them to be filled in. They may be until more is appended.
func (c *Code) Extend(n int) []byte {
	from := len(c.buf)
	c.buf = slices.Grow(c.buf, n)[:from+n]
	return c.buf[from:]
}

// Space is what the buffer has from one offset up to another, both behind the code so far, for another assembler; Extend takes over what
// that has made. The buffer that c was started with must reach so far.
func (c *Code) Space(from, to int) []byte { return c.buf[from:from:to] }

// Raw appends bytes as they are.
func (c *Code) Raw(b ...byte) { c.buf = append(c.buf, b...) }

// Put32 appends four bytes, the lowest first.
func (c *Code) Put32(v uint32) { c.buf = binary.LittleEndian.AppendUint32(c.buf, v) }

// Put64 appends eight bytes, the lowest first.
func (c *Code) Put64(v uint64) { c.buf = binary.LittleEndian.AppendUint64(c.buf, v) }

// NewLabel makes a label to be placed later.
func (c *Code) NewLabel() Label {
	c.labels = append(c.labels, -1)
	return Label(len(c.labels) - 1)
}

// Place puts the label here.
func (c *Code) Place(l Label) { c.labels[l] = len(c.buf) }

// Placed is the address of a label that has been placed.
func (c *Code) Placed(l Label) uint64 { return c.base + uint64(c.labels[l]) }

// Find is the offset of a label that is used at another offset. If it was never placed that is an error, and ok is false.
func (c *Code) Find(l Label, used int) (off int, ok bool) {
	if c.labels[l] < 0 {
		c.Fail(fmt.Errorf("isa: label %d used at %#x was never placed", l, c.base+uint64(used)))
		return 0, false
	}
	return c.labels[l], true
}

// Forget forgets all labels: they are not to be used any more.
func (c *Code) Forget() { c.labels = c.labels[:0] }

// Fail keeps the first error for Finish.
func (c *Code) Fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// Made returns the code, and the first error.
func (c *Code) Made() ([]byte, error) { return c.buf, c.err }
