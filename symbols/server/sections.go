package server

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"

	"github.com/callreel/callreel/symbols/server/storage"
)

// maxSectionName bounds a section's name, in bytes: those of -ffunction-sections have their function's in them.
const maxSectionName = 4 << 10

// section hands out the bytes of one section as they are in the file, of the debug file or else of the executable.
func (s *Server) section(w http.ResponseWriter, r *http.Request, id, name string) error {
	if len(name) > maxSectionName {
		return refuse(http.StatusBadRequest, "the name of a section has %d bytes, more than %d", len(name), maxSectionName)
	}
	for _, kind := range []string{kindDebugInfo, kindExecutable} {
		o, err := s.open(r, id, kind)
		if err == nil {
			err = serveSection(w, r, o, name)
			_ = o.Close() // only read from
		}
		if !errors.Is(err, fs.ErrNotExist) && !isMissing(err) {
			return err
		}
	}
	return refuse(http.StatusNotFound, "no section %.60q in the files of %s", name, id)
}

func isMissing(err error) bool {
	var r *refusal
	return errors.As(err, &r) && r.status == http.StatusNotFound
}

// headerBuffer is how much is read of an object at once for its headers, in bytes: section headers and their names lie
// together at the end of most files.
const headerBuffer = 64 << 10

// serveSection sends a section of an object.
func serveSection(w http.ResponseWriter, r *http.Request, o storage.Object, name string) error {
	file, err := elf.NewFile(&blockReader{r: o, size: o.Info().Size})
	if err != nil {
		return errNoSection // Mach-O, or a map: clients of debuginfod ask for ELF's
	}
	section := file.Section(name)
	if section == nil || section.Type == elf.SHT_NOBITS {
		return errNoSection
	}
	size := int64(section.FileSize)
	if end := o.Info().Size; size < 0 || size > end || section.Offset > uint64(end-size) {
		return refuse(http.StatusUnprocessableEntity, "section %.60q is not in the file", name)
	}
	if err := checkMaxSize(r, size); err != nil {
		return err
	}
	info := o.Info()
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set(headerSize, strconv.FormatInt(size, 10))
	h.Set(headerFile, fileName(&info))
	h.Set("Cache-Control", "max-age=3600")
	h.Set("ETag", strconv.Quote(fmt.Sprintf("%s-%x", info.Tag, section.Offset)))
	http.ServeContent(w, r, "", info.Modified, &partReader{of: o, start: int64(section.Offset), size: size, at: -1})
	return nil
}

// partReader reads a part of an object, without going back and forth in it: each turn would be a request to a bucket.
type partReader struct {
	of          io.ReadSeeker
	start, size int64
	off         int64 // of the next Read, in the part
	at          int64 // where the object is, in the part; -1 if that is not known
}

// Seek implements io.Seeker.
func (p *partReader) Seek(off int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		off += p.off
	case io.SeekEnd:
		off += p.size
	}
	if off < 0 {
		return 0, errors.New("server: a place before a section")
	}
	p.off = off
	return off, nil
}

// Read implements io.Reader.
func (p *partReader) Read(b []byte) (int, error) {
	if p.off >= p.size {
		return 0, io.EOF
	}
	if p.at != p.off {
		if _, err := p.of.Seek(p.start+p.off, io.SeekStart); err != nil {
			return 0, err
		}
		p.at = p.off
	}
	n, err := p.of.Read(b[:min(int64(len(b)), p.size-p.off)])
	p.off += int64(n)
	p.at = p.off
	return n, err
}

// blockReader reads in blocks and keeps the latest few: a header is read in small pieces, and each piece out of a bucket
// would be a request.
type blockReader struct {
	r      io.ReaderAt
	size   int64
	blocks [8]struct {
		at   int64
		data []byte
	}
	next int
}

// ReadAt implements io.ReaderAt.
func (b *blockReader) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 || off >= b.size {
		return 0, io.EOF
	}
	for n < len(p) && off < b.size {
		data, err := b.block(off / headerBuffer * headerBuffer)
		if err != nil {
			return n, err
		}
		k := copy(p[n:], data[off%headerBuffer:])
		n, off = n+k, off+int64(k)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (b *blockReader) block(at int64) ([]byte, error) {
	for k := range b.blocks {
		if b.blocks[k].data != nil && b.blocks[k].at == at {
			return b.blocks[k].data, nil
		}
	}
	data := make([]byte, min(headerBuffer, b.size-at))
	if _, err := b.r.ReadAt(data, at); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	b.blocks[b.next].at, b.blocks[b.next].data = at, data
	b.next = (b.next + 1) % len(b.blocks)
	return data, nil
}
