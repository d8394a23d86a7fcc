package process

import (
	"fmt"
	"os"
	"unsafe"
)

// mapsShare is which part of a process's memory limit its mappings may take, and the
// text that they are read from.
const mapsShare = 4

// readMaps reads a maps file, of a process that may take so much memory.
func readMaps(path string, memory int64) ([]Mapping, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []Mapping
	kept, most := int64(0), memory/mapsShare
	last := ""
	r := mapsReader{r: f, most: most}
	err = r.each(func(m *Mapping) bool {
		kept += int64(unsafe.Sizeof(*m))
		if m.Path != last { // else it is the same string
			last = m.Path
			kept += int64(len(last))
		}
		if kept <= most {
			out = append(out, *m)
		}
		return kept <= most
	})
	if err == nil && kept > most {
		err = fmt.Errorf("%w: more than %d mappings take more than %d MiB", ErrTooMuch, len(out), most>>20)
	}
	if err != nil {
		return nil, fmt.Errorf("maps: %w", err)
	}
	return out, nil
}

// VisitMaps calls visit with each mapping of a process, in ascending order and all in
// the same variable, until it returns false. Nothing is kept, and no more is read than
// of a process that may take DefaultMemory. The process need not be one that could be
// opened.
func VisitMaps(pid int, visit func(*Mapping) bool) error {
	f, err := os.Open(taskPath(pid, viewOf(pid), "maps"))
	if err != nil {
		return goneError(pid, err)
	}
	defer f.Close()
	r := mapsReader{r: f, most: DefaultMemory / mapsShare}
	if err := r.each(visit); err != nil {
		return goneError(pid, fmt.Errorf("maps: %w", err))
	}
	return nil
}
