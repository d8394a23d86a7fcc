package object

import (
	"fmt"
	"iter"
)

// LayoutError says that a file was refused because it describes code that lies
// elsewhere than the image's, although it has the image's ID: anybody can give a file
// any ID.
type LayoutError struct {
	Path    string  // the file
	Got     Section // its section of code
	Want    Section // the image's of the same name
	OfImage string  // the image's name
}

// Error names both files and the section.
func (e *LayoutError) Error() string {
	return fmt.Sprintf("object: %s: refused: its section %s has %#x bytes at %#x, that of %s has %#x at %#x",
		e.Path, e.Got.Name, e.Got.Size, e.Got.Addr, e.OfImage, e.Want.Size, e.Want.Addr)
}

// CheckLayout compares where two files, of which one may be the other's debug file,
// say that code lies: the sections of code that both have must have the same addresses
// and sizes. A debug file keeps the headers of the sections that it left out. The error
// is a LayoutError.
func (i *Image) CheckLayout(other *Image) error {
	type key struct{ segment, name string }
	code := map[key][]*Section{} // in relocatable files several have one name
	for k := range other.sections {
		if s := &other.sections[k]; s.Alloc() && s.Executable() {
			at := key{s.Segment, s.Name}
			code[at] = append(code[at], s)
		}
	}
	for k := range i.sections {
		s := &i.sections[k]
		if !s.Alloc() || !s.Executable() {
			continue
		}
		at := key{s.Segment, s.Name}
		same := code[at]
		if len(same) == 0 {
			continue
		}
		if code[at] = same[1:]; same[0].Addr != s.Addr || same[0].Size != s.Size {
			return &LayoutError{Path: other.name, Got: *same[0], Want: *s, OfImage: i.name}
		}
	}
	return nil
}

// fitting passes on candidates that describe the image's code.
func fitting(im *Image, candidates iter.Seq[candidate]) iter.Seq[candidate] {
	return func(yield func(candidate) bool) {
		for c := range candidates {
			open := c.open
			c.open = func() (*Image, error) {
				found, err := open()
				if err != nil {
					return nil, err
				}
				if err := im.CheckLayout(found); err != nil {
					_ = found.Close() // only read from
					return nil, err
				}
				return found, nil
			}
			if !yield(c) {
				return
			}
		}
	}
}
