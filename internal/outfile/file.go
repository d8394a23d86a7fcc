package outfile

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// Private is the mode of files for which none is asked.
const Private fs.FileMode = 0o600

// Options say how a file is made.
type Options struct {
	// Force puts the file in the place of one that has its name. A folder is never replaced, nor is a file of another user's in a folder
	// where not just its owner can write: see [ErrOthers].
	Force bool
	// Into lets a pipe, a device or a descriptor (/dev/stdout) that has the name be written into without Force.
	Into bool
	// Mode is the file's, exactly: the umask takes nothing from it. 0 is Private.
	Mode fs.FileMode
}

// ErrOthers is wrapped by errors about what belongs to another user: a file that would be replaced, a link that would be followed.
var ErrOthers = fmt.Errorf("it belongs to another user: %w", fs.ErrPermission)

// A File is written. Its Close leaves it where it is; of one that was begun only Finish makes something that lasts.
type File struct {
	*os.File
	path    string // the name that it has, or will have
	opt     Options
	in      string // the folder, as the caller gave it
	dir     *Folder
	final   string      // the name in the folder that it is to have
	name    string      // that it has in the folder now; "" if it isn't ours to name: a pipe, a device
	info    fs.FileInfo // which file it is
	pending bool        // it has a temporary name
}

// Create makes a file that has its name at once. Without force it fails with an error that wraps fs.ErrExist if something has the name.
// The caller must Close it, or Abandon it.
func Create(path string, opt Options) (*File, error) { return begin(path, opt, false) }

// Begin makes a file that gets its name when it is whole, by Finish. Who has the name by then matters, too. The caller must Finish it,
// or Abandon it.
func Begin(path string, opt Options) (*File, error) { return begin(path, opt, true) }

func begin(path string, opt Options, pending bool) (*File, error) {
	in, name, err := split(path)
	if err != nil {
		return nil, err
	}
	dir, err := OpenFolder(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f, err := dir.begin(path, name, opt, pending)
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return f, nil
}

// Write makes a whole file of what write writes: after a failure there is none, and what had the name still has it.
func Write(path string, opt Options, write func(io.Writer) error) error {
	f, err := Begin(path, opt)
	if err != nil {
		return err
	}
	if err := write(f.File); err != nil {
		return errors.Join(err, f.Abandon())
	}
	return f.Finish()
}

// Check says why a file could not be made now, without making it.
func Check(path string, opt Options) error {
	in, name, err := split(path)
	if err != nil {
		return err
	}
	dir, err := OpenFolder(in)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer dir.Close()
	what, err := dir.examine(name, opt)
	if err == nil && what != isInto {
		err = dir.writable()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// begin makes a file in the folder, which is the file's from then on.
func (d *Folder) begin(path, name string, opt Options, pending bool) (*File, error) {
	const tries = 10 // what has the name may come and go meanwhile
	for try := 0; ; try++ {
		what, err := d.examine(name, opt)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		f := &File{path: path, opt: opt, in: d.path, dir: d, final: name, name: name}
		switch {
		case what == isInto:
			return f, f.into()
		case pending || what == isThere:
			f.name, f.pending = temporary(name), true
		}
		if err = f.make(); errors.Is(err, fs.ErrExist) && try < tries {
			continue
		}
		if err == nil && !pending && f.pending { // it gets the name of another, which is gone then
			err = f.take()
		}
		if err != nil {
			return nil, err
		}
		return f, nil
	}
}

// temporary is a name that nobody can guess.
func temporary(name string) string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // which ends the program rather than fail
	return "." + name[:min(len(name), 64)] + "-" + hex.EncodeToString(b[:])
}

// make makes the file under the name that it is to have now.
func (f *File) make() (err error) {
	if f.File, err = f.dir.create(f.name, f.path, Private); err != nil {
		return err
	}
	if f.opt.Mode != 0 {
		err = f.Chmod(f.opt.Mode)
	}
	if err == nil {
		f.info, err = f.Stat()
	}
	if err != nil {
		return errors.Join(err, f.Abandon())
	}
	return nil
}

// into opens what is there.
func (f *File) into() (err error) {
	f.File, err = f.dir.openInto(f.name)
	f.name = ""
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	f.info, err = f.Stat()
	return err
}

// Name is the file's name, as the caller gave it.
func (f *File) Name() string { return f.path }

// Close closes the file. It stays where it is, a pending one under its temporary name.
func (f *File) Close() error { return errors.Join(f.File.Close(), f.dir.Close()) }

// closed closes what was written, if that isn't done yet. Only what is closed is whole: some file systems tell of a full disk as late as
// that.
func (f *File) closed() error {
	if err := f.File.Close(); !errors.Is(err, fs.ErrClosed) {
		return err
	}
	return nil
}

// Finish closes a file that was begun and gives it its name. After an error there is none.
func (f *File) Finish() error {
	if f.name == "" || !f.pending {
		return errors.Join(f.closed(), f.dir.Close())
	}
	if err := f.closed(); err != nil {
		return errors.Join(err, f.Abandon())
	}
	if err := f.take(); err != nil {
		return err
	}
	return f.dir.Close()
}

// take gives the file its name, and abandons it where that can't be.
func (f *File) take() error {
	what, err := f.dir.examine(f.final, f.opt)
	switch {
	case err != nil:
	case !f.ours():
		err = errChanged
	case what == isInto:
		err = fs.ErrExist // it has become a pipe meanwhile
	case what == isThere:
		err = f.dir.replace(f.name, f.final)
	default:
		err = f.dir.rename(f.name, f.final)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("%s: %w", f.path, err), f.Abandon())
	}
	f.name, f.pending = f.final, false
	return nil
}

// FinishNumbered is Finish for the first of the numbered names from a number on that nobody has, and returns its number. old are names that
// may be replaced, as long as they have the files that are given.
func (f *File) FinishNumbered(from int, name func(int) string, old map[string]fs.FileInfo) (int, error) {
	if err := f.closed(); err != nil {
		return 0, errors.Join(err, f.Abandon())
	}
	const most = 1_000_000 // numbers that others have
	folder := strings.TrimSuffix(f.path, f.final)
	if !f.ours() {
		return 0, errors.Join(fmt.Errorf("%s: %w", f.path, errChanged), f.Abandon())
	}
	for n := from; n < from+most; n++ {
		to := name(n)
		var err error
		if was := old[to]; was != nil {
			err = f.dir.replaceIf(f.name, to, was)
		} else {
			err = f.dir.rename(f.name, to)
		}
		switch {
		case err == nil:
			f.path, f.name, f.pending = folder+to, to, false
			return n, f.dir.Close()
		case !errors.Is(err, fs.ErrExist):
			return 0, errors.Join(fmt.Errorf("%s: %w", folder+to, err), f.Abandon())
		}
	}
	return 0, errors.Join(fmt.Errorf("%s: %w, and so have the next %d numbers", name(from), fs.ErrExist, most), f.Abandon())
}

// errChanged: what was written is gone. Who does that just when the file gets its name gives away a name in a folder that is theirs.
var errChanged = errors.New("somebody else has removed what was written, and changes this folder")

// ours says whether the file still has the name that we gave it.
func (f *File) ours() bool {
	there, err := f.dir.lstat(f.name)
	return err == nil && os.SameFile(there, f.info)
}

// Abandon closes the file, if it isn't closed yet, and removes it, if its name hasn't become another's.
func (f *File) Abandon() error {
	var err error
	if f.File != nil {
		err = f.closed()
	}
	if f.name != "" && f.info != nil && f.ours() {
		err = errors.Join(err, f.dir.remove(f.name))
	}
	f.name = ""
	return errors.Join(err, f.dir.Close())
}

// Remove is Abandon for a file that was closed: it removes it, if it has its name still.
func (f *File) Remove() error {
	if f.name == "" {
		return nil
	}
	dir, err := OpenFolder(f.in)
	if err != nil {
		return err
	}
	closed := *f
	closed.dir = dir
	f.name = ""
	return closed.Abandon()
}

// Reopen opens the file for reading, once more, if it has its name still; what else has the name by now isn't opened.
func (f *File) Reopen() (*os.File, error) {
	if f.name == "" {
		return nil, fmt.Errorf("%s: no regular file: %w", f.path, fs.ErrInvalid)
	}
	dir, err := OpenFolder(f.in)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	again, err := dir.read(f.name)
	if err != nil {
		return nil, err
	}
	if there, err := again.Stat(); err != nil || !os.SameFile(there, f.info) {
		return nil, errors.Join(fmt.Errorf("%s: another file has its name now: %w", f.path, fs.ErrNotExist), err, again.Close())
	}
	return again, nil
}
