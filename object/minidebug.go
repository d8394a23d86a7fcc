package object

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/therootcompany/xz"
)

const (
	// maxDebugdata bounds what .gnu_debugdata may inflate to, beside the allowance.
	maxDebugdata = 256 << 20

	// debugdataRatio is how much of it is taken for likely: those of distributions
	// inflate to four to six times their size.
	debugdataRatio = 8

	// maxDictionary bounds xz's dictionary: xz -9 uses 64 MiB.
	maxDictionary = 64 << 20
)

// visitDebugdata visits the functions of .gnu_debugdata ("mini debug info"): an ELF
// file compressed with xz whose .symtab names what .dynsym does not. Its section
// indices are its own, so they are replaced by those of this image.
func (e *elfFile) visitDebugdata(visit func(*Symbol) bool) error {
	s := e.filledSection(".gnu_debugdata")
	if s == nil {
		return nil
	}
	packed, err := e.SectionData(s)
	if err != nil {
		return err
	}
	raw, err := e.contents.inflateXZ(packed)
	if err != nil {
		return e.sectionErrorf(s, "%w", err)
	}
	defer e.contents.give(uint64(cap(raw)))
	inner, err := parseContents(e.name+"(.gnu_debugdata)", &contents{data: raw, allowance: e.contents.allowance}, "")
	if err != nil {
		return e.sectionErrorf(s, "%w", err)
	}
	t, err := inner.elf.staticTable()
	if t == nil || err != nil {
		return err
	}
	_, err = inner.elf.visitEntries(t, func(sym *Symbol) bool {
		if !sym.IsFunc() {
			return true
		}
		if at := e.sectionIndexAt(sym.Addr); at > 0 {
			sym.Section = uint32(at)
		}
		sym.Source = GnuDebugdata
		return visit(sym)
	})
	return err
}

// inflateXZ inflates an xz stream of unknown size. What the result can hold has been
// taken of the allowance.
func (c *contents) inflateXZ(packed []byte) ([]byte, error) {
	r, err := xz.NewReader(bytes.NewReader(packed), maxDictionary)
	if err != nil {
		return nil, fmt.Errorf("%w", err)
	}
	var raw []byte
	for want := debugdataRatio*len(packed) + 4096; ; want *= 2 {
		want = min(want, maxDebugdata+1)
		// While it is copied both are there.
		if err := c.take(uint64(want), "what it inflates to"); err != nil {
			c.give(uint64(cap(raw)))
			return nil, fmt.Errorf("after %d bytes: %w", len(raw), err)
		}
		grown := make([]byte, want)
		n := copy(grown, raw)
		c.give(uint64(cap(raw)))
		raw = grown
		k, err := io.ReadFull(r, raw[n:])
		switch raw = raw[:n+k]; {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return raw, nil
		case err == nil && len(raw) > maxDebugdata:
			err = fmt.Errorf("inflates to more than %d bytes", maxDebugdata)
		case err == nil:
			continue
		default:
			err = fmt.Errorf("after %d bytes: %w", len(raw), err)
		}
		c.give(uint64(cap(raw)))
		return nil, err
	}
}

// give counts memory that was taken as free again.
func (c *contents) give(n uint64) {
	c.taken.Add(-n)
	c.allowance.Give(n)
}
