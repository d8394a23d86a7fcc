package server

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"time"
)

// live says that the process answers.
func (s *Server) live(w http.ResponseWriter, _ *http.Request) error {
	_, err := w.Write([]byte("ok\n"))
	return err
}

// ready says whether requests should come here: the storage answers, and the server isn't ending.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) error {
	if s.ending.Load() {
		return refuse(http.StatusServiceUnavailable, "ending")
	}
	const patience = 5 * time.Second
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	if _, err := s.storage.Stat(ctx, "00/ready"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Error("the storage does not answer", "error", err)
		return refuse(http.StatusServiceUnavailable, "the storage does not answer")
	}
	return s.live(w, r)
}
