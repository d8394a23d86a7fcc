package object

import (
	"bytes"
	"fmt"
	"io"

	"github.com/therootcompany/xz"
)

const (
	// maxDebugdata bounds what .gnu_debugdata may inflate to. The largest that
	// distributions ship are below 20 MB.
	maxDebugdata = 256 << 20

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
	raw, err := inflateXZ(packed)
	if err != nil {
		return e.sectionErrorf(s, "%w", err)
	}
	inner, err := Parse(e.name+"(.gnu_debugdata)", raw)
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

// inflateXZ inflates an xz stream of unknown size.
func inflateXZ(packed []byte) ([]byte, error) {
	r, err := xz.NewReader(bytes.NewReader(packed), maxDictionary)
	if err != nil {
		return nil, fmt.Errorf("%w", err)
	}
	raw, err := io.ReadAll(io.LimitReader(r, maxDebugdata+1))
	if err != nil {
		return nil, fmt.Errorf("after %d bytes: %w", len(raw), err)
	}
	if len(raw) > maxDebugdata {
		return nil, fmt.Errorf("inflates to more than %d bytes", maxDebugdata)
	}
	return raw, nil
}
