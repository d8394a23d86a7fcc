package dwarf

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/callreel/callreel/object"
)

// Options says what Open may use beside the image.
type Options struct {
	// Alt is the file that .gnu_debugaltlink names (or .debug_sup), as dwz writes
	// it; nil for none. Names that stand there are lost without it. It must stay
	// open as long as the Data.
	Alt *object.Image

	// Workers is how many sections are inflated at once; GOMAXPROCS when 0.
	Workers int

	// Split opens the file that holds a skeleton unit's other half: the .dwo file
	// of that name and directory, or a .dwp package. id tells split units apart.
	// It may return one image several times and is called from several goroutines.
	// Images stay the caller's, and must stay open as long as the Data. With nil,
	// split units are left out and Read says so.
	Split func(name, compDir string, id uint64) (*object.Image, error)
}

// Data is the DWARF of an image. Its methods may be called from several
// goroutines at once, except Close.
type Data struct {
	main     source
	alt      *source
	image    *object.Image
	opts     Options
	places   []uint64 // of the sections of a relocatable file, see Place
	code     []Range  // where code can be, sorted and disjoint
	units    []Unit
	versions []int
	problems []error
	splits   splits
	lineWork workLimit
}

// A Unit is one compile or skeleton unit.
type Unit struct {
	Index   int    // in Units
	Offset  uint64 // in .debug_info
	Size    uint64 // in .debug_info, bytes, the header included
	Version int    // of DWARF, 2 to 5

	number int // in main.units
}

// Open collects the image's DWARF sections, inflates compressed ones in parallel
// and applies the relocations of relocatable files. The image must stay open as
// long as the Data. The error wraps ErrNoDWARF when there is nothing to read;
// damage that leaves something to read is told by Problems and Read.
func Open(ctx context.Context, im *object.Image, opts Options) (*Data, error) {
	if opts.Workers <= 0 {
		opts.Workers = runtime.GOMAXPROCS(0)
	}
	d := &Data{image: im, opts: opts}
	var err error
	fault := object.CatchFaults(func() error {
		err = d.open(ctx)
		return nil
	})
	if fault != nil {
		err = fmt.Errorf("dwarf: %s: %w", im.Name(), fault)
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

func (d *Data) open(ctx context.Context) error {
	d.place()
	d.findCode()
	if err := d.load(ctx, &d.main, d.image); err != nil {
		return err
	}
	if len(d.main.info.data) == 0 {
		if err := errors.Join(d.problems...); err != nil {
			return err
		}
		return fmt.Errorf("dwarf: %s: %w", d.image.Name(), ErrNoDWARF)
	}
	if d.opts.Alt != nil {
		d.alt = &source{role: roleAlt}
		if err := d.load(ctx, d.alt, d.opts.Alt); err != nil {
			return err
		}
	}
	d.lineWork.limit = workFactor*uint64(len(d.main.line.data)) + workFloor
	d.listUnits()
	return nil
}

// listUnits makes the list that callers see.
func (d *Data) listUnits() {
	seen := [6]bool{}
	for k := range d.main.units {
		u := &d.main.units[k]
		seen[u.version] = true
		if u.kind == unitType || u.kind == unitPartial {
			continue
		}
		d.units = append(d.units, Unit{Index: len(d.units), Offset: u.offset, Size: u.end - u.offset, Version: int(u.version), number: k})
	}
	for v, ok := range seen {
		if ok {
			d.versions = append(d.versions, v)
		}
	}
}

// Close gives up what inflating and relocating took. Strings cannot be turned
// into bytes afterwards.
func (d *Data) Close() error {
	d.main, d.alt, d.units = source{}, nil, nil
	d.splits.list.Store(nil)
	return nil
}

// Units lists the units that can hold code, by rising offset: neither type units
// nor partial ones. The slice belongs to the Data.
func (d *Data) Units() []Unit { return d.units }

// Versions lists the versions of DWARF that units have, rising.
func (d *Data) Versions() []int { return slices.Clone(d.versions) }

// A Summary says what kind of DWARF an image has.
type Summary struct {
	Versions     []int // of the units, rising
	Units        int   // compile and skeleton units, as Units lists them
	TypeUnits    int   // of .debug_info and .debug_types
	PartialUnits int
	InfoSize     uint64 // bytes of .debug_info
	LineSize     uint64 // bytes of .debug_line
	Format64     bool   // a unit is in the 64-bit format
	Alt          bool   // there is a supplementary file
}

// Summary says what kind of DWARF the image has, split units not looked into.
func (d *Data) Summary() Summary {
	s := Summary{
		Versions: d.Versions(), Units: len(d.units), TypeUnits: len(d.main.typeUnits),
		InfoSize: uint64(len(d.main.info.data)), LineSize: uint64(len(d.main.line.data)), Alt: d.alt != nil,
	}
	for k := range d.main.units {
		u := &d.main.units[k]
		switch u.kind {
		case unitType:
			s.TypeUnits++
		case unitPartial:
			s.PartialUnits++
		}
		s.Format64 = s.Format64 || u.shape.offset == 8
	}
	return s
}

// Problems lists the damage that Open met. Units behind damage may be missing from Units.
func (d *Data) Problems() []error { return slices.Clone(d.problems) }

// problem notes damage that does not keep Open from going on.
func (d *Data) problem(err error) {
	const most = 100 // a crafted file can be all damage
	if len(d.problems) < most {
		d.problems = append(d.problems, err)
	}
}
