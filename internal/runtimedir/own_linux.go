package runtimedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// name is what the folder is called; that in the folder for temporary files has the user's ID behind it.
const name = "callreel"

// roots is the folder of root's. It doesn't go by XDG_RUNTIME_DIR, which sudo may have kept from the user before.
const roots = "/run"

// Own returns the folder of the user whose rights this process has, which is made if it isn't there: /run/callreel for root,
// XDG_RUNTIME_DIR/callreel for others, and where that can't be had a folder in that for temporary files. It belongs to that user, nobody
// else has any right in it, and nobody else can put another in its place. An error says why there is none.
func Own() (string, error) {
	uid := os.Geteuid()
	var errs []error
	for _, path := range candidates(uid) {
		dir, err := own(path, uid)
		if err == nil {
			return path, dir.Close()
		}
		errs = append(errs, err)
	}
	return "", fmt.Errorf("callreel: there is no folder for what running recorders keep to themselves: %w", errors.Join(errs...))
}

// Open opens Own's folder as an O_PATH descriptor: what is done by *at calls below it goes on in it whatever becomes of its name.
func Open() (*os.File, error) {
	path, err := Own()
	if err != nil {
		return nil, err
	}
	return open(path, os.Geteuid())
}

// OpenAll opens those of a user's folders that are there, to look for what a recorder of that user has put into them. The user may have
// another XDG_RUNTIME_DIR, or none, than the one who looks; sessions are more of those that it may be. Folders that others could have made
// are passed over. Nothing below them can be believed to be more than the user's: to anybody else, root included, links there lead
// anywhere.
func OpenAll(uid int, sessions ...string) []*os.File {
	var dirs []*os.File
	list := append(candidates(uid), filepath.Join("/tmp", fmt.Sprintf("%s-%d", name, uid))) // of who has no TMPDIR
	for _, dir := range append(sessions, os.Getenv("XDG_RUNTIME_DIR")) {
		if at := filepath.Join(dir, name); filepath.IsAbs(dir) && !slices.Contains(list, at) {
			list = append(list, at)
		}
	}
	for _, path := range list {
		if dir, err := open(path, uid); err == nil {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// candidates are where a user's folder may be, the best first.
func candidates(uid int) []string {
	if uid == 0 {
		return []string{filepath.Join(roots, name), filepath.Join(os.TempDir(), name+"-0")}
	}
	id := strconv.Itoa(uid)
	var list []string
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) && uid == os.Geteuid() {
		list = append(list, filepath.Join(dir, name))
	}
	usual := filepath.Join("/run/user", id, name) // where that is nearly everywhere, also for those who don't have the variable
	return append(list, usual, filepath.Join(os.TempDir(), name+"-"+id))
}

// own makes the folder if it isn't there, and opens it.
func own(path string, uid int) (*os.File, error) {
	parent := filepath.Dir(path)
	if err := checkParent(parent, uid); err != nil {
		return nil, err
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return open(path, uid)
}

// open opens the folder of a user, if it is one that only that user, and root, can have made.
func open(path string, uid int) (*os.File, error) {
	if err := checkParent(filepath.Dir(path), uid); err != nil {
		return nil, err
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	dir := os.NewFile(uintptr(fd), path)
	var st unix.Stat_t
	switch err := unix.Fstat(fd, &st); {
	case err != nil:
		return nil, errors.Join(&fs.PathError{Op: "stat", Path: path, Err: err}, dir.Close())
	case int(st.Uid) != uid:
		return nil, errors.Join(fmt.Errorf("%s: %w: it belongs to user %d", path, fs.ErrPermission, st.Uid), dir.Close())
	case st.Mode&0o077 != 0:
		return nil, errors.Join(fmt.Errorf("%s: %w: others have rights in it (mode %#o); take them away: chmod 0700", path, fs.ErrPermission, st.Mode&0o7777), dir.Close())
	}
	return dir, nil
}

// checkParent makes sure that nobody but root and the user can put another folder in the place of one that is in this one.
func checkParent(path string, uid int) error {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil { // links on the way there are the administrator's, or the user's own by the environment
		return &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return &fs.PathError{Op: "stat", Path: path, Err: unix.ENOTDIR}
	case st.Uid != 0 && int(st.Uid) != uid:
		return fmt.Errorf("%s: %w: it belongs to user %d", path, fs.ErrPermission, st.Uid)
	case st.Mode&0o022 != 0 && st.Mode&unix.S_ISVTX == 0:
		return fmt.Errorf("%s: %w: others can rename what is in it (mode %#o)", path, fs.ErrPermission, st.Mode&0o7777)
	}
	return nil
}
