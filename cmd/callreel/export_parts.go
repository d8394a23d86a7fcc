package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// exportParts makes the files of an export that is split. After a failure none that is new is left, and none that was
// there has been replaced.
type exportParts struct {
	reel, output string
	force        bool
	counted      func(io.Writer) io.Writer
	files        []exportPart
}

// exportPart is a file; temp is where it is written while another has its name.
type exportPart struct{ name, temp string }

// name is that of a part, from 1.
func (p *exportParts) name(part int) string {
	ext := filepath.Ext(p.output)
	return fmt.Sprintf("%s-%03d%s", strings.TrimSuffix(p.output, ext), part, ext)
}

// next makes a part.
func (p *exportParts) next(part int) (io.WriteCloser, error) {
	at := exportPart{name: p.name(part)}
	if sameFile(p.reel, at.name) {
		return nil, usageError("callreel export: %s is the reel itself; give -o another file", at.name)
	}
	f, err := os.OpenFile(at.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		if f, err = p.replace(&at); err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, fmt.Errorf("callreel: %w", err)
	}
	p.files = append(p.files, at)
	return struct {
		io.Writer
		io.Closer
	}{p.counted(f), f}, nil
}

// replace makes the file that is to take another's place.
func (p *exportParts) replace(at *exportPart) (*os.File, error) {
	old, err := os.Lstat(at.name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("callreel: %w", err)
	case !old.Mode().IsRegular():
		return nil, usageError("callreel: %s: is there and no regular file; give -o another name", at.name)
	case !p.force:
		return nil, usageError("callreel: %s: %w; --force replaces it", at.name, fs.ErrExist)
	}
	f, err := os.CreateTemp(filepath.Dir(at.name), "."+filepath.Base(at.name)+"-*")
	if err != nil {
		return nil, fmt.Errorf("callreel: %w", err)
	}
	at.temp = f.Name()
	if err := f.Chmod(old.Mode().Perm()); err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(at.temp))
	}
	return f, nil
}

// done puts the files in their places, or takes them away if there was an error.
func (p *exportParts) done(err error) error {
	for _, at := range p.files {
		switch {
		case err == nil && at.temp != "":
			err = os.Rename(at.temp, at.name)
		case err != nil && at.temp != "":
			err = errors.Join(err, os.Remove(at.temp))
		case err != nil:
			err = errors.Join(err, os.Remove(at.name))
		}
	}
	return err
}
