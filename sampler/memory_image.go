package sampler

import (
	"debug/elf"
	"errors"
	"fmt"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/unwind"
)

// maxMemoryImage bounds an image that is put together from memory.
const maxMemoryImage = 1 << 28

var (
	errImageTooLarge = errors.New("too large to be read from memory")
	errNoImage       = errors.New("no ELF file")
)

// imageFromMemory puts a file together from what of it is mapped: the vdso, which has
// no other place, and files that cannot be reached any more. Sections that are not
// loaded are missing then, which leaves dynamic symbols and CFI.
func imageFromMemory(im *Image, memory unwind.Memory, allowed *object.Allowance) (*object.Image, error) {
	size := uint64(0)
	for _, r := range im.regions {
		end := r.offset - im.regions[0].offset + (r.end - r.start)
		if r.offset < im.regions[0].offset || end > maxMemoryImage {
			return nil, fmt.Errorf("%w: %d bytes", errImageTooLarge, end)
		}
		size = max(size, end)
	}
	// What is no image, as code that was made at run time, isn't read whole to find that out.
	var magic [len(elf.ELFMAG)]byte
	if n, err := memory.ReadMemory(im.regions[0].start, magic[:]); n < len(magic) || string(magic[:]) != elf.ELFMAG {
		return nil, errors.Join(errNoImage, err)
	}
	if err := allowed.Take(size, "what is read of memory"); err != nil { // for good: images stay open
		return nil, err
	}
	data := make([]byte, size)
	for _, r := range im.regions {
		at := r.offset - im.regions[0].offset
		// What cannot be read stays zero, and is missed by who needs it.
		_, _ = memory.ReadMemory(r.start, data[at:at+r.end-r.start])
	}
	file, err := object.Parse(im.Path, data)
	if err != nil {
		return nil, err
	}
	if file.Type == object.Core || file.Type == object.Relocatable {
		return nil, errors.Join(errNoSegment, file.Close())
	}
	return file, nil
}
