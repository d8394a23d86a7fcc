package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/callreel/callreel/symbols/server/storage"
)

// A Server answers by HTTP. It is made by New, serves until Serve's context ends, and is closed then.
type Server struct {
	opt        Options
	storage    storage.Storage
	log        *slog.Logger
	read, push tokens
	maps       *mapCache
	disk       *diskCache
	builder    *builder
	usage      usage
	metrics    *metrics
	ending     atomic.Bool
}

// New makes a Server, and removes what killed ones have left in the storage.
func New(ctx context.Context, opt Options) (*Server, error) {
	opt, err := opt.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{opt: opt, storage: opt.Storage, log: opt.Log, read: newTokens(opt.Tokens), push: newTokens(opt.PushTokens)}
	s.usage = usage{storage: opt.Storage, quota: opt.Quota}
	s.metrics = newMetrics(s)
	disk, err := openDiskCache(filepath.Join(opt.CacheDir, "maps"), opt.CacheSize, opt.Log)
	if err != nil {
		return nil, err
	}
	s.builder = &builder{
		storage: opt.Storage, upstream: opt.Upstream, log: opt.Log, memory: opt.Memory, timeout: opt.BuildTimeout,
		slots: make(chan struct{}, opt.Builds), metrics: s.metrics,
	}
	s.disk = disk
	s.maps = newMapCache(opt.MapMemory, opt.MissingFor, (&loader{opt.Storage, disk, s.builder, s.metrics, opt.MapMemory}).load)
	const longAgo = time.Hour // a push takes less
	if n, err := opt.Storage.Sweep(ctx, longAgo); err != nil {
		s.log.Warn("sweeping the storage", "error", err)
	} else if n > 0 {
		s.log.Info("removed what killed servers have left", "files", n)
	}
	return s, nil
}

// Close closes all maps. It comes after Serve.
func (s *Server) Close() error {
	err := s.maps.close()
	s.disk.close()
	return err
}

// Serve answers on a listener, which it closes, until the context ends; then it says that it isn't ready, takes no more connections,
// and lets requests go on for Options.Grace.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	limited := limitListener(l, s.opt.MaxConnections)
	h := &http.Server{
		Handler:           s.Handler(),
		ConnState:         limited.state,
		ReadHeaderTimeout: s.opt.IdleTimeout, IdleTimeout: 2 * s.opt.IdleTimeout,
		MaxHeaderBytes: 64 << 10,
		ErrorLog:       slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	done := make(chan error, 1)
	go func() { done <- h.Serve(limited) }()
	select {
	case err := <-done:
		return fmt.Errorf("server: %w", err)
	case <-ctx.Done():
	}
	s.ending.Store(true)
	s.log.Info("ending", "cause", context.Cause(ctx))
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opt.Grace)
	defer cancel()
	if err := h.Shutdown(grace); err != nil {
		s.log.Warn("requests are cut off", "error", err)
		if err := h.Close(); err != nil {
			return fmt.Errorf("server: %w", err)
		}
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("server: %w", err)
	}
	return nil
}

// route finds what answers a path, which is as the client has sent it, and to which service that belongs.
func (s *Server) route(r *http.Request) (service string, answer func(http.ResponseWriter, *http.Request) error) {
	reading := r.Method == http.MethodGet || r.Method == http.MethodHead
	path := strings.TrimRight(r.URL.Path, "/")
	switch {
	case path == "/healthz" && reading:
		return ServiceHealth, s.live
	case path == "/readyz" && reading:
		return ServiceHealth, s.ready
	case path == "/metrics" && reading:
		return ServiceMetrics, s.metrics.serve
	case path == "/symbolize" && r.Method == http.MethodPost:
		return ServiceSymbolize, s.symbolize
	}
	if text, ok := strings.CutPrefix(path, "/symmap/"); ok && reading {
		return ServiceMaps, withID(text, s.symmap)
	}
	rest, ok := strings.CutPrefix(path, "/buildid/")
	if !ok {
		return "", nil
	}
	text, what, _ := strings.Cut(rest, "/")
	part, name, _ := strings.Cut(what, "/")
	switch {
	case what == "" && r.Method == http.MethodPut:
		return servicePush, withID(text, s.upload)
	case part == "source" && name != "" && r.Method == http.MethodPut:
		return servicePush, withID(text, func(w http.ResponseWriter, r *http.Request, id string) error {
			return s.uploadSource(w, r, id, "/"+name)
		})
	case (what == kindDebugInfo || what == kindExecutable) && reading:
		return ServiceFiles, withID(text, func(w http.ResponseWriter, r *http.Request, id string) error { return s.file(w, r, id, what) })
	case part == "section" && name != "" && reading:
		return ServiceFiles, withID(text, func(w http.ResponseWriter, r *http.Request, id string) error { return s.section(w, r, id, name) })
	case part == "source" && name != "" && reading:
		return ServiceSource, withID(text, func(w http.ResponseWriter, r *http.Request, id string) error { return s.source(w, r, id, "/"+name) })
	}
	return "", nil
}

// withID parses the ID of a request first.
func withID(text string, answer func(http.ResponseWriter, *http.Request, string) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		id, ok := parseID(text)
		if !ok {
			return refuse(http.StatusBadRequest, "%.60q is no ID: want 4 to %d hexadecimal digits", text, maxID)
		}
		return answer(w, r, id)
	}
}

// Handler answers requests.
func (s *Server) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		service, answer := s.route(r)
		out := newResponse(w, s.opt.IdleTimeout)
		s.metrics.flying.Inc()
		defer func() {
			s.metrics.flying.Dec()
			// One request that ends in a panic stops no other.
			if p := recover(); p != nil {
				s.log.Error("panic", "panic", fmt.Sprint(p), "path", shorten(r.URL.Path))
				out.status = http.StatusInternalServerError
				defer panic(http.ErrAbortHandler) // closes the connection: half an answer must not look whole
			}
			s.metrics.request(service, r.Method, out.status, time.Since(start), out.sent)
			s.log.Debug("request", "method", r.Method, "path", shorten(r.URL.Path), "status", out.status, "bytes", out.sent, "seconds", time.Since(start).Seconds(),
				"client", r.RemoteAddr)
		}()
		var err error
		switch {
		case answer == nil:
			err = refuse(http.StatusNotFound, "there is nothing at %.100q for %s", r.URL.Path, r.Method)
		case !s.allowed(r, service):
			out.Header().Set("WWW-Authenticate", `Bearer realm="callreel", Basic realm="callreel"`)
			err = refuse(http.StatusUnauthorized, "%s needs a token", service)
		default:
			err = answer(out, out.guard(r))
		}
		if err != nil {
			s.fail(out, r, err)
		}
	})
}

// shorten bounds a text of a request's in the log.
func shorten(text string) string { return text[:min(len(text), 200)] }
