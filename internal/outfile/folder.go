package outfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// A Folder is one that files are made in.
type Folder struct {
	path   string // as the caller gave it
	handle        // what the system knows it by
}

// PrivateFolder is the mode of folders for which none is asked.
const PrivateFolder fs.FileMode = 0o700

// FolderMode is the mode of a folder for files of a mode: who may read them may look into it, too.
func FolderMode(files fs.FileMode) fs.FileMode {
	if files == 0 {
		return PrivateFolder
	}
	return files | files&0o444>>2
}

// MakeFolder makes a folder if there is none, of a mode that is exact (0: PrivateFolder), and opens it. One that is there stays as it is.
func MakeFolder(path string, mode fs.FileMode) (*Folder, error) {
	in, name, err := split(filepath.Clean(path))
	if err != nil { // the root, or one that is above
		return OpenFolder(path)
	}
	dir, err := OpenFolder(in)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	made := dir.mkdir(name, PrivateFolder)
	if made != nil && !errors.Is(made, fs.ErrExist) {
		return nil, fmt.Errorf("%s: %w", path, made)
	}
	d, err := OpenFolder(path)
	if err == nil && made == nil && mode != 0 {
		if err = d.chmod(mode); err != nil {
			err = errors.Join(fmt.Errorf("%s: %w", path, err), d.Close())
		}
	}
	return d, err
}

// MakeFolders is MakeFolder for a folder whose parents may have to be made, too, of the same mode.
func MakeFolders(path string, mode fs.FileMode) (*Folder, error) {
	d, err := OpenFolder(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return d, err
	}
	if in := filepath.Dir(filepath.Clean(path)); in != path {
		parent, err := MakeFolders(in, mode)
		if err != nil {
			return nil, err
		}
		if err := parent.Close(); err != nil {
			return nil, err
		}
	}
	return MakeFolder(path, mode)
}

// CheckFolder says why no files could be made in a folder, which is made itself if it isn't there.
func CheckFolder(path string) error {
	d, err := OpenFolder(path)
	if errors.Is(err, fs.ErrNotExist) {
		in, _, serr := split(filepath.Clean(path))
		if serr != nil {
			return serr
		}
		d, err = OpenFolder(in)
	}
	if err != nil {
		return err
	}
	return errors.Join(d.writable(), d.Close())
}

// Begin makes a file in the folder that gets its name when it is whole. The folder goes over to the file, which closes it.
func (d *Folder) Begin(name string, opt Options) (*File, error) {
	f, err := d.begin(filepath.Join(d.path, name), name, opt, true)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return f, nil
}

// BeginNumbered makes a file in the folder for FinishNumbered; name is such as it may get, for errors. The folder goes over to the file.
func (d *Folder) BeginNumbered(name string, mode fs.FileMode) (*File, error) {
	f := &File{path: filepath.Join(d.path, name), opt: Options{Mode: mode}, in: d.path, dir: d, final: name, name: temporary(name), pending: true}
	if err := f.make(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return f, nil
}

// MayReplace says what has a name in the folder, or why it may not be replaced with force.
func (d *Folder) MayReplace(name string) (fs.FileInfo, error) {
	fi, err := d.lstat(name)
	if err != nil {
		return nil, err
	}
	if fi.IsDir() {
		return nil, ErrFolder
	}
	return fi, d.mayReplace(fi)
}

// Private says why the folder isn't its user's alone: others than that user, and root, can change what is in it.
func (d *Folder) Private() error {
	fi, err := d.stat()
	if err != nil {
		return err
	}
	if uid, known := owner(fi); known && uid != os.Geteuid() {
		return fmt.Errorf("%s: %w (%d)", d.path, ErrOthers, uid)
	}
	if fi.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s: %w: other users can change what is in it (mode %#o)", d.path, fs.ErrPermission, fi.Mode().Perm())
	}
	return nil
}

// standing is how it stands with a name that a file is to have.
type standing int

const (
	isFree  standing = iota
	isThere          // it has a file that may be replaced
	isInto           // it has something that is to be written into
)

// ErrFolder is wrapped by errors about names that folders have.
var ErrFolder = syscall.EISDIR

// examine looks at a name.
func (d *Folder) examine(name string, opt Options) (standing, error) {
	fi, err := d.lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return isFree, nil
	case err != nil:
		return 0, err
	case fi.IsDir():
		return 0, ErrFolder
	}
	if !fi.Mode().IsRegular() && (opt.Into || opt.Force) {
		switch err := d.canInto(name); {
		case err == nil:
			return isInto, nil
		case fi.Mode()&fs.ModeSymlink == 0:
			return 0, err
		}
	}
	if !opt.Force {
		return 0, fs.ErrExist
	}
	return isThere, d.mayReplace(fi)
}

// mayReplace says why what has a name may not be replaced. In a folder where several users can write, each one's files are their own, also
// if root is told to replace them. In one that is somebody's alone, they are that one's to let go.
func (d *Folder) mayReplace(fi fs.FileInfo) error {
	uid, known := owner(fi)
	if !known || uid == os.Geteuid() {
		return nil
	}
	in, err := d.stat()
	if err != nil {
		return err
	}
	if in.Mode()&fs.ModeSticky != 0 || in.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%w (%d), in a folder where others can write, and is not replaced; remove it, or choose another name", ErrOthers, uid)
	}
	return nil
}

// split parts a path into the folder and the name in it, without resolving "..", which may lead elsewhere behind a link.
func split(path string) (in, name string, err error) {
	in, name = filepath.Split(path)
	switch {
	case path == "":
		return "", "", &fs.PathError{Op: "open", Path: path, Err: syscall.ENOENT}
	case name == "" || name == "." || name == "..":
		return "", "", &fs.PathError{Op: "open", Path: path, Err: ErrFolder}
	case in == "":
		in = "."
	case in != "/":
		in = in[:len(in)-1]
	}
	return in, name, nil
}
