package object

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// ErrChanged is wrapped by the errors of a file that was truncated or written to
// while it was read.
var ErrChanged = errors.New("the file was changed while it was read")

// contents are the bytes of a file, or bytes in memory. Of a file each block is read
// into private memory when it is first asked for, and once: what has been seen stays
// as it was, whoever writes to the file or truncates it. A mapping would do neither:
// its bytes change with the file's, and an access behind a new end is SIGBUS.
type contents struct {
	data      []byte // of a file, room for all of it; what has not been read is zero
	allowance *Allowance
	taken     atomic.Uint64 // of the allowance

	// Of a file only.
	file      *os.File
	info      os.FileInfo // as it was when it was opened
	onlyOurs  bool        // nobody but root and us may write to it
	onDisk    int64
	blockBits uint
	read      []atomic.Uint64 // a bit for each block of data
	mu        sync.Mutex      // held while blocks are read
	failed    atomic.Pointer[error]
	free      func() error
	mapping   struct {
		once  sync.Once
		data  []byte
		unmap func() error
		err   error
	}
}

const (
	// minBlockBits is the size of blocks: large enough that a system call for each
	// costs little beside copying it, small enough that what a lookup here and there
	// needs stays small.
	minBlockBits = 16

	// maxBlocks bounds the table of blocks: files of 64 GiB and more, which have many
	// holes or are core files, have larger ones.
	maxBlocks = 1 << 20
)

// memoryContents are bytes in memory, which are the caller's and are not counted.
func memoryContents(data []byte) *contents {
	a := NewAllowance(0)
	a.credit(int64(len(data)))
	return &contents{data: data, allowance: a}
}

// take counts memory that is kept until the contents are closed.
func (c *contents) take(n uint64, what string) error {
	if err := c.allowance.Take(n, what); err != nil {
		return err
	}
	c.taken.Add(n)
	return nil
}

// openContents opens a regular file.
func openContents(path string, a *Allowance) (*contents, error) {
	f, info, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	c, err := fileContents(f, info, a)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("object: %s: %w", path, err)
	}
	return c, nil
}

func fileContents(f *os.File, info os.FileInfo, a *Allowance) (*contents, error) {
	size := info.Size()
	if size > math.MaxInt {
		return nil, fmt.Errorf("%d bytes do not fit into this system's address space", size)
	}
	if a == nil {
		a = NewAllowance(0)
	}
	c := &contents{file: f, info: info, onlyOurs: onlyOurs(info), onDisk: onDisk(info), allowance: a, blockBits: minBlockBits}
	if size > 0 {
		var err error
		if c.data, c.free, err = reserve(int(size)); err != nil {
			return nil, fmt.Errorf("room for %d bytes: %w", size, err)
		}
		for (size-1)>>c.blockBits >= maxBlocks {
			c.blockBits++
		}
		c.read = make([]atomic.Uint64, (size-1)>>c.blockBits>>6+1)
	}
	a.credit(c.onDisk)
	return c, nil
}

// errBeyond is the error of what the file does not reach to. It is the end of a
// sentence that says how many bytes of what.
type errBeyond uint64

func (e errBeyond) Error() string {
	return fmt.Sprintf("reach beyond the end of the file (%#x)", uint64(e))
}

// slice returns the bytes [off, off+size). No sum of off and size is formed, so that
// none can wrap.
func (c *contents) slice(off, size uint64) ([]byte, error) {
	n := uint64(len(c.data))
	if off > n || size > n-off {
		return nil, errBeyond(n)
	}
	if c.file != nil && size > 0 {
		if err := c.load(off, off+size); err != nil {
			return nil, err
		}
	}
	return c.data[off : off+size : off+size], nil
}

// load makes sure that the bytes [from, to), which are some, are there.
func (c *contents) load(from, to uint64) error {
	if err := c.failed.Load(); err != nil {
		return *err
	}
	first, last := from>>c.blockBits, (to-1)>>c.blockBits
	if c.missing(first, last) > last {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for k := c.missing(first, last); k <= last; k = c.missing(k, last) {
		end := k + 1
		for end <= last && !c.has(end) {
			end++
		}
		if err := c.fill(k, end); err != nil {
			return err
		}
	}
	return nil
}

func (c *contents) has(block uint64) bool { return c.read[block>>6].Load()>>(block&63)&1 != 0 }

// missing returns the first block from first to last that has not been read, and one
// behind last when there is none.
func (c *contents) missing(first, last uint64) uint64 {
	for k := first; k <= last; {
		gone := ^c.read[k>>6].Load() >> (k & 63)
		if gone != 0 {
			return min(k+uint64(bits.TrailingZeros64(gone)), last+1)
		}
		k = k&^63 + 64
	}
	return last + 1
}

// fill reads the blocks [from, to).
func (c *contents) fill(from, to uint64) error {
	start, end := from<<c.blockBits, min(to<<c.blockBits, uint64(len(c.data)))
	if err := c.take(end-start, "what is read of the file"); err != nil {
		return fmt.Errorf("can't be read: %w", err) // and may be, another time
	}
	_, err := c.file.ReadAt(c.data[start:end], int64(start))
	if err == nil || errors.Is(err, io.EOF) {
		err = c.unchanged(err)
	}
	if err != nil {
		err = fmt.Errorf("can't be read at %#x: %w", start, err)
		c.failed.Store(&err)
		return err
	}
	for k := from; k < to; k++ {
		c.read[k>>6].Or(1 << (k & 63))
	}
	return nil
}

// unchanged says that the file is still as it was when it was opened, as far as its
// size and time tell.
func (c *contents) unchanged(read error) error {
	info, err := c.file.Stat()
	switch {
	case err != nil:
		return err
	case info.Size() != c.info.Size():
		return fmt.Errorf("%w: it has %d bytes, and had %d", ErrChanged, info.Size(), c.info.Size())
	case read != nil:
		return fmt.Errorf("%w: %w", ErrChanged, io.ErrUnexpectedEOF)
	case !info.ModTime().Equal(c.info.ModTime()):
		return fmt.Errorf("%w: its modification time is %s, and was %s", ErrChanged,
			info.ModTime().Format(time.RFC3339Nano), c.info.ModTime().Format(time.RFC3339Nano))
	}
	return nil
}

// mapped returns the bytes [off, off+size) as a part of a mapping of the file, which
// CatchFaults is for.
func (c *contents) mapped(off, size uint64) ([]byte, error) {
	if off > uint64(len(c.data)) || size > uint64(len(c.data))-off {
		return nil, errBeyond(len(c.data))
	}
	m := &c.mapping
	m.once.Do(func() {
		if err := c.failed.Load(); err != nil {
			m.err = *err
		} else {
			m.data, m.unmap, m.err = mapFile(c.file, len(c.data))
		}
	})
	if m.err != nil {
		return nil, fmt.Errorf("can't be mapped: %w", m.err)
	}
	return m.data[off : off+size : off+size], nil
}

// copyOf returns a copy of bytes of a file that are needed once, as a packed section
// is: the memory is the caller's. Bytes in memory are returned as they are.
func (c *contents) copyOf(off, size uint64) ([]byte, error) {
	if c.file == nil || size < 1<<c.blockBits {
		return c.slice(off, size)
	}
	if off > uint64(len(c.data)) || size > uint64(len(c.data))-off {
		return nil, errBeyond(len(c.data))
	}
	if err := c.failed.Load(); err != nil {
		return nil, *err
	}
	if err := c.allowance.Take(size, "a packed section"); err != nil {
		return nil, err
	}
	defer c.allowance.Give(size) // it is dropped as soon as it is inflated
	out := make([]byte, size)
	_, err := c.file.ReadAt(out, int64(off))
	if err == nil || errors.Is(err, io.EOF) {
		err = c.unchanged(err)
	}
	if err != nil {
		return nil, fmt.Errorf("can't be read at %#x: %w", off, err)
	}
	return out, nil
}

// readInto reads the bytes from off on into the caller's memory, and keeps nothing.
func (c *contents) readInto(buf []byte, off uint64) error {
	if off > uint64(len(c.data)) || uint64(len(buf)) > uint64(len(c.data))-off {
		return errBeyond(len(c.data))
	}
	if c.file == nil {
		copy(buf, c.data[off:])
		return nil
	}
	if err := c.failed.Load(); err != nil {
		return *err
	}
	_, err := c.file.ReadAt(buf, int64(off))
	if err == nil || errors.Is(err, io.EOF) {
		err = c.unchanged(err)
	}
	if err != nil {
		return fmt.Errorf("can't be read: %w", err)
	}
	return nil
}

// close lets go of the file and its memory. A second close does nothing.
func (c *contents) close() error {
	c.data = nil
	if c.file == nil {
		return nil
	}
	err := c.file.Close()
	c.file = nil
	if c.free != nil {
		err = errors.Join(err, c.free())
	}
	c.mapping.once.Do(func() { c.mapping.err = errClosed })
	if c.mapping.unmap != nil {
		err = errors.Join(err, c.mapping.unmap())
	}
	c.allowance.Give(c.taken.Load())
	c.allowance.credit(-c.onDisk)
	return err
}
