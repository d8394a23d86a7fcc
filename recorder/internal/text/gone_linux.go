package text

import (
	"errors"

	"github.com/callreel/callreel/process"
)

// The owner of a mapped file may make it smaller. Then pages of text are there no more, and with them is gone what was written to them:
// what is to be done to the other pages must be done all the same.

// ReadThere reads pages, but for those that are gone.
func ReadThere(mem Memory, pages []Page) ([]Page, error) {
	err := readPages(mem, pages)
	if !errors.Is(err, process.ErrNoMapping) {
		return pages, err
	}
	var there []Page
	for i := range pages {
		_, err := mem.ReadAt(pages[i].Old, pages[i].Addr)
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

// WriteThere writes the new side of pages, but of those that are gone. None depends on another.
func WriteThere(mem Memory, pages []Page) error {
	return onAllCores(pages, func(some []Page) error { return writePart(mem, some) })
}

func writePart(mem Memory, pages []Page) error {
	err := writePages(mem, pages, NewSide)
	if !errors.Is(err, process.ErrNoMapping) {
		return err
	}
	var byte1 [1]byte
	for i := range pages {
		_, err := mem.WriteAt(pages[i].New, pages[i].Addr)
		if errors.Is(err, process.ErrNoMapping) {
			// Or else the kernel forbids writing to it, which is another matter.
			if _, e := mem.ReadAt(byte1[:], pages[i].Addr); errors.Is(e, process.ErrNoMapping) {
				continue
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// SameThere says whether text is its file's, as far as it is there, but for where it may differ.
func SameThere(mem Memory, addr uint64, file []byte, mayDiffer func(addr uint64) bool) (bool, error) {
	buf := make([]byte, PageSize)
	for from := 0; from < len(file); from += PageSize {
		want := file[from:min(from+PageSize, len(file))]
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
