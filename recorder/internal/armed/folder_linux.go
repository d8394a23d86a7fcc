package armed

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/internal/outfile"
)

// Folder is where dumps go.
type Folder struct {
	Path string
	// Force lets dumps replace those that are there. Mode is each dump's; a folder that has to be made lets in who may read them.
	Force bool
	Mode  fs.FileMode
}

// Check finds out, before the process is touched, whether dumps could be made.
func (f *Folder) Check() error {
	err := outfile.CheckFolder(f.Path)
	switch {
	case errors.Is(err, unix.ENOTDIR):
		return fmt.Errorf("callreel: %s: %w, and no folder for dumps; choose another name with -o", f.Path, fs.ErrExist)
	case err != nil:
		return fmt.Errorf("callreel: no dumps can be made in %s: %w", f.Path, err)
	}
	return nil
}

// Make makes the folder of the dumps. Who waits for it to appear may count on recording being on from then.
func (f *Folder) Make() error {
	d, err := f.open()
	if err != nil {
		return fmt.Errorf("callreel: the dumps have no place: %w", err)
	}
	return d.Close()
}

// open opens the folder of the dumps, which is made again if somebody has removed it.
func (f *Folder) open() (*outfile.Folder, error) {
	return outfile.MakeFolder(f.Path, outfile.FolderMode(f.Mode))
}

// dumpName is the name of a dump.
func dumpName(number int) string { return fmt.Sprintf("slow-%04d.reel", number) }

// dumps says which dumps the folder has, and the highest number of them.
func (f *Folder) dumps() (dumps map[string]fs.FileInfo, last int, err error) {
	d, err := f.open()
	if err != nil {
		return nil, 0, err
	}
	names, err := d.Names()
	dumps = map[string]fs.FileInfo{}
	for _, name := range names {
		number, isDump := strings.CutPrefix(strings.TrimSuffix(name, ".reel"), "slow-")
		n, nerr := strconv.Atoi(number)
		if nerr != nil || !isDump {
			continue
		}
		last = max(last, n)
		if fi, err := d.MayReplace(name); err == nil {
			dumps[name] = fi
		}
	}
	return dumps, last, errors.Join(err, d.Close())
}
