package storage

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/callreel/callreel/internal/outfile"
)

// Folder is a Storage in a folder. Keys are paths below it; no symbolic link leads out of it.
type Folder struct {
	dir    string
	root   *os.Root
	opened *os.File // the folder

	mu sync.Mutex // of replacing
}

// OpenFolder opens a folder, which is made for its owner alone if it isn't there.
func OpenFolder(dir string) (*Folder, error) {
	made, err := outfile.MakeFolders(dir, outfile.PrivateFolder)
	if err != nil {
		return nil, fmt.Errorf("storage: %w", err)
	}
	if err := made.Close(); err != nil {
		return nil, fmt.Errorf("storage: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("storage: %w", err)
	}
	opened, err := root.Open(".")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("storage: %w", err), root.Close())
	}
	return &Folder{dir: dir, root: root, opened: opened}, nil
}

// String is the folder's path.
func (f *Folder) String() string { return f.dir }

// Path implements Storage.
func (f *Folder) Path(key string) string {
	if checkKey(key) != nil {
		return ""
	}
	return filepath.Join(f.dir, filepath.FromSlash(key))
}

// Temp implements Storage.
func (f *Folder) Temp() (*Temp, error) { return NewTemp(f.dir) }

// folderObject is an open file.
type folderObject struct {
	*os.File
	info Info
}

// Info implements Object.
func (o *folderObject) Info() Info { return o.info }

// Open implements Storage.
func (f *Folder) Open(_ context.Context, key string) (Object, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	file, err := openFile(f.root, f.opened, key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, absent(key)
	}
	if err != nil {
		return nil, fmt.Errorf("storage: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("storage: %w", err), file.Close())
	}
	if !info.Mode().IsRegular() {
		return nil, errors.Join(absent(key), file.Close())
	}
	o := &folderObject{file, describe(key, info)}
	o.info.Meta = readMeta(file)
	return o, nil
}

// Stat implements Storage.
func (f *Folder) Stat(ctx context.Context, key string) (Info, error) {
	o, err := f.Open(ctx, key)
	if err != nil {
		return Info{}, err
	}
	return o.Info(), o.Close()
}

// describe makes the Info of a file.
func describe(key string, info fs.FileInfo) Info {
	// The inode tells files apart that were written within one tick of the clock.
	tag := fmt.Sprintf("%x-%x", info.ModTime().UnixNano(), info.Size())
	if sys := reflect.Indirect(reflect.ValueOf(info.Sys())); sys.Kind() == reflect.Struct {
		if ino := sys.FieldByName("Ino"); ino.IsValid() && ino.CanUint() {
			tag += fmt.Sprintf("-%x", ino.Uint())
		}
	}
	return Info{Key: key, Size: info.Size(), Modified: info.ModTime(), Tag: tag}
}

// Put implements Storage.
func (f *Folder) Put(_ context.Context, key string, t *Temp, m Meta, replace string) (err error) {
	if err := checkKey(key); err != nil {
		return err
	}
	folder, err := f.openParent(key)
	if err != nil {
		return fmt.Errorf("storage: %w", err)
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	_ = writeMeta(t.File, m) // not all file systems can
	if err := t.Sync(); err != nil {
		return fmt.Errorf("storage: %w", err)
	}
	name := path.Base(key)
	if replace != "" {
		return f.replace(key, t, folder, replace)
	}
	if err := linkTemp(t, folder, name); errors.Is(err, fs.ErrExist) {
		return conflict(key)
	} else if err != nil {
		return fmt.Errorf("storage: %w", err)
	}
	return nil
}

// openParent opens the folder of a key, which is made if it isn't there.
func (f *Folder) openParent(key string) (*os.File, error) {
	dir := path.Dir(key)
	if err := f.root.MkdirAll(dir, outfile.PrivateFolder); err != nil {
		return nil, err
	}
	return f.root.Open(dir)
}

// lockName is the file whose lock is held while an object is replaced.
const lockName = ".lock"

// replace puts a file in the place of the one with a tag.
func (f *Folder) replace(key string, t *Temp, folder *os.File, tag string) error {
	unlock, err := f.lock()
	if err != nil {
		return fmt.Errorf("storage: %w", err)
	}
	defer unlock()
	info, err := f.root.Stat(key)
	if errors.Is(err, fs.ErrNotExist) || err == nil && describe(key, info).Tag != tag {
		return conflict(key)
	}
	if err != nil {
		return fmt.Errorf("storage: %w", err)
	}
	temp := "." + rand.Text() + tempSuffix
	if err := linkTemp(t, folder, temp); err != nil {
		return fmt.Errorf("storage: %w", err)
	}
	if err := f.root.Rename(path.Join(path.Dir(key), temp), key); err != nil {
		return errors.Join(fmt.Errorf("storage: %w", err), f.root.Remove(path.Join(path.Dir(key), temp)))
	}
	return nil
}

// lock keeps others from replacing.
func (f *Folder) lock() (unlock func(), err error) {
	f.mu.Lock()
	file, err := f.root.OpenFile(lockName, os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		if err = lockFile(file); err != nil {
			_ = file.Close() // nothing was written
		}
	}
	if err != nil {
		f.mu.Unlock()
		return nil, err
	}
	return func() {
		_ = file.Close() // nothing was written
		f.mu.Unlock()
	}, nil
}

// Remove implements Storage.
func (f *Folder) Remove(_ context.Context, key string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	if err := f.root.Remove(key); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("storage: %w", err)
	}
	return nil
}

// List implements Storage.
func (f *Folder) List(ctx context.Context, prefix string, each func(Info) error) error {
	return f.walk(ctx, func(key string, d fs.DirEntry) error {
		if !strings.HasPrefix(key, prefix) || checkKey(key) != nil {
			return nil
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("storage: %w", err)
		}
		return each(describe(key, info))
	})
}

// walk calls each for all regular files.
func (f *Folder) walk(ctx context.Context, each func(key string, d fs.DirEntry) error) error {
	return fs.WalkDir(f.root.FS(), ".", func(key string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, fs.ErrNotExist):
			return nil // removed meanwhile
		case err != nil:
			return fmt.Errorf("storage: %w", err)
		case d.Type().IsRegular():
			return each(key, d)
		}
		return nil
	})
}

// Sweep implements Storage.
func (f *Folder) Sweep(ctx context.Context, age time.Duration) (n int, err error) {
	err = f.walk(ctx, func(key string, d fs.DirEntry) error {
		base := path.Base(key)
		if !strings.HasPrefix(base, ".") || !strings.HasSuffix(base, tempSuffix) {
			return nil
		}
		if info, err := d.Info(); err != nil || time.Since(info.ModTime()) < age {
			return nil
		}
		n++
		return f.root.Remove(key)
	})
	return n, err
}

// Sum is the SHA-256 of all that r has, in hexadecimal.
func Sum(r io.Reader) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return "", fmt.Errorf("storage: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// OSFile is the file itself, which the system can send without copying it.
func (o *folderObject) OSFile() io.ReadSeeker { return o.File }
