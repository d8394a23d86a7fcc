package dwarf

import (
	"context"
	"fmt"

	"github.com/callreel/callreel/object"
)

// load reads the sections of a file and finds its units.
func (d *Data) load(ctx context.Context, s *source, im *object.Image) error {
	s.name, s.image, s.big = im.Name(), im, bigEndian(im)
	found, problems, err := loadSections(ctx, im, s.sections(), d.opts.Workers)
	if err != nil {
		return err
	}
	for _, err := range problems {
		d.problem(err)
	}
	if im == d.image && im.Type == object.Relocatable {
		if err := d.relocate(ctx, found); err != nil {
			return err
		}
	}
	for _, err := range s.findUnits() {
		d.problem(err)
	}
	return nil
}

// bigEndian says whether the image's numbers have their highest byte first.
func bigEndian(im *object.Image) bool {
	return im.ByteOrder.Uint16([]byte{0, 1}) == 1
}

// loaded is a section that loadSections has found.
type loaded struct {
	from *object.Section
	into *section
	base uint64 // where in into it starts: a relocatable file can have several of a name
	data []byte
}

// loadSections reads the sections that the image has, several at once. Those that
// cannot be read are left empty and told as problems; the error is of the context.
func loadSections(ctx context.Context, im *object.Image, list []wantedSection, workers int) (found []loaded, problems []error, err error) {
	for k := range list {
		for _, s := range list[k].find(im) {
			found = append(found, loaded{from: s, into: list[k].into})
		}
	}
	wanted := make([]*object.Section, len(found))
	for k := range found {
		wanted[k] = found[k].from
	}
	contents, err := im.MapSections(ctx, workers, wanted...)
	if ctx.Err() != nil {
		return nil, nil, fmt.Errorf("dwarf: %w", err)
	}
	if err != nil {
		problems = append(problems, fmt.Errorf("dwarf: %w", err)) // which names file and sections
	}
	for k := range found {
		found[k].data = contents[k]
	}
	join(found, im.Type == object.Relocatable)
	return found, problems, nil
}

// join puts sections of one name behind each other. Relocatable files have a
// section for each type unit, so that the linker can drop those it has already.
// There, what is made is a copy, as it will be relocated.
func join(found []loaded, copied bool) {
	for k := range found {
		f := &found[k]
		if f.base = uint64(len(f.into.data)); copied {
			f.into.data = append(f.into.data, f.data...)
		} else {
			f.into.data = f.data
		}
	}
}
