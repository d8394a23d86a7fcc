package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/symbols/server/storage"
)

// The headers of a push.
const (
	HeaderSHA256 = "X-Callreel-Sha256" // of the file, so that one that is there already isn't sent
	HeaderName   = "X-Callreel-Name"   // of the file
)

// A PushAnswer is what the server says to a push.
type PushAnswer struct {
	ID string `json:"id"`
	// State is "stored", or "there" when the server had the same file.
	State string `json:"state"`
	// Kind is debuginfo, executable, or whole for a file that is both; source.
	Kind string `json:"kind"`
}

// upload stores a file that was pushed.
func (s *Server) upload(w http.ResponseWriter, r *http.Request, id string) error {
	if r.ContentLength > s.opt.MaxUpload {
		return refuse(http.StatusRequestEntityTooLarge, "%d bytes, at most %d are taken", r.ContentLength, s.opt.MaxUpload)
	}
	if claimed := r.Header.Get(HeaderSHA256); claimed != "" {
		// Before the body is read, which clients that wait for "100 Continue" don't send then.
		for _, kind := range []string{kindDebugInfo, kindExecutable, kindWhole} {
			if same, err := s.same(r.Context(), key(id, kind), claimed); err != nil {
				return err
			} else if same {
				return s.pushed(w, PushAnswer{id, "there", kind})
			}
		}
	}
	if err := s.usage.room(r.Context(), max(r.ContentLength, 0)); err != nil {
		return err
	}
	t, sum, err := s.receive(r, s.opt.MaxUpload)
	if err != nil {
		return err
	}
	defer t.Close() // it was put, or is of no use
	debug, code, err := s.examine(t, id)
	if err != nil {
		return refuse(http.StatusUnprocessableEntity, "refused: %v", err)
	}
	kind, state, err := s.place(r.Context(), t, id, debug, code, storage.Meta{SHA256: sum, Name: pushedName(r)})
	if err != nil {
		return err
	}
	if state == "stored" {
		s.log.Info("pushed", "id", id, "kind", kind, "sha256", sum, "client", r.RemoteAddr)
		s.maps.forget(id)
	}
	return s.pushed(w, PushAnswer{id, state, kind})
}

// pushed answers a push.
func (s *Server) pushed(w http.ResponseWriter, a PushAnswer) error {
	s.metrics.pushed.WithLabelValues(a.State).Inc()
	w.Header().Set("Content-Type", "application/json")
	if a.State == "stored" {
		w.WriteHeader(http.StatusCreated)
	}
	return json.NewEncoder(w).Encode(a)
}

// receive reads a body into a file of the storage.
func (s *Server) receive(r *http.Request, limit int64) (t *storage.Temp, sum string, err error) {
	if t, err = s.storage.Temp(); err != nil {
		return nil, "", err
	}
	n, err := io.Copy(t, io.LimitReader(r.Body, limit+1))
	switch {
	case err != nil:
		err = refuse(http.StatusBadRequest, "the body ends early: %v", err)
	case n > limit:
		err = refuse(http.StatusRequestEntityTooLarge, "more than the %d bytes that are taken", limit)
	default:
		err = s.usage.room(r.Context(), n)
	}
	if err == nil {
		sum, err = sumOf(t)
	}
	if claimed := r.Header.Get(HeaderSHA256); err == nil && claimed != "" && claimed != sum {
		err = refuse(http.StatusBadRequest, "the body has another SHA-256 than was announced: it was changed on its way")
	}
	if err != nil {
		return nil, "", errors.Join(err, t.Close())
	}
	return t, sum, nil
}

// examine parses what was received: it must be an image with the ID.
func (s *Server) examine(t *storage.Temp, id string) (debug, code bool, err error) {
	opener := object.Opener{Memory: object.NewAllowance(s.opt.Memory)}
	im, err := opener.OpenID(t.Path(), id)
	var wrong *object.IDError
	if errors.As(err, &wrong) {
		return false, false, fmt.Errorf("the file's ID is %q, not %s", wrong.Got, id)
	}
	if err != nil {
		return false, false, errors.New("it is no image that can be read: " + hidePath(err, t.Path()))
	}
	defer im.Close() // only read from
	if im.Type == object.Core {
		return false, false, fmt.Errorf("it is a file of type %v: want a program, a library or a debug file", im.Type)
	}
	sections := im.Sections()
	for k := range sections {
		if sections[k].Alloc() && sections[k].Executable() && sections[k].FileSize > 0 {
			code = true
		}
	}
	debug = im.Section(".debug_info") != nil || im.Section(".debug_line") != nil
	if !debug && !code {
		if im.Section(".symtab") == nil && im.Section(".debug_str") == nil {
			return false, false, errors.New("it has neither code nor debug information")
		}
		debug = true
	}
	if _, err := im.Symbols(); err != nil {
		return false, false, errors.New("its symbols can't be read: " + hidePath(err, t.Path()))
	}
	return debug, code, nil
}

// place stores a file as what it is and nothing else is yet.
func (s *Server) place(ctx context.Context, t *storage.Temp, id string, debug, code bool, m storage.Meta) (kind, state string, err error) {
	size, err := t.Size()
	if err != nil {
		return "", "", err
	}
	taken := map[string]bool{}
	for _, kind := range []string{kindDebugInfo, kindExecutable, kindWhole} {
		at := key(id, kind)
		if _, err := s.storage.Stat(ctx, at); errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return "", "", err
		}
		if same, err := s.same(ctx, at, m.SHA256); err != nil {
			return "", "", err
		} else if same {
			return kind, "there", nil
		}
		taken[kind] = true
	}
	debug = debug && !taken[kindDebugInfo] && !taken[kindWhole]
	code = code && !taken[kindExecutable] && !taken[kindWhole]
	switch {
	case debug && code:
		kind = kindWhole
	case debug:
		kind = kindDebugInfo
	case code:
		kind = kindExecutable
	default:
		return "", "", conflicts(id)
	}
	err = s.storage.Put(ctx, key(id, kind), t, m, "")
	if errors.Is(err, storage.ErrConflict) {
		same, err := s.same(ctx, key(id, kind), m.SHA256)
		if err == nil && !same {
			err = conflicts(id)
		}
		return kind, "there", err
	}
	if err != nil {
		return "", "", err
	}
	s.usage.add(size)
	return kind, "stored", nil
}

func conflicts(id string) error {
	return refuse(http.StatusConflict, "another file with the ID %s is there, and is never replaced", id)
}

// same says whether the storage has an object with this content.
func (s *Server) same(ctx context.Context, at, sum string) (bool, error) {
	info, err := s.storage.Stat(ctx, at)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || info.SHA256 != "" {
		return info.SHA256 == sum, err
	}
	o, err := s.storage.Open(ctx, at)
	if err != nil {
		return false, err
	}
	defer o.Close() // only read from
	got, err := storage.Sum(o)
	return got == sum, err
}

// pushedName is the name that a file had where it was pushed from.
func pushedName(r *http.Request) string {
	name, err := url.PathUnescape(r.Header.Get(HeaderName))
	const longest = 255 // NAME_MAX
	if err != nil || len(name) > longest {
		return ""
	}
	return name
}
