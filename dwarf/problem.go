package dwarf

import (
	"errors"
	"fmt"
)

// ErrNoDWARF is wrapped by the error of Open when the image has no .debug_info,
// and so nothing to read.
var ErrNoDWARF = errors.New("no DWARF")

// ErrNoSplit is wrapped by the error of Read when a skeleton unit's other half
// could not be had.
var ErrNoSplit = errors.New("split unit not available")

// errSplitUnwanted is why there are no split units without Options.Split.
var errSplitUnwanted = errors.New("no way to open it was given")

// errEnd is what a reader meets that runs out of bytes.
var errEnd = errors.New("unexpected end")

// A Problem is damage, or something that is missing, at one place.
type Problem struct {
	File    string // name of the image
	Section string // name of the section as in ELF: ".debug_info"
	Offset  uint64 // in the section, inflated
	Err     error
}

// Error says what is wrong, and where.
func (p *Problem) Error() string {
	return fmt.Sprintf("dwarf: %s: section %s at %#x: %v", p.File, p.Section, p.Offset, p.Err)
}

// Unwrap returns the reason.
func (p *Problem) Unwrap() error { return p.Err }

// problem makes a Problem of one of the source's sections.
func (s *source) problem(sec *section, offset uint64, format string, args ...any) error {
	return &Problem{File: s.name, Section: sec.name, Offset: offset, Err: fmt.Errorf(format, args...)}
}
