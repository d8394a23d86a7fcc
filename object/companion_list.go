package object

import (
	"errors"
	"fmt"
	"iter"
)

// CompanionKind is what a companion file holds.
type CompanionKind uint8

// The kinds.
const (
	DebugFile   CompanionKind = iota + 1 // separate ELF debug file
	DSYM                                 // dSYM bundle
	AltFile                              // dwz's common part, by .gnu_debugaltlink
	DWPFile                              // package of split units
	ObjectDebug                          // object file that a Mach-O image's debug map names
)

// String returns the kind in a word.
func (k CompanionKind) String() string {
	switch k {
	case DebugFile:
		return "debug"
	case DSYM:
		return "dsym"
	case AltFile:
		return "alt"
	case DWPFile:
		return "dwp"
	case ObjectDebug:
		return "object"
	}
	return fmt.Sprintf("companion %d", uint8(k))
}

// A Companion is a place where a file of an image's debug information was looked for.
type Companion struct {
	Kind CompanionKind
	Path string
	Err  error // nil: found, and it fits; otherwise why it is not used
}

// Missing says that there is no such file, as opposed to one that was refused.
func (c *Companion) Missing() bool { return c.Err != nil && isMissing(c.Err) }

// Companions lists where the companions of an image were looked for, in order, and
// what was found: the separate debug file up to the first that fits, its alternate
// file, a package of split units, and the object files of a Mach-O debug map. Places
// that an image does not ask for are left out.
func (s *DebugSearch) Companions(im *Image) []Companion {
	kind := DebugFile
	if im.Format == MachO {
		kind = DSYM
	}
	list, debug := tryAll(nil, kind, s.debugCandidates(im))
	holders := []*Image{im}
	if debug != nil {
		defer debug.Close()
		holders = append(holders, debug)
	}
	for _, holder := range holders {
		if candidates := s.altCandidates(holder); candidates != nil {
			var alt *Image
			if list, alt = tryAll(list, AltFile, candidates); alt != nil {
				_ = alt.Close() // only looked at
			}
		}
	}
	if im.Format == ELF {
		list = append(list, s.packages(holders)...)
	}
	return append(list, s.listObjects(im)...)
}

// tryAll tries candidates up to the first that fits.
func tryAll(list []Companion, kind CompanionKind, candidates iter.Seq[candidate]) ([]Companion, *Image) {
	for c := range candidates {
		found, err := c.open()
		if found != nil {
			return append(list, Companion{kind, found.path, nil}), found
		}
		list = append(list, Companion{kind, c.path, err})
	}
	return list, nil
}

// packages lists the .dwp files that are there.
func (s *DebugSearch) packages(holders []*Image) []Companion {
	files := s.Split(holders...)
	defer files.Close()
	var list []Companion
	for _, path := range files.packagePaths() {
		if _, err := files.open(path); err == nil || !isMissing(err) {
			list = append(list, Companion{DWPFile, path, err})
		}
	}
	return list
}

// listObjects lists the object files of the debug map.
func (s *DebugSearch) listObjects(im *Image) []Companion {
	objects, err := s.Objects(im)
	if err != nil && !errors.Is(err, ErrNoDebug) {
		return []Companion{{ObjectDebug, im.name, err}}
	}
	if objects == nil {
		return nil
	}
	defer objects.Close()
	list := make([]Companion, 0, len(objects.Files))
	for k := range objects.Files {
		_, err := objects.Open(k)
		list = append(list, Companion{ObjectDebug, objects.Files[k].String(), err})
	}
	return list
}
