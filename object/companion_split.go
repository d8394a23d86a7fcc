package object

import (
	"errors"
	"fmt"
	"math/bits"
	"path/filepath"
	"slices"
	"strings"
)

// SplitFiles finds and keeps the files that the split units of an image are in: .dwo
// files, one for each unit, or one .dwp package (DWARF 5 §7.3.2). It may be used by
// several goroutines at once.
type SplitFiles struct {
	search *DebugSearch
	images []*Image
	files  fileSet
}

// Split prepares the search for the split units of an image; give its separate debug
// file too when it has one. Nothing is opened yet. The SplitFiles must be closed, and
// before that the images stay open.
func (s *DebugSearch) Split(images ...*Image) *SplitFiles {
	return &SplitFiles{search: s, images: images}
}

// Open returns the file with the unit that a skeleton unit names: DW_AT_dwo_name
// and DW_AT_comp_dir, and the unit's ID. A package beside the image (FILE.dwp) or in
// a folder of Dirs comes first when its index has the ID; then the .dwo file as
// named, in the compilation's folder, beside the image and in Dirs. Whether a .dwo
// file has the unit is left to the reader of DWARF.
//
// The image belongs to the SplitFiles and is closed with it. The error of a search
// that found nothing wraps ErrNoDebug.
func (f *SplitFiles) Open(name, compDir string, id uint64) (*Image, error) {
	errs := []error{fmt.Errorf("object: %w: split unit %#016x, %s", ErrNoDebug, id, name)}
	for _, path := range f.packagePaths() {
		found, err := f.open(path)
		if err == nil && !found.packageHolds(id) {
			err = found.errorf("section .debug_cu_index: no unit %#016x", id)
		}
		if err == nil {
			return found, nil
		}
		if !isMissing(err) {
			errs = append(errs, err)
		}
	}
	for _, path := range f.unitPaths(name, compDir) {
		found, err := f.open(path)
		if err == nil {
			return found, nil
		}
		if !isMissing(err) && len(errs) <= maxRefused {
			errs = append(errs, err)
		}
	}
	return nil, errors.Join(errs...)
}

// Close closes all files that Open returned.
func (f *SplitFiles) Close() error { return f.files.close() }

// opener opens files that share the first image's allowance.
func (f *SplitFiles) opener() Opener {
	if len(f.images) == 0 {
		return Opener{}
	}
	return f.images[0].companions()
}

// open opens a file that must hold split units.
func (f *SplitFiles) open(path string) (*Image, error) {
	return f.files.open(path, func() (*Image, error) {
		found, err := f.opener().Open(path)
		if err != nil {
			return nil, err
		}
		if found.Section(".debug_info.dwo") == nil {
			err := found.errorf("refused: it has no section .debug_info.dwo")
			_ = found.Close() // only read from
			return nil, err
		}
		return found, nil
	})
}

// packagePaths lists the places of a package: FILE.dwp, also for FILE.debug.
func (f *SplitFiles) packagePaths() []string {
	var paths []string
	for _, im := range f.images {
		for _, path := range im.paths() {
			path = strings.TrimSuffix(path, ".debug")
			paths = append(paths, path+".dwp")
			for _, dir := range f.search.Dirs {
				paths = append(paths, filepath.Join(dir, filepath.Base(path)+".dwp"))
			}
		}
	}
	return unique(paths)
}

// unitPaths lists the places of a .dwo file.
func (f *SplitFiles) unitPaths(name, compDir string) []string {
	if name == "" {
		return nil
	}
	var paths []string
	name = filepath.FromSlash(name)
	if filepath.IsAbs(name) {
		paths = append(paths, filepath.Clean(name))
	} else if compDir != "" {
		paths = append(paths, filepath.Join(filepath.FromSlash(compDir), name))
	}
	var dirs []string
	for _, im := range f.images {
		dirs = append(dirs, im.folders()...)
	}
	for _, dir := range append(dirs, f.search.Dirs...) {
		if !filepath.IsAbs(name) {
			paths = append(paths, filepath.Join(dir, name))
		}
		paths = append(paths, filepath.Join(dir, filepath.Base(name)))
	}
	return unique(paths)
}

// unique drops repetitions from a short list.
func unique(list []string) []string {
	var out []string
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// packageHolds looks a unit's ID up in .debug_cu_index, a hash table with double
// hashing (DWARF 5 §7.3.5.3; version 2 is GNU's draft of it).
func (i *Image) packageHolds(id uint64) bool {
	s := i.Section(".debug_cu_index")
	if s == nil {
		return false
	}
	raw, err := i.SectionData(s)
	if err != nil || len(raw) < 16 {
		return false
	}
	o := i.ByteOrder
	if o.Uint16(raw) != 5 && o.Uint32(raw) != 2 {
		return false
	}
	slots := uint64(o.Uint32(raw[12:]))
	if bits.OnesCount64(slots) != 1 || slots*12 > uint64(len(raw)-16) {
		return false
	}
	ids, rows := raw[16:], raw[16+8*slots:]
	mask := slots - 1
	step := id>>32&mask | 1
	for at, tries := id&mask, slots; tries > 0; tries-- {
		if o.Uint32(rows[4*at:]) == 0 {
			return false
		}
		if o.Uint64(ids[8*at:]) == id {
			return true
		}
		at = (at + step) & mask
	}
	return false
}
