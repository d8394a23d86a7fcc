package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"
)

// ErrConflict is wrapped by the error of Put when the object is there already, or isn't the one that was to be replaced.
var ErrConflict = errors.New("another object is there")

// An Info describes an object.
type Info struct {
	Key      string
	Size     int64
	Modified time.Time
	// Tag changes whenever the object is written. It is made of hexadecimal digits and dashes.
	Tag string
	Meta
}

// Meta is what was put beside an object's bytes. An object that something else has put there has none.
type Meta struct {
	SHA256 string `json:"sha256,omitempty"` // of the bytes, in hexadecimal
	Name   string `json:"name,omitempty"`   // of the file that it was
}

// An Object is open for reading. Its bytes stay the same whatever happens to the key.
type Object interface {
	io.ReadSeekCloser
	io.ReaderAt
	Info() Info
}

// A Storage keeps objects by key: names of letters, digits, dots and dashes, with slashes between them. Its methods may be
// called from several goroutines at once. Errors about a key that has no object wrap fs.ErrNotExist.
type Storage interface {
	// Stat describes an object, with its Meta.
	Stat(ctx context.Context, key string) (Info, error)
	// Open opens an object, which is to be closed. The context bounds all reading of it.
	Open(ctx context.Context, key string) (Object, error)
	// Path is the path of the file that holds an object, "" if it has none on this machine.
	Path(key string) string
	// Temp makes a file for what is to be put. It is gone when it is closed, and when this process is killed, where the system can do that.
	Temp() (*Temp, error)
	// Put stores what a Temp holds. With replace == "" the key must have no object, otherwise it must have the one with that Tag:
	// if not, the error wraps ErrConflict. Meta.Name is a hint, and may be lost.
	Put(ctx context.Context, key string, t *Temp, m Meta, replace string) error
	// Remove removes an object. That there is none is no error.
	Remove(ctx context.Context, key string) error
	// List calls each for every object whose key begins with the prefix, without its Meta, in no order, until that returns an error.
	List(ctx context.Context, prefix string, each func(Info) error) error
	// Sweep removes what processes that were killed have left for longer than age, and says how much that was.
	Sweep(ctx context.Context, age time.Duration) (int, error)
	// String names the storage for people.
	String() string
}

// Open opens what a user names: a folder, which is made if it isn't there, or "s3://bucket/prefix".
func Open(name, tempDir string) (Storage, error) {
	if rest, ok := strings.CutPrefix(name, "s3://"); ok {
		return openS3(rest, tempDir)
	}
	if scheme, _, ok := strings.Cut(name, "://"); ok {
		return nil, fmt.Errorf("storage: %s: want a folder or s3://bucket/prefix, not %s", name, scheme)
	}
	return OpenFolder(name)
}

// checkKey refuses keys that are none, and such as lead out of a folder.
func checkKey(key string) error {
	if len(key) > 700 || key == "." || !fs.ValidPath(key) || strings.ContainsAny(key, "\\:\x00") || strings.HasPrefix(key, ".") || strings.Contains(key, "/.") {
		return fmt.Errorf("storage: %.80q is no key", key)
	}
	return nil
}

// absent is the error of a key without an object.
func absent(key string) error { return fmt.Errorf("storage: %s: %w", key, fs.ErrNotExist) }

// conflict is the error of a Put that came too late.
func conflict(key string) error { return fmt.Errorf("storage: %s: %w", key, ErrConflict) }
