package object

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// SystemDebugDir is where Linux distributions install separate debug files.
const SystemDebugDir = "/usr/lib/debug"

// ErrNoDebug is wrapped by the error of a search that found no file that fits.
var ErrNoDebug = errors.New("no debug file found")

// A DebugSearch finds the files that hold an image's debug information by the rules
// of GDB and of Apple's tools. What a file says about its companions is not trusted:
// only regular files are opened, a file is taken by its ID (and checksum, where one
// is stated), and folders are read up to a bound.
//
// The zero value searches beside the image and in SystemDebugDir. It may be used by
// several goroutines at once.
type DebugSearch struct {
	// Dirs are searched in order, before SystemDebugDir. One may be laid out like
	// SystemDebugDir, or just hold debug files or dSYM bundles.
	Dirs []string
}

// companions opens files that share the image's allowance.
func (i *Image) companions() Opener { return Opener{Memory: i.Allowance()} }

// A NoDebugError is why no file fits: ErrNoDebug and what was refused.
type NoDebugError struct {
	Refused []error // files that are there, at most maxRefused; empty when there was none
	none    error
}

// Error tells all reasons.
func (e *NoDebugError) Error() string { return errors.Join(e.Unwrap()...).Error() }

// Unwrap returns ErrNoDebug and the refusals.
func (e *NoDebugError) Unwrap() []error { return append([]error{e.none}, e.Refused...) }

// An IDError says that a file was refused because it belongs to another image.
type IDError struct {
	Path string   // the file
	Got  []string // its IDs, one for each architecture; empty when it has none
	Want string   // the image's ID
}

// Error names the file and both IDs.
func (e *IDError) Error() string {
	got := "no ID"
	if len(e.Got) > 0 {
		got = "ID " + strings.Join(e.Got, ", ")
	}
	return fmt.Sprintf("object: %s: refused: it has %s, want ID %s", e.Path, got, e.Want)
}

// Debug opens the separate debug file of an image; the caller closes it. The rules,
// in order:
//
//   - ELF: DIR/.build-id/ab/cdef….debug for each folder; the file that
//     .gnu_debuglink names beside the image, in .debug there, under DIR with the
//     image's own folder appended, and in the folders of Dirs; the image's name, with
//     or without .debug, in the folders of Dirs. The ID must be the image's where both
//     have one, and the CRC that of the link.
//   - Mach-O: NAME.dSYM beside the image or beside the bundle that it is in, and the
//     dSYM bundles in the folders of Dirs. The UUID must be the image's.
//
// In all of them the code must lie where the image's does, see CheckLayout. A file that does not fit is refused and the search goes on. When nothing is found
// the error is a NoDebugError.
func (s *DebugSearch) Debug(im *Image) (*Image, error) {
	return firstFit(im, s.debugCandidates(im))
}

// Alt opens the file that .gnu_debugaltlink of a debug file names, which holds what
// dwz found to be common to several (DWARF 5 §7.3.6, supplementary object file); the
// caller closes it. It returns nil, and no error, when the image names none. The
// path is taken as it is, or relative to the image's folder; then as
// DIR/.build-id/ab/cdef….debug, and DIR/.dwz/NAME. The ID must be the stated one.
func (s *DebugSearch) Alt(im *Image) (*Image, error) {
	candidates := s.altCandidates(im)
	if candidates == nil {
		return nil, nil
	}
	return firstFit(im, candidates)
}

func (s *DebugSearch) debugCandidates(im *Image) iter.Seq[candidate] {
	if im.Format == MachO {
		return fitting(im, s.dsymCandidates(im))
	}
	return fitting(im, s.elfCandidates(im))
}

// dirs lists the folders to search in order, each once.
func (s *DebugSearch) dirs() []string {
	var dirs []string
	for _, dir := range append(slices.Clip(s.Dirs), SystemDebugDir) {
		if dir = filepath.Clean(dir); !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// candidate is a file that may be the one searched for. open returns it when it
// fits, or why it does not.
type candidate struct {
	path string
	open func() (*Image, error)
}

// maxRefused bounds how many refusals an error lists.
const maxRefused = 16

// firstFit opens the first candidate that fits.
func firstFit(im *Image, candidates iter.Seq[candidate]) (*Image, error) {
	e := &NoDebugError{none: im.errorf("%w", ErrNoDebug)}
	for c := range candidates {
		found, err := c.open()
		if err == nil {
			return found, nil
		}
		if !isMissing(err) && len(e.Refused) < maxRefused {
			e.Refused = append(e.Refused, err)
		}
	}
	return nil, e
}

// isMissing says whether an error only means that there is no such file.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// openFor opens a file that must have an ID, "" for any, and must not be the image's
// own. Of a fat file it takes the part that has the ID.
func openFor(im *Image, path, id string) (*Image, error) {
	found, err := im.companions().OpenID(path, id)
	if err != nil {
		return nil, err
	}
	if im.file != nil && os.SameFile(im.file, found.file) {
		err = fmt.Errorf("object: %s: refused: it is the image itself", path)
	} else if found.Format != im.Format {
		err = fmt.Errorf("object: %s: refused: it is %s, want %s", path, found.Format, im.Format)
	}
	if err != nil {
		_ = found.Close() // only read from
		return nil, err
	}
	return found, nil
}

// parseID parses the file, or the part of a fat one, that has the ID; "" for any.
func parseID(path string, c *contents, id string) (*Image, error) {
	slices, err := readSlices(path, c)
	if err != nil {
		return nil, err
	}
	if slices == nil || id == "" {
		found, err := parseContents(path, c, "")
		if err != nil {
			return nil, err
		}
		if id != "" && found.ID() != id {
			return nil, idError(path, id, found)
		}
		return found, nil
	}
	var others []*Image
	var failed error
	for _, s := range slices {
		part := newImage(path, c)
		part.selectSlice(s)
		if err := part.parse(); err != nil {
			failed = err // another part may still be the one
			continue
		}
		if part.ID() == id {
			return part, nil
		}
		others = append(others, part)
	}
	if failed != nil {
		return nil, failed
	}
	return nil, idError(path, id, others...)
}

// idError tells the IDs of the images in the file from the one that is wanted.
func idError(path, want string, images ...*Image) error {
	e := &IDError{Path: path, Want: want}
	for _, i := range images {
		if id := i.ID(); id != "" {
			e.Got = append(e.Got, id)
		}
	}
	return e
}

// buildIDPath is the place of a debug file by its ID below a debug folder.
func buildIDPath(dir, id string) (string, bool) {
	if raw, err := hex.DecodeString(id); err != nil || len(raw) < 2 {
		return "", false
	}
	return filepath.Join(dir, ".build-id", id[:2], id[2:]+".debug"), true
}

// folders lists the folders that the image's file is in: as it was named, and where
// links lead to when that is another place. It is empty for images in memory.
func (i *Image) folders() []string {
	if i.path == "" {
		return nil
	}
	path, err := filepath.Abs(i.path)
	if err != nil {
		return nil
	}
	dirs := []string{filepath.Dir(path)}
	real, err := filepath.EvalSymlinks(path)
	if err != nil { // it leads nowhere here: to a file that is gone, or that only a process with another root sees
		real, err = os.Readlink(path)
	}
	if dir := filepath.Dir(real); err == nil && filepath.IsAbs(dir) && dir != dirs[0] {
		dirs = append(dirs, dir)
	}
	return dirs
}

// paths lists the names of the image's file, like folders.
func (i *Image) paths() []string {
	if i.path == "" {
		return nil
	}
	path, err := filepath.Abs(i.path)
	if err != nil {
		return nil
	}
	paths := []string{path}
	if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
		paths = append(paths, real)
	}
	return paths
}
