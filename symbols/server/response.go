package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"time"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/symbols"
)

// A refusal is an error with the status that says it by HTTP.
type refusal struct {
	status int
	text   string
}

// Error is what the client gets to read.
func (e *refusal) Error() string { return e.text }

func refuse(status int, format string, args ...any) error {
	return &refusal{status, fmt.Sprintf(format, args...)}
}

// status finds the status for an error.
func status(err error) int {
	var r *refusal
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &r):
		return r.status
	case errors.As(err, &large):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, symbols.ErrNoSymbols):
		return http.StatusNotFound
	case errors.Is(err, object.ErrMemory):
		return http.StatusUnprocessableEntity
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout
	}
	return http.StatusInternalServerError
}

// fail answers with an error, if nothing was answered yet; half an answer is cut off.
func (s *Server) fail(w *response, r *http.Request, err error) {
	code := status(err)
	if code >= http.StatusInternalServerError && r.Context().Err() == nil {
		s.log.Error("request failed", "method", r.Method, "path", shorten(r.URL.Path), "status", code, "error", err)
	}
	if w.status != 0 {
		panic(http.ErrAbortHandler)
	}
	text := err.Error()
	if code == http.StatusInternalServerError {
		text = "the server has failed; its log says why" // not for strangers
	}
	w.Header().Del("Content-Encoding")
	if r.Method == http.MethodPost || r.Method == http.MethodPut {
		// What is left of the body may be long, so that the connection ends here. A client must know, or it would use it again.
		w.Header().Set("Connection", "close")
	}
	http.Error(w, text, code)
}

// A response counts what is sent, and moves the deadlines of its connection on as long as something moves.
type response struct {
	http.ResponseWriter
	control *http.ResponseController
	idle    time.Duration
	moved   time.Time // when the deadline was set
	status  int       // 0 before the answer
	sent    int64
	guarded bool
}

func newResponse(w http.ResponseWriter, idle time.Duration) *response {
	return &response{ResponseWriter: w, control: http.NewResponseController(w), idle: idle}
}

// guard sets the deadlines, and returns the request whose body moves them. It is a copy: net/http looks at the body of its own to
// see whether the client waits for "100 Continue", and would wait for a body that isn't to come.
func (w *response) guard(r *http.Request) *http.Request {
	w.guarded = true
	w.move()
	r = r.WithContext(r.Context())
	r.Body = &guardedBody{ReadCloser: r.Body, w: w}
	return r
}

// move moves the deadline for writing on, but not for every byte.
func (w *response) move() {
	now := time.Now()
	if !w.guarded || now.Sub(w.moved) < w.idle/8 {
		return
	}
	w.moved = now
	_ = w.control.SetWriteDeadline(now.Add(w.idle)) // a recorder in a test has none
}

// guardedBody moves the deadline for reading on.
type guardedBody struct {
	io.ReadCloser
	w     *response
	moved time.Time
	until time.Time // when all of it must be there; zero for no such time
}

// Read implements io.Reader.
func (b *guardedBody) Read(p []byte) (int, error) {
	if now := time.Now(); now.Sub(b.moved) >= b.w.idle/8 {
		b.moved = now
		deadline := now.Add(b.w.idle)
		if !b.until.IsZero() && b.until.Before(deadline) {
			deadline = b.until
		}
		_ = b.w.control.SetReadDeadline(deadline)
	}
	return b.ReadCloser.Read(p)
}

// WriteHeader implements http.ResponseWriter.
func (w *response) WriteHeader(status int) {
	if status >= 200 && w.status == 0 {
		w.status = status
	}
	w.move()
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *response) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	w.move()
	n, err := w.ResponseWriter.Write(b)
	w.sent += int64(n)
	return n, err
}

// sendChunk is how much of a file the system is told to send at once, in bytes: the deadline is for each.
const sendChunk = 4 << 20

// ReadFrom lets the system send a file (sendfile(2)).
func (w *response) ReadFrom(r io.Reader) (total int64, err error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	for {
		w.move()
		// What is sent must be an *io.LimitedReader of a file for that.
		part := &io.LimitedReader{R: r, N: sendChunk}
		if limited, ok := r.(*io.LimitedReader); ok {
			part = &io.LimitedReader{R: limited.R, N: min(limited.N, sendChunk)}
			n, err := io.Copy(w.ResponseWriter, part)
			limited.N -= n
			total, w.sent = total+n, w.sent+n
			if err != nil || n == 0 || limited.N <= 0 {
				return total, err
			}
			continue
		}
		n, err := io.Copy(w.ResponseWriter, part)
		total, w.sent = total+n, w.sent+n
		if err != nil || part.N > 0 {
			return total, err
		}
	}
}

// Unwrap lets http.ResponseController find the connection.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }
