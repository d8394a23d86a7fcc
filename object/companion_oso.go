package object

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
)

// Objects are the object files of a Mach-O image's debug map. They may be opened by
// several goroutines at once.
type Objects struct {
	// Files lists them in the order of the map. The slice belongs to the Objects.
	Files []ObjectFile

	search   *DebugSearch
	image    *Image
	files    fileSet
	mu       sync.Mutex
	archives map[string]*archive
}

// maxNamesakes bounds how many members of one name are told apart by their times.
const maxNamesakes = 64

// archive is one archive with its members by name.
type archive struct {
	contents *contents
	members  map[string][]member
	err      error
}

// Objects reads the debug map of a Mach-O image; the error wraps ErrNoDebug when it
// has none. Nothing is opened yet. The Objects must be closed.
func (s *DebugSearch) Objects(im *Image) (*Objects, error) {
	files, err := im.OSO()
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, im.errorf("%w: it has no debug map", ErrNoDebug)
	}
	return &Objects{Files: files, search: s, image: im}, nil
}

// Open opens the object file Files[k], as named or by its base name in the folders of
// Dirs. One that was changed after linking (another modification time than the map
// says) no longer describes the image and is refused by name. The image belongs to
// the Objects and is closed with them.
func (o *Objects) Open(k int) (*Image, error) {
	file := &o.Files[k]
	var missing error
	errs := []error{fmt.Errorf("object: %w: object file %s", ErrNoDebug, file)}
	for _, path := range o.places(file) {
		at := *file
		at.Path = path
		// The time is part of the key: an archive may hold several files of one name.
		found, err := o.files.open(fmt.Sprintf("%s@%d", &at, at.ModTime), func() (*Image, error) { return o.open(&at) })
		if err == nil {
			return found, nil
		}
		if !isMissing(err) {
			errs = append(errs, err)
		} else if missing == nil {
			missing = err
		}
	}
	if len(errs) == 1 && missing != nil {
		errs = append(errs, missing) // so that the caller can tell it from a refusal
	}
	return nil, errors.Join(errs...)
}

// places lists where an object file may be.
func (o *Objects) places(file *ObjectFile) []string {
	var paths []string
	name := filepath.FromSlash(file.Path)
	if filepath.IsAbs(name) {
		paths = append(paths, filepath.Clean(name))
	} else {
		for _, dir := range o.image.folders() {
			paths = append(paths, filepath.Join(dir, name))
		}
	}
	for _, dir := range o.search.Dirs {
		paths = append(paths, filepath.Join(dir, filepath.Base(name)))
	}
	return unique(paths)
}

// open opens an object file at its place.
func (o *Objects) open(file *ObjectFile) (*Image, error) {
	if file.Member != "" {
		return o.openMember(file)
	}
	found, err := o.image.companions().OpenArch(file.Path, o.image.ArchName())
	if err != nil {
		return nil, err
	}
	if err := checkModTime(file, found.file.ModTime().Unix()); err != nil {
		_ = found.Close() // only read from
		return nil, err
	}
	return found, nil
}

// checkModTime refuses a file that was changed after linking. Linkers write 0 when
// they are told to make the same bytes each time.
func checkModTime(file *ObjectFile, got int64) error {
	if file.ModTime != 0 && got != file.ModTime {
		return fmt.Errorf("object: %s: refused: modification time is %d, want %d as the debug map says", file, got, file.ModTime)
	}
	return nil
}

// openMember opens a file in an archive; the image shares the archive's contents.
func (o *Objects) openMember(file *ObjectFile) (*Image, error) {
	a, err := o.archive(file.Path)
	if err != nil {
		return nil, err
	}
	refused := fmt.Errorf("object: %s: no such file in the archive", file)
	for _, m := range a.members[file.Member] {
		if err := checkModTime(file, m.modTime); err != nil {
			refused = err
			continue
		}
		return a.contents.member(file.String(), m.span, o.image.ArchName())
	}
	return nil, refused
}

// archive returns an archive, reading it the first time.
func (o *Objects) archive(path string) (*archive, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if a, ok := o.archives[path]; ok {
		return a, a.err
	}
	a := new(archive)
	if o.archives == nil {
		o.archives = make(map[string]*archive)
	}
	o.archives[path] = a
	a.contents, a.err = openContents(path, o.image.Allowance())
	if a.err != nil {
		return a, a.err
	}
	members, err := readArchive(path, a.contents)
	a.err = err
	a.members = make(map[string][]member)
	for _, m := range members {
		if same := a.members[m.name]; len(same) < maxNamesakes {
			a.members[m.name] = append(same, m)
		}
	}
	return a, a.err
}

// Close closes all images that Open returned, and their archives.
func (o *Objects) Close() error {
	err := o.files.close()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, a := range o.archives {
		if a.contents != nil {
			_ = a.contents.close() // only read from
		}
	}
	o.archives = nil
	return err
}
