package symbolize

import "strings"

// An Image is one image of a captured process, as the capture describes it.
type Image struct {
	ID     string // build ID or UUID in lower-case hexadecimal without dashes; "" when not known
	Path   string // of its file where it was captured; may be "" when there is an ID
	Arch   string // Go's or Apple's name of the architecture, for fat files; "" when not known
	Load   uint64 // address that the image's first byte was loaded at
	Size   uint64 // bytes of address space from Load; 0 when not known: up to the next image
	Offset uint64 // in the file, of what stands at Load: not 0 only where the first mapping is missing
	Gone   bool   // the file no longer had this path: another one there says nothing
}

// Name is what people call the image: the base name of its file, else its ID.
func (i *Image) Name() string {
	if i.Path != "" {
		return baseName(i.Path)
	}
	return i.ID
}

// end is the first address behind the image; the last of all when its size is not known.
func (i *Image) end() uint64 {
	if i.Size == 0 || i.Load+i.Size < i.Load {
		return ^uint64(0)
	}
	return i.Load + i.Size
}

// same says whether two descriptions are of one loaded image.
func (i *Image) same(o *Image) bool {
	return i.Load == o.Load && i.ID == o.ID && i.Path == o.Path
}

// baseName is the last element of a path of any system: captures come from others.
func baseName(path string) string {
	return path[strings.LastIndexAny(path, `/\`)+1:]
}

// maxID bounds the text of an ID: 256 bytes of build ID, and room for a UUID's dashes.
const maxID = 520

// parseID reads an ID as tools print it: hexadecimal in either case, with or without the
// dashes of a UUID.
func parseID(text string) (string, bool) {
	if len(text) > maxID {
		return "", false
	}
	id := strings.ToLower(strings.ReplaceAll(text, "-", ""))
	for k := range len(id) {
		if !isHex(id[k]) {
			return "", false
		}
	}
	return id, len(id)%2 == 0
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}
