package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"slices"
	"strings"
)

// minToken is the shortest token that is taken, in characters.
const minToken = 8

// tokens are the sums of tokens, so that comparing them tells nothing of their length.
type tokens [][sha256.Size]byte

func newTokens(list []string) tokens {
	var t tokens
	for _, text := range list {
		t = append(t, sha256.Sum256([]byte(text)))
	}
	return t
}

// has says whether a token is one of them, in a time that doesn't depend on which.
func (t tokens) has(text string) bool {
	sum := sha256.Sum256([]byte(text))
	found := 0
	for k := range t {
		found |= subtle.ConstantTimeCompare(t[k][:], sum[:])
	}
	return found == 1
}

// bearer is the token of a request: "Authorization: Bearer TOKEN", or the password or the user of a URL, which is how clients of
// debuginfod can be given one. It is "" without.
func bearer(r *http.Request) string {
	if user, password, ok := r.BasicAuth(); ok {
		if password != "" {
			return password
		}
		return user
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// allowed says whether a request may use a service.
func (s *Server) allowed(r *http.Request, service string) bool {
	if slices.Contains(s.opt.Public, service) {
		return true
	}
	token := bearer(r)
	if token == "" {
		return false
	}
	// Both are looked at, so that the time doesn't tell which.
	push, read := s.push.has(token), s.read.has(token)
	return push || read && service != servicePush
}
