package server

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/callreel/callreel/symbols/server/storage"
)

// The headers of debuginfod (elfutils, debuginfod(8)).
const (
	headerSize    = "X-Debuginfod-Size"
	headerFile    = "X-Debuginfod-File"
	headerMaxSize = "X-Debuginfod-Maxsize" // a client's: it takes no file that is larger
)

// file hands out a debug file or an executable.
func (s *Server) file(w http.ResponseWriter, r *http.Request, id, kind string) error {
	o, err := s.open(r, id, kind)
	if err != nil {
		return err
	}
	defer o.Close() // only read from
	return serveObject(w, r, o)
}

// open opens a kind of file of an ID, which is fetched first if others have it.
func (s *Server) open(r *http.Request, id, kind string) (storage.Object, error) {
	for _, role := range roles(kind) {
		o, err := s.storage.Open(r.Context(), key(id, role))
		if !errors.Is(err, fs.ErrNotExist) {
			return o, err
		}
	}
	none := refuse(http.StatusNotFound, "no %s of %s", kind, id)
	if s.opt.Upstream == nil || r.UserAgent() == Agent {
		return nil, none
	}
	if err := s.builder.fetch(r.Context(), id, kind); errors.Is(err, fs.ErrNotExist) {
		return nil, none
	} else if err != nil {
		return nil, err
	}
	return s.storage.Open(r.Context(), key(id, kind))
}

// serveObject sends an object, or the parts of it that are asked for.
func serveObject(w http.ResponseWriter, r *http.Request, o storage.Object) error {
	info := o.Info()
	if err := checkMaxSize(r, info.Size); err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set(headerSize, strconv.FormatInt(info.Size, 10))
	h.Set(headerFile, fileName(&info))
	h.Set("Cache-Control", "max-age=3600")
	h.Set("ETag", strconv.Quote(info.Tag))
	http.ServeContent(w, r, "", info.Modified, seeker(o))
	return nil
}

// seeker is the object for http.ServeContent: the file itself where it is one, which the system sends.
func seeker(o storage.Object) io.ReadSeeker {
	if f, ok := o.(interface{ OSFile() io.ReadSeeker }); ok {
		return f.OSFile()
	}
	return o
}

// checkMaxSize spares a client what it will not take.
func checkMaxSize(r *http.Request, size int64) error {
	text := r.Header.Get(headerMaxSize)
	if text == "" {
		return nil
	}
	limit, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return refuse(http.StatusBadRequest, "%s: %.40q is no number", headerMaxSize, text)
	}
	if limit > 0 && size > limit {
		return refuse(http.StatusNotAcceptable, "%d bytes, more than the %d that are asked for", size, limit)
	}
	return nil
}

// fileName is the name that a file had, or its key's.
func fileName(info *storage.Info) string {
	name := path.Base(strings.ReplaceAll(info.Name, "\\", "/"))
	if info.Name == "" || strings.IndexFunc(name, func(r rune) bool { return r < ' ' || r > '~' }) >= 0 {
		return path.Base(info.Key)
	}
	return name
}

var errNoSection = fmt.Errorf("server: no such section: %w", fs.ErrNotExist)
