package recorder

import (
	"errors"

	"github.com/callreel/callreel/process"
)

// The owner of a mapped file may make it smaller. Then pages of text are there no more, and with them is gone what was written to them:
// what is to be done to the other pages must be done all the same.

// readThere reads pages, and leaves out those that are gone.
func readThere(mem memory, pages []page) ([]page, error) {
	err := readPages(mem, pages)
	if !errors.Is(err, process.ErrNoMapping) {
		return pages, err
	}
	var there []page
	for i := range pages {
		_, err := mem.ReadAt(pages[i].old, pages[i].addr)
		if errors.Is(err, process.ErrNoMapping) {
			continue
		}
		if err != nil {
			return nil, err
		}
		there = append(there, pages[i])
	}
	return there, nil
}

// writeThere writes the new side of pages, but of those that are gone. None depends on another.
func writeThere(mem memory, pages []page) error {
	return onAllCores(pages, func(some []page) error { return writePart(mem, some) })
}

func writePart(mem memory, pages []page) error {
	err := writePages(mem, pages, newSide)
	if !errors.Is(err, process.ErrNoMapping) {
		return err
	}
	var byte1 [1]byte
	for i := range pages {
		_, err := mem.WriteAt(pages[i].new, pages[i].addr)
		if errors.Is(err, process.ErrNoMapping) {
			// Or else the kernel forbids writing to it, which is another matter.
			if _, e := mem.ReadAt(byte1[:], pages[i].addr); errors.Is(e, process.ErrNoMapping) {
				continue
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sameThere says whether text is its file's, as far as it is there, but for where it may differ.
func sameThere(mem memory, addr uint64, file []byte, mayDiffer func(addr uint64) bool) (bool, error) {
	buf := make([]byte, pageSize)
	for from := 0; from < len(file); from += pageSize {
		want := file[from:min(from+pageSize, len(file))]
		_, err := mem.ReadAt(buf[:len(want)], addr+uint64(from))
		if errors.Is(err, process.ErrNoMapping) {
			continue // gone
		}
		if err != nil {
			return false, err
		}
		for i := range want {
			if buf[i] != want[i] && !mayDiffer(addr+uint64(from+i)) {
				return false, nil
			}
		}
	}
	return true, nil
}
