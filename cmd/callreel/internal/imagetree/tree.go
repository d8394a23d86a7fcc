package imagetree

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/callreel/callreel/object"
)

// A File is one image, or one architecture's part of a fat file.
type File struct {
	Path string
	Arch string // of a fat file, "" otherwise
}

// Open opens the image; the caller closes it.
func (f *File) Open(o object.Opener) (*object.Image, error) { return o.OpenArch(f.Path, f.Arch) }

// A Group is the files of one ID.
type Group struct {
	ID    string
	Image File  // with code, where there is one
	Debug *File // with DWARF, when that is another file
}

// A Failure is a file that looks like an image and cannot be read as one.
type Failure struct {
	Path string
	Err  error
}

// A Tree is what is below a folder.
type Tree struct {
	Groups    []Group // sorted by the path of Image
	WithoutID []string
	Failures  []Failure
}

// Read looks at every regular file below dir; links are not followed. A folder that can't be
// read is a Failure.
func Read(ctx context.Context, dir string) (*Tree, error) {
	t := &Tree{}
	known := map[string]*found{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && path == dir:
			return err
		case err != nil:
			t.fail(path, err)
		case d.Type().IsRegular():
			t.file(path, known)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("imagetree: %w", err)
	}
	for id, f := range known {
		t.Groups = append(t.Groups, f.group(id))
	}
	slices.SortFunc(t.Groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(a.Image.Path, b.Image.Path), cmp.Compare(a.Image.Arch, b.Image.Arch))
	})
	return t, nil
}

func (t *Tree) fail(path string, err error) { t.Failures = append(t.Failures, Failure{path, err}) }

// found is the first file of each sort that has an ID.
type found struct{ plain, debug *File }

func (f *found) group(id string) Group {
	switch {
	case f.plain == nil:
		return Group{ID: id, Image: *f.debug}
	case f.debug == nil:
		return Group{ID: id, Image: *f.plain}
	}
	return Group{ID: id, Image: *f.plain, Debug: f.debug}
}

// file adds the images of one file, if it is one.
func (t *Tree) file(path string, known map[string]*found) {
	magic, err := readMagic(path)
	if err != nil {
		t.fail(path, err)
	}
	if !isImage(magic) {
		return
	}
	im, err := object.Open(path)
	var fat *object.FatError
	switch {
	case errors.As(err, &fat):
		for _, s := range fat.Slices {
			im, err := object.OpenArch(path, s.Name)
			t.image(im, err, File{path, s.Name}, known)
		}
	case isFat(magic) && errors.Is(err, object.ErrUnknownFormat): // one of Java's class files
	default:
		t.image(im, err, File{Path: path}, known)
	}
}

// image adds one image and closes it.
func (t *Tree) image(im *object.Image, err error, f File, known map[string]*found) {
	if err != nil {
		t.fail(f.Path, err)
		return
	}
	defer im.Close()
	if im.Type == object.Core {
		return
	}
	id := im.ID()
	if id == "" {
		t.WithoutID = append(t.WithoutID, f.Path)
		return
	}
	of := known[id]
	if of == nil {
		of = &found{}
		known[id] = of
	}
	place := &of.plain
	if im.Section(".debug_info") != nil {
		place = &of.debug
	}
	if *place == nil {
		*place = &f
	}
}

// readMagic reads a file's first four bytes; 0 when it has less.
func readMagic(path string) (uint32, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var b [4]byte
	if n, err := io.ReadFull(f, b[:]); n < len(b) {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, nil
		}
		return 0, err
	}
	return binary.BigEndian.Uint32(b[:]), nil
}

func isImage(magic uint32) bool {
	switch magic {
	case 0x7f454c46, // ELF
		0xfeedface, 0xfeedfacf, 0xcefaedfe, 0xcffaedfe: // Mach-O (mach-o/loader.h)
		return true
	}
	return isFat(magic)
}

// isFat says whether a file starts like a fat one (mach-o/fat.h).
func isFat(magic uint32) bool { return magic == 0xcafebabe || magic == 0xcafebabf }
