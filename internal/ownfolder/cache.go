package ownfolder

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
)

// Cache returns the folder for the caches of callreel: XDG_CACHE_HOME, or what the system
// has for it. Where root has inherited the folder of another user, as sudo -E and su make
// it do, root's own is taken. The error says why there is none.
func Cache() (string, error) {
	dir, err := os.UserCacheDir()
	if err == nil {
		err = Check(filepath.Join(dir, "callreel"))
		if err == nil {
			return filepath.Join(dir, "callreel"), nil
		}
	}
	if os.Geteuid() != 0 {
		return "", err
	}
	root, rootErr := user.LookupId("0")
	if rootErr != nil {
		return "", errors.Join(err, rootErr)
	}
	dir = filepath.Join(root.HomeDir, ".cache", "callreel")
	if rootErr := Check(dir); rootErr != nil {
		return "", errors.Join(err, rootErr)
	}
	return dir, nil
}

// maxLinks bounds the symbolic links on one path, as Linux does (path_resolution(7)).
const maxLinks = 40

// Check says why a folder isn't one that this process's user alone can change, if it
// isn't: every folder and link on its path must be that user's or root's, and writable by
// nobody else, save for folders with the sticky bit, like /tmp. The folder itself must be
// the user's. What is not there yet is no error.
func Check(dir string) error {
	path, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	return checkPath(path, maxLinks)
}

// checkPath walks a path from the root as the kernel would.
func checkPath(path string, links int) error {
	volume := filepath.VolumeName(path)
	done := volume + string(filepath.Separator)
	rest := splitPath(path[len(volume):])
	if err := checkAncestor(done); err != nil {
		return err
	}
	for k, name := range rest {
		done = filepath.Join(done, name)
		info, err := os.Lstat(done)
		if errors.Is(err, os.ErrNotExist) {
			return nil // whoever makes it is one who may write to its parent
		}
		if err != nil {
			return err
		}
		if info.Mode()&os.ModeSymlink != 0 {
			if links == 0 {
				return fmt.Errorf("%s: more than %d symbolic links", path, maxLinks)
			}
			if err := checkOwner(done, info); err != nil {
				return err
			}
			to, err := os.Readlink(done)
			if err != nil {
				return err
			}
			if !filepath.IsAbs(to) {
				to = filepath.Join(filepath.Dir(done), to)
			}
			return checkPath(filepath.Join(append([]string{to}, rest[k+1:]...)...), links-1)
		}
		if err := checkAncestor(done); err != nil {
			return err
		}
		if k == len(rest)-1 {
			return checkOwn(done, info)
		}
	}
	return nil
}

// splitPath returns the names on an absolute path.
func splitPath(path string) []string {
	var names []string
	for path != "" {
		dir, name := filepath.Split(filepath.Clean(path))
		if name == "" {
			break
		}
		names = append([]string{name}, names...)
		path = dir
	}
	return names
}

// checkAncestor checks one folder of a path.
func checkAncestor(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s: not a folder", dir)
	}
	if err := checkOwner(dir, info); err != nil {
		return err
	}
	if othersWrite(info) && info.Mode()&os.ModeSticky == 0 {
		return fmt.Errorf("%s: others can write to it (%s)", dir, info.Mode())
	}
	return nil
}
