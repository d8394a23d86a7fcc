package debuginfod

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// silentFor is how long a server isn't asked again that could not be reached, or did not answer in time: a recording
// has a hundred images, of which each would wait for it anew, twice.
const silentFor = 2 * time.Minute

// silentServers are those that did not answer.
type silentServers struct {
	mu    sync.Mutex
	since map[string]silence
}

// silence is since when, and why.
type silence struct {
	at  time.Time
	err error
}

// add notes that a server did not answer.
func (s *silentServers) add(server string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.since[server]; known && time.Since(s.since[server].at) < silentFor {
		return
	}
	if s.since == nil {
		s.since = map[string]silence{}
	}
	s.since[server] = silence{time.Now(), err}
}

// known returns why a server isn't asked now, nil if it may be.
func (s *silentServers) known(server string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, known := s.since[server]
	if !known || time.Since(was.at) >= silentFor {
		return nil
	}
	return &silentError{server: server, before: was.err}
}

// A silentError says that a server wasn't asked.
type silentError struct {
	server string
	before error
}

// Error names the server and what it did.
func (e *silentError) Error() string {
	return fmt.Sprintf("debuginfod: %s is not asked again so soon: %v", shown(e.server), e.before)
}

// A noAnswerError says that a request got no answer: there is no such server, or it said nothing in time.
type noAnswerError struct{ err error }

// Error is the reason.
func (e *noAnswerError) Error() string { return e.err.Error() }

// Unwrap returns the reason.
func (e *noAnswerError) Unwrap() error { return e.err }

// unanswered says whether an error is that of a server that did not answer.
func unanswered(err error) bool {
	var none *noAnswerError
	return errors.As(err, &none)
}
