package object

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
)

const (
	// maxParents is how far up bundles are looked for: a framework inside of an
	// application is five folders deep.
	maxParents = 8

	// maxFolder bounds how many entries of one folder are looked at. Folders where
	// the dSYMs of all builds are collected have thousands.
	maxFolder = 1 << 14

	// maxBundleFiles bounds the files of one dSYM; most have one.
	maxBundleFiles = 256

	dsymSuffix = ".dSYM"
)

// dsymCandidates yields the dSYM bundles that may belong to a Mach-O image.
func (s *DebugSearch) dsymCandidates(im *Image) iter.Seq[candidate] {
	return func(yield func(candidate) bool) {
		id := im.ID()
		if id == "" {
			yield(candidate{im.name, func() (*Image, error) {
				return nil, im.errorf("it has no UUID to know a dSYM by")
			}})
			return
		}
		for _, path := range bundlesBeside(im) {
			if !yield(inBundle(im, path, id)) {
				return
			}
		}
		for _, dir := range s.Dirs {
			if !s.dsymsIn(im, dir, id, yield) {
				return
			}
		}
	}
}

// bundlesBeside lists where linkers and archives put the dSYM: beside the file, and
// beside each of the bundles that the file is in, under the name of either
// (Name.app.dSYM, Name.dSYM).
func bundlesBeside(im *Image) []string {
	var bundles []string
	for _, path := range im.paths() {
		bundles = append(bundles, path+dsymSuffix)
		named := filepath.Base(path) + dsymSuffix
		dir := filepath.Dir(path)
		for range maxParents {
			if isBundle(dir) {
				bundles = append(bundles, dir+dsymSuffix, filepath.Join(filepath.Dir(dir), named))
			}
			dir = filepath.Dir(dir)
		}
	}
	return unique(bundles)
}

// isBundle knows the folders that macOS shows as one thing.
func isBundle(dir string) bool {
	switch filepath.Ext(dir) {
	case ".app", ".appex", ".bundle", ".framework", ".kext", ".plugin", ".prefPane", ".systemextension", ".xpc":
		return true
	}
	return false
}

// dsymsIn yields what a folder of the user's may hold: it may be a dSYM bundle, have
// one of the image's name, or have many of any name.
func (s *DebugSearch) dsymsIn(im *Image, dir, id string, yield func(candidate) bool) (more bool) {
	if strings.HasSuffix(dir, dsymSuffix) {
		return yield(inBundle(im, dir, id))
	}
	named := ""
	if im.path != "" {
		named = filepath.Join(dir, filepath.Base(im.path)+dsymSuffix)
		if !yield(inBundle(im, named, id)) {
			return false
		}
	}
	return yield(candidate{filepath.Join(dir, "*"+dsymSuffix), func() (*Image, error) {
		return searchBundles(im, dir, named, id)
	}})
}

// searchBundles looks into every bundle of a folder. That the others are another
// image's is no news, so only damage is reported.
func searchBundles(im *Image, dir, except, id string) (*Image, error) {
	names, err := readFolder(dir, maxFolder)
	if err != nil {
		return nil, err
	}
	var refused []error
	for _, name := range names {
		path := filepath.Join(dir, name)
		if !strings.HasSuffix(name, dsymSuffix) || path == except {
			continue
		}
		found, err := openBundle(im, path, id)
		if err == nil {
			return found, nil
		}
		var other *IDError
		if !isMissing(err) && !errors.As(err, &other) && len(refused) < maxRefused {
			refused = append(refused, err)
		}
	}
	if len(refused) == 0 {
		return nil, fmt.Errorf("object: %s: no dSYM with ID %s: %w", dir, id, fs.ErrNotExist)
	}
	return nil, errors.Join(refused...)
}

// inBundle is a candidate of a dSYM bundle.
func inBundle(im *Image, path, id string) candidate {
	return candidate{path, func() (*Image, error) { return openBundle(im, path, id) }}
}

// openBundle opens the file in a dSYM bundle that has the ID.
func openBundle(im *Image, bundle, id string) (*Image, error) {
	dir := filepath.Join(bundle, "Contents", "Resources", "DWARF")
	names, err := readFolder(dir, maxBundleFiles)
	if err != nil {
		return nil, err
	}
	var refused []error
	for _, name := range names {
		found, err := openFor(im, filepath.Join(dir, name), id)
		if err == nil {
			return found, nil
		}
		if len(refused) < maxRefused {
			refused = append(refused, err)
		}
	}
	if len(refused) == 0 {
		return nil, fmt.Errorf("object: %s: empty: %w", dir, fs.ErrNotExist)
	}
	return nil, errors.Join(refused...)
}

// readFolder lists the names in a folder, up to a bound, in the folder's order.
func readFolder(dir string, most int) ([]string, error) {
	// Opening a FIFO would wait; what is no folder is not opened.
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("object: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("object: %s: not a folder (%s)", dir, info.Mode().Type())
	}
	f, err := os.OpenFile(dir, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, fmt.Errorf("object: %w", err)
	}
	defer f.Close()
	names, err := f.Readdirnames(most)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("object: %w", err)
	}
	return names, nil
}
