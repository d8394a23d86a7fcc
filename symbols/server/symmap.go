package server

import (
	"context"
	"net/http"
)

// symmap hands out the map of an ID, which is made if there is none.
func (s *Server) symmap(w http.ResponseWriter, r *http.Request, id string) error {
	ctx, cancel := context.WithTimeout(r.Context(), s.opt.BuildTimeout)
	defer cancel()
	_, release, err := s.maps.get(ctx, id)
	if err != nil {
		return err
	}
	release()
	o, err := s.storage.Open(r.Context(), key(id, kindMap))
	if err != nil {
		return err
	}
	defer o.Close() // only read from
	return serveObject(w, r, o)
}
