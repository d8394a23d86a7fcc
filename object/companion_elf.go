package object

import (
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// elfCandidates yields the places of an ELF image's separate debug file.
func (s *DebugSearch) elfCandidates(im *Image) iter.Seq[candidate] {
	return func(yield func(candidate) bool) {
		id := im.ID()
		for _, dir := range s.dirs() {
			if path, ok := buildIDPath(dir, id); ok && !yield(byID(im, path, id)) {
				return
			}
		}
		for c := range s.linkCandidates(im) {
			if !yield(c) {
				return
			}
		}
		if id == "" || im.path == "" {
			return
		}
		var names []string
		for _, path := range im.paths() { // a file may be opened by another name than its own, as those below /proc are
			names = append(names, filepath.Base(path))
		}
		if link, err := os.Readlink(im.path); err == nil { // that may lead nowhere here, where the process sees other files
			names = append(names, filepath.Base(link))
		}
		for _, dir := range s.Dirs {
			for _, name := range unique(names) {
				base := filepath.Join(dir, name)
				for _, path := range []string{base + ".debug", base} {
					if !slices.Contains(im.paths(), path) && !yield(byIDWithDebug(im, path, id)) {
						return
					}
				}
			}
		}
	}
}

// byID is a candidate that must have the ID.
func byID(im *Image, path, id string) candidate {
	return candidate{path, func() (*Image, error) { return openFor(im, path, id) }}
}

// byIDWithDebug is a candidate that must have the ID and debug information too, or a symbol
// table that the image doesn't have: the stripped program has the same ID.
func byIDWithDebug(im *Image, path, id string) candidate {
	return candidate{path, func() (*Image, error) {
		found, err := openFor(im, path, id)
		if err != nil {
			return nil, err
		}
		more := found.Section(".symtab") != nil && im.Section(".symtab") == nil
		if !more && found.Section(".debug_info") == nil && found.Section(".debug_line") == nil {
			err := found.errorf("refused: it has the ID but no debug information")
			_ = found.Close() // only read from
			return nil, err
		}
		return found, nil
	}}
}

// linkCandidates yields the places that .gnu_debuglink leads to.
func (s *DebugSearch) linkCandidates(im *Image) iter.Seq[candidate] {
	return func(yield func(candidate) bool) {
		name, crc, ok := im.GnuDebugLink()
		if !ok {
			return
		}
		if name != filepath.Base(name) || name == ".." || name == "." {
			// The rules below would lead such a name out of their folders.
			yield(candidate{name, func() (*Image, error) {
				return nil, im.errorf("section .gnu_debuglink: refused: %q is no plain file name", name)
			}})
			return
		}
		for _, path := range s.linkPaths(im, name) {
			if !yield(byLink(im, path, crc)) {
				return
			}
		}
	}
}

func (s *DebugSearch) linkPaths(im *Image, name string) []string {
	var paths []string
	for _, dir := range im.folders() {
		paths = append(paths, filepath.Join(dir, name), filepath.Join(dir, ".debug", name))
	}
	for _, dir := range s.dirs() {
		for _, own := range im.folders() {
			// A Windows path's drive cannot follow another folder.
			own = strings.TrimPrefix(own, filepath.VolumeName(own))
			paths = append(paths, filepath.Join(dir, own, name))
		}
	}
	for _, dir := range s.Dirs {
		paths = append(paths, filepath.Join(dir, name))
	}
	return unique(paths)
}

// byLink is a candidate that must have the CRC, and the image's ID when both have one.
func byLink(im *Image, path string, crc uint32) candidate {
	return candidate{path, func() (*Image, error) {
		found, err := openFor(im, path, "")
		if err != nil {
			return nil, err
		}
		err = checkLinked(im, found, path, crc)
		if err != nil {
			_ = found.Close() // only read from
			return nil, err
		}
		return found, nil
	}}
}

func checkLinked(im, found *Image, path string, crc uint32) error {
	if want := im.ID(); want != "" && found.ID() != "" && found.ID() != want {
		return idError(path, want, found)
	}
	got, err := fileCRC(path)
	if err != nil {
		return err
	}
	if got != crc {
		return fmt.Errorf("object: %s: refused: its CRC is %#08x, want %#08x as .gnu_debuglink of %s says", path, got, crc, im.name)
	}
	return nil
}

// fileCRC computes the CRC-32 of a file (IEEE 802.3, as .gnu_debuglink has it). It
// reads instead of using the mapping, which would keep gigabytes in memory of which
// most are never looked at again.
func fileCRC(path string) (uint32, error) {
	f, _, err := openRegular(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	h := crc32.NewIEEE()
	if _, err := io.CopyBuffer(h, io.NewSectionReader(f, 0, 1<<62), make([]byte, 256<<10)); err != nil {
		return 0, fmt.Errorf("object: %w", err)
	}
	return h.Sum32(), nil
}

// altCandidates yields the places of the file that .gnu_debugaltlink names, nil when
// it names none.
func (s *DebugSearch) altCandidates(im *Image) iter.Seq[candidate] {
	name, rawID, ok := im.GnuDebugAltLink()
	if !ok {
		return nil
	}
	id := fmt.Sprintf("%x", rawID)
	if id == "" {
		return func(yield func(candidate) bool) {
			yield(candidate{name, func() (*Image, error) {
				return nil, im.errorf("section .gnu_debugaltlink: refused: %s is named without an ID", name)
			}})
		}
	}
	return func(yield func(candidate) bool) {
		for _, path := range s.altPaths(im, filepath.FromSlash(name), id) {
			if !yield(byID(im, path, id)) {
				return
			}
		}
	}
}

func (s *DebugSearch) altPaths(im *Image, name, id string) []string {
	var paths []string
	if filepath.IsAbs(name) {
		paths = append(paths, filepath.Clean(name))
	} else {
		for _, dir := range im.folders() {
			paths = append(paths, filepath.Join(dir, name))
		}
	}
	// The part behind .dwz/ is where distributions install it below any folder.
	below := filepath.Base(name)
	marker := string(filepath.Separator) + ".dwz" + string(filepath.Separator)
	if at := strings.LastIndex(name, marker); at >= 0 && filepath.IsLocal(name[at+len(marker):]) {
		below = name[at+len(marker):]
	}
	for _, dir := range s.dirs() {
		if path, ok := buildIDPath(dir, id); ok {
			paths = append(paths, path)
		}
		paths = append(paths, filepath.Join(dir, ".dwz", below))
	}
	for _, dir := range s.Dirs {
		paths = append(paths, filepath.Join(dir, filepath.Base(name)))
	}
	return unique(paths)
}
