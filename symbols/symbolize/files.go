package symbolize

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/symbols"
)

// Files is a Source of maps and images on this machine. What it has opened stays open until
// Close, which is after the last use of a Symbolizer over it.
type Files struct {
	// Finder finds the images' maps.
	Finder *symbols.Finder

	// Given are files that stand for images of the same base name whose ID is not known, by
	// that name: of captures from other machines, and of text that only names files.
	Given map[string]string

	open []interface{ Close() error }
}

// Close closes all maps and images.
func (f *Files) Close() error {
	var errs []error
	for _, c := range f.open {
		errs = append(errs, c.Close())
	}
	f.open = nil
	return errors.Join(errs...)
}

// Module implements Source.
func (f *Files) Module(ctx context.Context, im *Image) (*Module, error) {
	here := *im
	if path, ok := f.Given[im.Name()]; ok && im.ID == "" {
		here.Path, here.Gone = path, false
	}
	if err := namable(&here); err != nil {
		return nil, err
	}
	found, err := f.Finder.Find(ctx, symbols.Wanted{ID: here.ID, Path: here.Path, Arch: here.Arch})
	if err != nil {
		return nil, err
	}
	f.open = append(f.open, found)
	m := &Module{Map: found, Base: found.BaseAddr(), Thumb: found.Arch() == object.ARM}
	// The file tells more than the map: it is not needed, but it must be the right one.
	if file, err := object.OpenArch(here.Path, here.Arch); err == nil {
		if id := file.ID(); id == found.ID() {
			f.open = append(f.open, file)
			m.describe(file)
		} else {
			_ = file.Close() // only looked at
		}
	}
	return m, nil
}

// namable says why an image cannot have symbols, from its description alone.
func namable(im *Image) error {
	special := strings.HasPrefix(im.Path, "[") || strings.HasPrefix(im.Path, "//anon") || strings.HasPrefix(im.Path, "/dev/")
	switch {
	case im.ID == "" && im.Path == "":
		return errors.New("the image has neither ID nor path")
	case im.ID == "" && special:
		return fmt.Errorf("no symbols for %s: memory without a file", im.Path)
	case im.ID == "" && im.Gone:
		return fmt.Errorf("no symbols for %s: the file was deleted while it ran, and no ID tells whether the one there now is the same", im.Path)
	}
	return nil
}
