package symbolize

import "fmt"

// moduleIDs are the IDs that a text states for files, by base name: reports of systemd name
// them before the stacks.
type moduleIDs map[string]string

// add notes the ID of a file.
func (m *moduleIDs) add(im *Image) error {
	if *m == nil {
		*m = moduleIDs{}
	}
	if len(*m) >= maxImages {
		return fmt.Errorf("symbolize: more than %d images", maxImages)
	}
	(*m)[im.Name()] = im.ID
	return nil
}

// fill gives a place the ID that its file was said to have.
func (m moduleIDs) fill(f *Frame) {
	if f.Place != nil && f.Place.ID == "" {
		f.Place.ID = m[baseName(f.Place.Path)]
	}
}
