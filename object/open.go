package object

import (
	"fmt"
	"os"
)

// Open opens the file and parses its headers. The image must be closed.
//
// What is read of the file is read into memory of its own, when it is first needed,
// and bounded by an Allowance. A file that is written to or truncated meanwhile gives
// an error that wraps ErrChanged; replacing it by renaming another one over it, as
// package managers and linkers do, is not even noticed.
//
// A fat file of one architecture is opened as that; for several the error is a
// FatError that lists them, and OpenArch opens one.
func Open(path string) (*Image, error) { return Opener{}.Open(path) }

// OpenArch is Open for one architecture, "" for the only one; see ParseArch.
func OpenArch(path, arch string) (*Image, error) { return Opener{}.OpenArch(path, arch) }

// OpenID is Open for an ID in lower-case hexadecimal: a file with another ID is
// refused with an IDError, and of a fat file the part with the ID is opened.
func OpenID(path, id string) (*Image, error) { return Opener{}.OpenID(path, id) }

// An Opener opens files that share an Allowance.
type Opener struct {
	// Memory bounds what the files take. With nil each has an Allowance of its own,
	// with the limit of DefaultMemory.
	Memory *Allowance
}

// Open is like the function of the same name.
func (o Opener) Open(path string) (*Image, error) { return o.OpenArch(path, "") }

// OpenArch is like the function of the same name.
func (o Opener) OpenArch(path, arch string) (*Image, error) {
	return o.open(path, func(c *contents) (*Image, error) { return parseContents(path, c, arch) })
}

// OpenID is like the function of the same name.
func (o Opener) OpenID(path, id string) (*Image, error) {
	return o.open(path, func(c *contents) (*Image, error) { return parseID(path, c, id) })
}

// open opens a file and has it parsed.
func (o Opener) open(path string, parse func(*contents) (*Image, error)) (*Image, error) {
	c, err := openContents(path, o.Memory)
	if err != nil {
		return nil, err
	}
	i, err := parse(c)
	if err != nil {
		_ = c.close() // only read from
		return nil, err
	}
	i.path, i.file = path, c.info
	return i, nil
}

// FileInfo describes the file that was opened, as it was then; nil for an image that was not opened as a file.
func (i *Image) FileInfo() os.FileInfo { return i.file }

// Slices lists the architectures of a fat file; none, and no error, for any other.
func Slices(path string) ([]Slice, error) {
	c, err := openContents(path, nil)
	if err != nil {
		return nil, err
	}
	defer c.close() // only read from
	return readSlices(path, c)
}

// openRegular opens a regular file for reading and refuses everything else, without
// an effect on what it refuses: opening some devices has effects, and opening a FIFO
// waits for its writer.
func openRegular(path string) (*os.File, os.FileInfo, error) {
	f, err := openQuietly(path)
	if err != nil {
		return nil, nil, fmt.Errorf("object: %w", err)
	}
	info, err := f.Stat()
	if err == nil {
		err = wantRegular(path, info)
	}
	if err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("object: %w", err)
	}
	return f, info, nil
}

// openAsked asks the path first what it is, and leaves the rest to a look at the open
// file, because the path may have come to mean another.
func openAsked(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err == nil {
		err = wantRegular(path, info)
	}
	if err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_RDONLY|openNonblock, 0)
}

func wantRegular(path string, info os.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: not a regular file (%s)", path, info.Mode().Type())
	}
	return nil
}

// Close closes the file and gives its memory back. Slices of its bytes must not be
// used afterwards; names and inflated data remain valid. A second Close does nothing.
func (i *Image) Close() error {
	i.size = 0
	if i.shared {
		return nil
	}
	if err := i.contents.close(); err != nil {
		return i.errorf("closing: %w", err)
	}
	return nil
}
