package viewer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/callreel/callreel/internal/safejson"
)

// answerer answers one request; an error that it returns before it has written anything is answered as such.
type answerer func(w http.ResponseWriter, r *http.Request) error

// routes are the API, by the path below api/. All times are nanoseconds from the recording's first tick. Names are as the reel
// has them, demangled: they may hold anything, and are to be shown as text. With two reels each request takes reel=0 or reel=1.
func (s *Server) routes() map[string]answerer {
	return map[string]answerer{
		"info":         s.info,                   // what is served, and how far the index is
		"events":       s.stream,                 // server-sent events: progress, analysis, grown, closed
		"lanes":        s.of((*recording).lanes), // threads and goroutines
		"view":         s.of((*recording).view),  // bars of a part of the screen, binary
		"overview":     s.of((*recording).overview),
		"dump":         s.of((*recording).dump), // of a dump: its window, its triggers, what is missing
		"names":        s.of((*recording).namesOf),
		"find":         s.of((*recording).find),
		"first":        s.of((*recording).firstCall),
		"next":         s.of((*recording).nextCall),
		"call":         s.of((*recording).callAt),
		"state":        s.of((*recording).stateAt),   // what a lane's thread did at a time
		"waits":        s.of((*recording).waits),     // what it waited for in a call
		"why":          s.of((*recording).why),       // why a call was slow
		"marks":        s.of((*recording).marksOf),   // what the program said: lanes that have spans, tracks, pauses
		"titles":       s.of((*recording).titlesOf),  // what that is called
		"mark":         s.of((*recording).markAt),    // one of it
		"nearmark":     s.of((*recording).nearMark),  // what is before, after, around or within it
		"nextmark":     s.of((*recording).nextMark),  // the next of some titles
		"findmarks":    s.of((*recording).findMarks), // titles that a text finds
		"marktable":    s.of((*recording).markTable), // what it comes to in a range
		"flows":        s.of((*recording).flowsOf),
		"offs":         s.of((*recording).offs),    // which functions were off for what they cost
		"offview":      s.of((*recording).offView), // how many were in the course of time, and when some were
		"functions":    s.of((*recording).functions),
		"tree":         s.of((*recording).tree),
		"distribution": s.of((*recording).distribution),
		"calls":        s.of((*recording).callsOf),
		"speedscope":   s.of((*recording).speedscope),
		"diff":         s.diff,
	}
}

// of answers for the reel that the request names.
func (s *Server) of(answer func(*recording, http.ResponseWriter, *query) error) answerer {
	return func(w http.ResponseWriter, r *http.Request) error {
		q, err := parseQuery(r)
		if err != nil {
			return err
		}
		i := q.integer("reel", 0, 0, len(s.reels)-1)
		if q.err != nil {
			return q.err
		}
		return answer(s.reels[i], w, q)
	}
}

// apiError is an error that a request is answered with.
type apiError struct {
	status int
	text   string
}

func (e *apiError) Error() string { return e.text }

func failed(status int, format string, args ...any) error {
	return &apiError{status, fmt.Sprintf(format, args...)}
}

// writeTimeout is how long a write may wait for its reader.
const writeTimeout = 30 * time.Second

func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request, api map[string]answerer, name string) {
	answer := api[name]
	if answer == nil {
		failWith(w, http.StatusNotFound, "there is no such request")
		return
	}
	s.using.RLock()
	defer s.using.RUnlock()
	if s.ctx.Err() != nil {
		failWith(w, http.StatusServiceUnavailable, "the server ends")
		return
	}
	out := &deadlineWriter{ResponseWriter: w, controller: http.NewResponseController(w)}
	err := catchFaults(func() error { return answer(out, r) })
	var said *apiError
	switch {
	case err == nil:
	case out.begun: // nothing more can be said but that it isn't whole
		panic(http.ErrAbortHandler)
	case errors.As(err, &said):
		failWith(w, said.status, said.text)
	case errors.Is(err, context.Canceled) && r.Context().Err() != nil:
		failWith(w, statusGone, "given up")
	default:
		failWith(w, http.StatusInternalServerError, err.Error())
	}
}

// statusGone answers those who have gone away, as other servers have it.
const statusGone = 499

func failWith(w http.ResponseWriter, status int, text string) {
	body, err := safejson.Marshal(map[string]string{"error": text})
	if err != nil { // of strings there is none
		body = nil
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // who doesn't read it needs no error
}

// deadlineWriter gives each write a time of its own, so that an answer may take long but not a reader that has stopped.
type deadlineWriter struct {
	http.ResponseWriter
	controller *http.ResponseController
	begun      bool
}

func (w *deadlineWriter) Write(b []byte) (int, error) {
	w.begun = true
	_ = w.controller.SetWriteDeadline(time.Now().Add(writeTimeout)) // without one it takes longer
	return w.ResponseWriter.Write(b)
}

func (w *deadlineWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// writeJSON answers with v.
func writeJSON(w http.ResponseWriter, v any) error {
	body, err := safejson.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = w.Write(body)
	return err
}
