package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"path"
	"strings"

	"github.com/callreel/callreel/symbols"
	"github.com/callreel/callreel/symbols/server/storage"
)

// maxSourcePath bounds the path of a source file, in bytes.
const maxSourcePath = 4 << 10

// sourceKey is where a source file of an ID is: its path is whatever a compiler has written, so the key has the path's sum.
func sourceKey(id, name string) string {
	sum := sha256.Sum256([]byte(cleanSource(name)))
	return key(id, "source") + "/" + hex.EncodeToString(sum[:])
}

// cleanSource is a path without "." and "..", as clients of debuginfod may ask for it either way.
func cleanSource(name string) string { return path.Clean("/" + strings.TrimLeft(name, "/")) }

// source hands out a source file.
func (s *Server) source(w http.ResponseWriter, r *http.Request, id, name string) error {
	if len(name) > maxSourcePath {
		return refuse(http.StatusBadRequest, "the path has %d bytes, more than %d", len(name), maxSourcePath)
	}
	o, err := s.storage.Open(r.Context(), sourceKey(id, name))
	if err != nil {
		return err
	}
	defer o.Close() // only read from
	return serveObject(w, r, o)
}

// uploadSource stores a source file, if the image's debug information names it.
func (s *Server) uploadSource(w http.ResponseWriter, r *http.Request, id, name string) error {
	if len(name) > maxSourcePath {
		return refuse(http.StatusBadRequest, "the path has %d bytes, more than %d", len(name), maxSourcePath)
	}
	if r.ContentLength > s.opt.MaxSource {
		return refuse(http.StatusRequestEntityTooLarge, "%d bytes, at most %d are taken", r.ContentLength, s.opt.MaxSource)
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.opt.BuildTimeout)
	defer cancel()
	m, release, err := s.maps.get(ctx, id)
	if err != nil {
		return err
	}
	known := namesFile(m.Map, cleanSource(name))
	release()
	if !known {
		return refuse(http.StatusUnprocessableEntity, "refused: no code of %s comes from %.200q", id, name)
	}
	at := sourceKey(id, name)
	if claimed := r.Header.Get(HeaderSHA256); claimed != "" {
		if same, err := s.same(r.Context(), at, claimed); err != nil {
			return err
		} else if same {
			return s.pushed(w, PushAnswer{id, "there", "source"})
		}
	}
	t, sum, err := s.receive(r, s.opt.MaxSource)
	if err != nil {
		return err
	}
	defer t.Close() // it was put, or is of no use
	size, err := t.Size()
	if err != nil {
		return err
	}
	err = s.storage.Put(r.Context(), at, t, storage.Meta{SHA256: sum, Name: path.Base(name)}, "")
	if errors.Is(err, storage.ErrConflict) {
		same, err := s.same(r.Context(), at, sum)
		if err == nil && !same {
			err = refuse(http.StatusConflict, "another text of %.200q is there for %s, and is never replaced", name, id)
		}
		if err != nil {
			return err
		}
		return s.pushed(w, PushAnswer{id, "there", "source"})
	}
	if err != nil {
		return err
	}
	s.usage.add(size)
	return s.pushed(w, PushAnswer{id, "stored", "source"})
}

// namesFile says whether a map has code from a file.
func namesFile(m *symbols.Map, name string) bool {
	found := false
	m.Files(func(file string) bool {
		found = strings.HasPrefix(file, "/") && cleanSource(file) == name
		return !found
	})
	return found
}

// hidePath takes the path of a file of ours out of an error for strangers.
func hidePath(err error, path string) string {
	return strings.ReplaceAll(err.Error(), path, "the file")
}
