package object

import "io"

// streamBlock is how much of a file is in memory at a time when all of it is written somewhere.
const streamBlock = 1 << 20

// WriteTo writes all bytes of the file, or of one slice of a fat file, to w (io.WriterTo): for a sum of them, say. They aren't kept, so
// that a file of any size costs the same memory. The error wraps ErrChanged where the file changes meanwhile.
func (i *Image) WriteTo(w io.Writer) (int64, error) {
	buf := make([]byte, min(i.size, streamBlock))
	done := uint64(0)
	for done < i.size {
		part := buf[:min(uint64(len(buf)), i.size-done)]
		if err := i.contents.readInto(part, i.base+done); err != nil {
			return int64(done), i.errorf("%#x bytes at %#x %w", len(part), done, err)
		}
		n, err := w.Write(part)
		done += uint64(n)
		if err != nil {
			return int64(done), err
		}
	}
	return int64(done), nil
}
