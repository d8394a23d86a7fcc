package arguments

import (
	"bytes"
	"context"
	"debug/dwarf"
	"errors"
	"fmt"

	"github.com/callreel/callreel/object"
)

// ErrNoDebug says that an image has no debug information, or none of a function.
var ErrNoDebug = errors.New("no debug information")

// Debug is the debug information of an image.
type Debug struct {
	name  string
	main  *file
	abi   *abi
	alt   *file
	libcp bool // the image uses LLVM's C++ library
	units map[dwarf.Offset]map[uint64]dwarf.Offset
	types map[ref]*Type
	spots map[uint64][]spot // by link addresses
	found []*object.Image
	depth int // of types being read
}

// file is one file of it.
type file struct {
	data     *dwarf.Data
	r        *dwarf.Reader
	str      []byte
	loc      []byte // .debug_loc
	loclists []byte
	addr     []byte // .debug_addr
	big      bool
	abi      *abi
}

// ref names an entry.
type ref struct {
	f   *file
	off dwarf.Offset
}

// Files finds the files with an image's debug information: *object.DebugSearch does.
type Files interface {
	// Debug opens the debug file of an image.
	Debug(im *object.Image) (*object.Image, error)
	// Alt opens the file that dwz has made, which a debug file names; nil, and no error, if it names none.
	Alt(debug *object.Image) (*object.Image, error)
}

// Open reads an image's debug information: its own, or that of the separate file that belongs to it, as files finds it, nil for
// *object.DebugSearch. The error wraps
// ErrNoDebug if there is none. The image must stay open until Close.
func Open(ctx context.Context, im *object.Image, files Files) (d *Debug, err error) {
	d = &Debug{name: im.Name(), abi: abiOf(im), units: map[dwarf.Offset]map[uint64]dwarf.Offset{}, types: map[ref]*Type{}, spots: map[uint64][]spot{}}
	defer func() {
		if err != nil {
			d.Close()
		}
	}()
	for _, lib := range im.Dependencies() {
		d.libcp = d.libcp || len(lib) > 8 && lib[:8] == "libc++.s"
	}
	if files == nil {
		files = &object.DebugSearch{}
	}
	holder := im
	if im.Section(".debug_info") == nil {
		holder, err = files.Debug(im)
		if err != nil {
			return d, fmt.Errorf("callreel: %s: %w: %w", im.Name(), ErrNoDebug, err)
		}
		d.found = append(d.found, holder)
	}
	if d.main, err = load(ctx, holder); err != nil {
		return d, err
	}
	if alt, err := files.Alt(holder); err == nil && alt != nil {
		d.found = append(d.found, alt)
		if d.alt, err = load(ctx, alt); err != nil {
			return d, err
		}
	}
	return d, nil
}

// Close closes what Open has opened.
func (d *Debug) Close() error {
	var errs []error
	for _, im := range d.found {
		errs = append(errs, im.Close())
	}
	d.found = nil
	return errors.Join(errs...)
}

// load reads a file's sections.
func load(ctx context.Context, im *object.Image) (*file, error) {
	names := []string{".debug_abbrev", ".debug_info", ".debug_ranges", ".debug_str", ".debug_str_offsets", ".debug_line_str", ".debug_addr", ".debug_rnglists",
		".debug_loc", ".debug_loclists"}
	var list []*object.Section
	var have []string
	for _, n := range names {
		if s := im.Section(n); s != nil {
			list, have = append(list, s), append(have, n)
		}
	}
	data, err := im.SectionsData(ctx, 0, list...)
	if err != nil {
		return nil, fmt.Errorf("callreel: %s: %w", im.Name(), err)
	}
	by := map[string][]byte{}
	for i, n := range have {
		by[n] = data[i]
	}
	f := &file{str: by[".debug_str"], loc: by[".debug_loc"], loclists: by[".debug_loclists"], addr: by[".debug_addr"], big: im.ByteOrder.Uint16([]byte{0, 1}) == 1, abi: abiOf(im)}
	if len(by[".debug_info"]) == 0 {
		return nil, fmt.Errorf("callreel: %s: %w", im.Name(), ErrNoDebug)
	}
	err = catchPanics(im.Name(), func() error {
		f.data, err = dwarf.New(by[".debug_abbrev"], nil, nil, by[".debug_info"], nil, nil, by[".debug_ranges"], by[".debug_str"])
		for _, n := range names[4:8] {
			if err == nil && by[n] != nil {
				err = f.data.AddSection(n, by[n])
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("callreel: %s: %w", im.Name(), err)
	}
	f.r = f.data.Reader()
	return f, nil
}

// catchPanics turns a panic over a damaged file into an error.
func catchPanics(name string, do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("callreel: %s: its debug information is damaged: %v", name, p)
		}
	}()
	return do()
}

// entry reads the entry at an offset.
func (r ref) entry() (*dwarf.Entry, error) {
	r.f.r.Seek(r.off)
	e, err := r.f.r.Next()
	if err == nil && e == nil {
		err = fmt.Errorf("no entry at %#x", r.off)
	}
	return e, err
}

// children calls visit with each of the entry's children.
func (r ref) children(visit func(e *dwarf.Entry) error) error {
	e, err := r.entry()
	if err != nil || !e.Children {
		return err
	}
	for {
		c, err := r.f.r.Next()
		if err != nil || c == nil || c.Tag == 0 {
			return err
		}
		next := c.Offset
		if err := visit(c); err != nil {
			return err
		}
		if c.Children { // visit may have read elsewhere
			r.f.r.Seek(next)
			if _, err := r.f.r.Next(); err != nil {
				return err
			}
			r.f.r.SkipChildren()
			continue
		}
		r.f.r.Seek(next)
		if _, err := r.f.r.Next(); err != nil {
			return err
		}
	}
}

// refOf is the entry that an attribute refers to.
func (d *Debug) refOf(f *file, e *dwarf.Entry, attr dwarf.Attr) (ref, bool) {
	v := e.AttrField(attr)
	if v == nil {
		return ref{}, false
	}
	switch off := v.Val.(type) {
	case dwarf.Offset:
		return ref{f, off}, true
	case int64:
		if v.Class == dwarf.ClassReferenceAlt && d.alt != nil && off >= 0 && off < 1<<32 {
			return ref{d.alt, dwarf.Offset(off)}, true
		}
	}
	return ref{}, false
}

// text is an attribute's, "" if there is none.
func (d *Debug) text(e *dwarf.Entry, attr dwarf.Attr) string {
	v := e.AttrField(attr)
	if v == nil {
		return ""
	}
	switch s := v.Val.(type) {
	case string:
		return s
	case int64:
		if v.Class == dwarf.ClassStringAlt && d.alt != nil && s >= 0 && s < int64(len(d.alt.str)) {
			name, _, _ := bytes.Cut(d.alt.str[s:], []byte{0})
			return string(name)
		}
	}
	return ""
}

// number is an attribute's value, if it is a constant.
func number(e *dwarf.Entry, attr dwarf.Attr) (int64, bool) {
	switch v := e.Val(attr).(type) {
	case int64:
		return v, true
	case uint64:
		return int64(v), true
	}
	return 0, false
}

func flag(e *dwarf.Entry, attr dwarf.Attr) bool {
	v, _ := e.Val(attr).(bool)
	return v
}

// maxChain bounds how many entries stand for one.
const maxChain = 8

// chain are the entries that make up one: the concrete one, that which it is an instance of, its declaration.
func (d *Debug) chain(r ref) ([]ref, []*dwarf.Entry, error) {
	var refs []ref
	var list []*dwarf.Entry
	for len(list) < maxChain {
		e, err := r.entry()
		if err != nil {
			return nil, nil, err
		}
		refs, list = append(refs, r), append(list, e)
		next, ok := d.refOf(r.f, e, dwarf.AttrAbstractOrigin)
		if !ok {
			next, ok = d.refOf(r.f, e, dwarf.AttrSpecification)
		}
		if !ok {
			break
		}
		r = next
	}
	return refs, list, nil
}

// subprogram finds the function that begins at a link address, and its unit.
func (d *Debug) subprogram(addr uint64) (r ref, unit *dwarf.Entry, err error) {
	f := d.main
	unit, err = f.r.SeekPC(addr)
	if err != nil {
		return r, nil, fmt.Errorf("%w of it", ErrNoDebug)
	}
	starts := d.units[unit.Offset]
	if starts == nil {
		if starts, err = d.starts(); err != nil {
			return r, nil, err
		}
		d.units[unit.Offset] = starts
	}
	off, ok := starts[addr]
	if !ok {
		return r, nil, fmt.Errorf("%w of it", ErrNoDebug)
	}
	return ref{f, off}, unit, nil
}

// starts lists where the functions of the unit begin whose first entry has just been read.
func (d *Debug) starts() (map[uint64]dwarf.Offset, error) {
	f := d.main
	starts := map[uint64]dwarf.Offset{}
	for {
		e, err := f.r.Next()
		if err != nil {
			return nil, err
		}
		if e == nil || e.Tag == dwarf.TagCompileUnit || e.Tag == dwarf.TagPartialUnit {
			return starts, nil
		}
		if e.Tag != dwarf.TagSubprogram {
			continue
		}
		if low, ok := e.Val(dwarf.AttrLowpc).(uint64); ok {
			starts[low] = e.Offset
		} else if e.Val(dwarf.AttrRanges) != nil {
			if ranges, err := f.data.Ranges(e); err == nil && len(ranges) > 0 {
				starts[ranges[0][0]] = e.Offset
			}
		}
	}
}
