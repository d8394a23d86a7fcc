package object

import (
	"errors"
	"fmt"
	"sync"
)

// maxOpenFiles bounds how many companion files one image may have open: each is a
// mapping, of which Linux allows a process 65,530.
const maxOpenFiles = 32 << 10

var errClosed = errors.New("used after Close")

// A fileSet keeps what has been opened for one image, by path, until it is closed.
type fileSet struct {
	mu     sync.Mutex
	opened map[string]openedFile
	closed bool
}

type openedFile struct {
	image *Image
	err   error
}

// open returns the image of a path, opening it the first time. An image is the set's.
func (s *fileSet) open(path string, open func() (*Image, error)) (*Image, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f, ok := s.opened[path]; ok {
		return f.image, f.err
	}
	if s.closed {
		return nil, fmt.Errorf("object: %s: %w", path, errClosed)
	}
	if len(s.opened) >= maxOpenFiles {
		return nil, fmt.Errorf("object: %s: more than %d companion files", path, maxOpenFiles)
	}
	var f openedFile
	f.image, f.err = open()
	if s.opened == nil {
		s.opened = make(map[string]openedFile)
	}
	s.opened[path] = f
	return f.image, f.err
}

// close closes all images of the set.
func (s *fileSet) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, f := range s.opened {
		if f.image != nil {
			errs = append(errs, f.image.Close())
		}
	}
	s.opened, s.closed = nil, true
	return errors.Join(errs...)
}
