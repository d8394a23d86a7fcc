package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/callreel/callreel/internal/safejson"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/symbols/server/storage"
	"github.com/callreel/callreel/symbols/symbolize"
)

// typeLines is the media type of captures one a line.
const typeLines = "application/x-ndjson"

// symbolize names the frames of captures: of one body of JSON, or of a stream of one capture a line, each answered by a line as it
// comes.
func (s *Server) symbolize(w http.ResponseWriter, r *http.Request) error {
	in, err := inflated(r)
	if err != nil {
		return err
	}
	defer in.Close() // only read from
	out := deflating(w, r)
	source := &mapSource{maps: s.maps, frames: s.metrics.frames}
	defer source.release()
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	ctx := r.Context()
	if kind == typeLines || kind == "application/jsonl" {
		w.Header().Set("Content-Type", typeLines)
		// Answers go out while questions come in.
		_ = http.NewResponseController(w).EnableFullDuplex() // HTTP/2 always is
		err = s.symbolizeLines(ctx, in, out, source)
	} else {
		if body, ok := r.Body.(*guardedBody); ok {
			body.until = time.Now().Add(s.opt.RequestTimeout)
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.opt.RequestTimeout)
		defer cancel()
		w.Header().Set("Content-Type", "application/json")
		err = s.symbolizeBody(ctx, &limitedReader{in, s.opt.MaxBody, s.opt.MaxBody}, out, source)
	}
	if err != nil {
		if out.began {
			return err // which cuts the answer off
		}
		return asked(err)
	}
	return out.Close()
}

// quickBody is the largest body that is answered out of memory, in bytes. Larger ones wait in a file: an answer must not begin
// before all of the body is read, because there are clients that don't read before they have sent, and something may be wrong with its end.
const quickBody = 1 << 20

// bodies are buffers that are used again.
var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// symbolizeBody answers one body.
func (s *Server) symbolizeBody(ctx context.Context, in io.Reader, out io.Writer, source symbolize.Source) error {
	start := bodies.Get().(*bytes.Buffer)
	defer bodies.Put(start)
	start.Reset()
	n, err := io.CopyN(start, in, quickBody)
	if n < quickBody && errors.Is(err, io.EOF) {
		return symbolize.JSONBytes(ctx, start.Bytes(), out, source)
	}
	if err != nil {
		return err
	}
	t, err := storage.NewTemp(s.opt.CacheDir)
	if err != nil {
		return failed(err)
	}
	defer t.Close() // only read from by now
	if _, err := t.Write(start.Bytes()); err != nil {
		return failed(err)
	}
	if _, err := io.Copy(t, in); err != nil {
		return err
	}
	size, err := t.Size()
	if err != nil {
		return failed(err)
	}
	if err := symbolize.CheckJSON(io.NewSectionReader(t, 0, size)); err != nil {
		return err
	}
	return symbolize.JSON(ctx, io.NewSectionReader(t, 0, size), out, source)
}

// failed is the error of a request that this server can't answer, whatever was asked.
func failed(err error) error {
	return fmt.Errorf("%w: %w", errFailed, err)
}

var errFailed = errors.New("server: taking a request")

// asked makes an error about what was asked the client's.
func asked(err error) error {
	var r *refusal
	if errors.As(err, &r) || errors.Is(err, errFailed) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return err
	}
	return refuse(http.StatusBadRequest, "%v", err)
}

// symbolizeLines answers a stream of captures. A line that is no capture is answered with an error, and the next one read.
func (s *Server) symbolizeLines(ctx context.Context, in io.Reader, out *deflater, source *mapSource) error {
	lines := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := readLine(lines, s.opt.MaxBody)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(bytes.TrimSpace(line)) > 0 {
			if failed := s.symbolizeLine(ctx, line, out, source); failed != nil {
				return failed
			}
		}
		if err != nil {
			return nil
		}
		if lines.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}

func (s *Server) symbolizeLine(ctx context.Context, line []byte, out *deflater, source *mapSource) error {
	ctx, cancel := context.WithTimeout(ctx, s.opt.RequestTimeout)
	defer cancel()
	defer source.release()
	before := out.taken
	err := symbolize.JSONLine(ctx, line, out, source)
	if err == nil || out.taken != before {
		return err
	}
	text, err := safejson.Marshal(map[string]string{"error": err.Error()})
	if err != nil {
		return err
	}
	_, err = out.Write(append(text, '\n'))
	return err
}

// readLine reads a line of a limited length.
func readLine(r *bufio.Reader, limit int64) (line []byte, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if int64(len(line)+len(part)) > limit {
			return nil, refuse(http.StatusRequestEntityTooLarge, "a line has more than %d bytes", limit)
		}
		if line == nil && err == nil {
			return part, nil
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// limitedReader refuses to read on behind a limit.
type limitedReader struct {
	r           io.Reader
	left, limit int64
}

// Read implements io.Reader.
func (l *limitedReader) Read(b []byte) (int, error) {
	if l.left <= 0 {
		return 0, refuse(http.StatusRequestEntityTooLarge, "the body has more than %d bytes", l.limit)
	}
	n, err := l.r.Read(b[:min(int64(len(b)), l.left)])
	l.left -= int64(n)
	return n, err
}

// mapSource is a symbolize.Source of the server's maps. It is one request's, and keeps maps in use until it is released.
type mapSource struct {
	maps   *mapCache
	frames prometheus.Counter
	inUse  []func()
}

// Count implements symbolize.Counter.
func (s *mapSource) Count(frames int) { s.frames.Add(float64(frames)) }

// Module implements symbolize.Source. What the request says of paths is not looked at: they are of another machine.
func (s *mapSource) Module(ctx context.Context, im *symbolize.Image) (*symbolize.Module, error) {
	if im.ID == "" {
		return nil, errors.New("the image has no ID, and a path says nothing to a server")
	}
	id, ok := parseID(im.ID)
	if !ok {
		return nil, fmt.Errorf("%.60q is no ID", im.ID)
	}
	m, release, err := s.maps.get(ctx, id)
	if err != nil {
		if status(err) == http.StatusNotFound {
			return nil, fmt.Errorf("the server has no symbols for ID %s", id)
		}
		return nil, errors.New(strings.TrimPrefix(err.Error(), "server: "))
	}
	s.inUse = append(s.inUse, release)
	return &symbolize.Module{Map: m.Map, Texts: m.texts, Base: m.BaseAddr(), Thumb: m.Arch() == object.ARM}, nil
}

// release lets the maps go.
func (s *mapSource) release() {
	for _, release := range s.inUse {
		release()
	}
	s.inUse = nil
}
