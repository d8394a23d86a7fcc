package guest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// A Userland is what a guest is booted with. It is kept in a folder of the user's.
type Userland struct {
	Kernel  string   // its image
	Modules []string // its modules, in the order in which they are loaded
	Root    string   // a file system with Debian's packages
	Cache   string   // one for what guests keep
}

// layout changes whenever the same packages would be laid out otherwise.
const layout = "1"

// keySize is how many bytes of the packages' hash name a userland.
const keySize = 6

// keyOf names what is made of what lines say.
func keyOf(lines ...string) string {
	key := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(key[:keySize])
}

// sizes of file systems, in bytes. What isn't used takes no room on the disk.
const (
	rootSize  = 4 << 30
	cacheSize = 4 << 30
)

// Wanted says what a userland is to have.
type Wanted struct {
	Mirror   string // of Debian's archive, where packages come from; "" for the usual one
	Programs bool   // what all of bench's programs need that can be had there, which takes longer
	Pages    int    // the size of the kernel's pages, one of KernelPages
}

// Prepare makes the userland in dir, unless it is there; say tells what takes long.
func Prepare(ctx context.Context, dir string, w Wanted, say func(string, ...any)) (*Userland, error) {
	if !slices.Contains(KernelPages, w.Pages) {
		return nil, fmt.Errorf("guest: there is no kernel with pages of %d KiB, only of %d", w.Pages, KernelPages)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	lock, err := lockFile(filepath.Join(dir, "lock"), unix.LOCK_EX)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	names, kind := packages, ""
	if w.Programs {
		names, kind = slices.Concat(packages, forPrograms), "programs-"
	}
	made := filepath.Join(dir, kind+keyOf(slices.Concat([]string{layout}, names)...))
	if _, err := os.Stat(made); err != nil {
		debs, err := archive{dir: filepath.Join(dir, kind+"apt"), mirror: w.Mirror}.fetch(ctx, names, say)
		if err != nil {
			return nil, err
		}
		if err := makeUserland(ctx, dir, made, debs, say); err != nil {
			return nil, err
		}
	}
	u := &Userland{Kernel: filepath.Join(made, "kernel"), Root: filepath.Join(made, "root.ext4"), Cache: filepath.Join(made, "cache.ext4")}
	switch w.Pages {
	case 16:
		u.Kernel, u.Modules, err = largePages(ctx, dir, w.Mirror, say)
		return u, err
	case 64:
		u.Kernel, err = compiledKernel(ctx, dir, w.Mirror, say)
		return u, err
	}
	u.Modules, err = modulesOf(filepath.Join(made, "modules"))
	return u, err
}

func makeUserland(ctx context.Context, dir, made string, debs []string, say func(string, ...any)) error {
	temp, err := os.MkdirTemp(dir, "make-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	say("making a file system of %d packages", len(debs))
	root := filepath.Join(temp, "root")
	if err := os.Mkdir(root, 0o755); err != nil {
		return err
	}
	if err := unpack(ctx, debs, root); err != nil {
		return err
	}
	kernel, modules, err := kernelIn(root)
	if err != nil {
		return err
	}
	out := filepath.Join(temp, "out")
	if err := os.Mkdir(out, 0o755); err != nil {
		return err
	}
	if err := errors.Join(os.Rename(kernel, filepath.Join(out, "kernel")), os.Rename(modules, filepath.Join(out, "modules"))); err != nil {
		return err
	}
	if err := makeImage(ctx, filepath.Join(out, "root.ext4"), root, rootSize); err != nil {
		return err
	}
	if err := makeImage(ctx, filepath.Join(out, "cache.ext4"), "", cacheSize); err != nil {
		return err
	}
	// Those of the same kind that were made of other packages are needed no more.
	kind := filepath.Base(made)[:len(filepath.Base(made))-2*keySize]
	old, _ := filepath.Glob(filepath.Join(dir, kind+strings.Repeat("[0-9a-f]", 2*keySize)))
	for _, o := range old {
		if o != made {
			_ = os.RemoveAll(o)
		}
	}
	return os.Rename(out, made)
}

// holdCache returns the disk of caches, and false if another guest has it: then it's an empty one in dir.
func (u *Userland) holdCache(ctx context.Context, dir string) (file string, release func(), err error) {
	lock, err := lockFile(u.Cache+".lock", unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return u.Cache, func() { lock.Close() }, nil
	}
	file = filepath.Join(dir, "cache.ext4")
	return file, func() {}, makeImage(ctx, file, "", cacheSize)
}

func lockFile(path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), how); err != nil {
		return nil, errors.Join(fmt.Errorf("guest: lock %s: %w", path, err), f.Close())
	}
	return f, nil
}
