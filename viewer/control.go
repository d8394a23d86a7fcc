package viewer

import (
	"context"
	"net/http"
	"strings"
)

// Control lets the page pause the recording that is served, and go on with it. pid is the recorded process's.
type Control interface {
	Pause(ctx context.Context, pid int) error
	Resume(ctx context.Context, pid int) error
}

// controls are what the page may ask for that changes something: by POST, from the server's own page or by who has the token from its user.
func (s *Server) controls() map[string]func(ctx context.Context, pid int) error {
	if s.opt.Control == nil || !s.opt.Recording {
		return nil
	}
	return map[string]func(context.Context, int) error{"pause": s.opt.Control.Pause, "resume": s.opt.Control.Resume}
}

// controlled answers a POST; it says whether the request was one that changes something.
func (s *Server) controlled(w http.ResponseWriter, r *http.Request, name string) bool {
	do := s.controls()[name]
	if do == nil || r.Method != http.MethodPost {
		return false
	}
	if !s.ownPage(r) {
		failWith(w, http.StatusForbidden, "only the page of this server may ask")
		return true
	}
	s.using.RLock()
	defer s.using.RUnlock()
	rec := s.reels[0]
	if !rec.live.Load() {
		failWith(w, http.StatusConflict, "the recording has ended")
		return true
	}
	if err := do(r.Context(), rec.File().Header().PID); err != nil {
		failWith(w, http.StatusConflict, err.Error())
		return true
	}
	w.WriteHeader(http.StatusNoContent)
	return true
}

// ownPage says whether a request that changes something comes from the server's own page: browsers say from which page (Origin; Fetch Metadata,
// W3C). What is no browser says neither, and has the token from its user.
func (s *Server) ownPage(r *http.Request) bool {
	if !sameOrigin(r) {
		return false
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	host, isHTTP := strings.CutPrefix(origin, "http://")
	return isHTTP && strings.EqualFold(host, r.Host)
}
