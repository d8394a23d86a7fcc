package server

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	kgzip "github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// zstdWindow bounds what a body in zstd may make its reader keep, in bytes; 8 MB is what all decoders know (RFC 8878 §3.1.1.1.2).
const zstdWindow = 8 << 20

// inflated is a request's body as it was before it was compressed. What reads it limits its size.
func inflated(r *http.Request) (io.ReadCloser, error) {
	switch coding := strings.ToLower(r.Header.Get("Content-Encoding")); coding {
	case "", "identity":
		return r.Body, nil
	case "gzip", "x-gzip":
		in, err := kgzip.NewReader(r.Body)
		if err != nil {
			return nil, refuse(http.StatusBadRequest, "gzip: %v", err)
		}
		return in, nil
	case "zstd":
		in, err := zstd.NewReader(r.Body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdWindow), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, refuse(http.StatusBadRequest, "zstd: %v", err)
		}
		return in.IOReadCloser(), nil
	default:
		return nil, refuse(http.StatusUnsupportedMediaType, "a body in %.40q is not read: want gzip, zstd or none", coding)
	}
}

// A deflater writes an answer, compressed if the client takes that. Nothing is sent before the first byte, so that an error can be
// answered until then.
type deflater struct {
	w      http.ResponseWriter
	coding string
	to     io.Writer
	coder  interface {
		io.WriteCloser
		Flush() error
	}
	began bool
	taken int64 // bytes, before they were compressed
}

// deflating chooses the coding.
func deflating(w http.ResponseWriter, r *http.Request) *deflater {
	d := &deflater{w: w}
	w.Header().Add("Vary", "Accept-Encoding")
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, quality, _ := strings.Cut(part, ";")
		q := strings.TrimSpace(quality)
		if q == "q=0" || strings.HasPrefix(q, "q=0.0") && strings.Trim(q[4:], "0") == "" {
			continue
		}
		switch name = strings.ToLower(strings.TrimSpace(name)); {
		case name == "zstd", name == "gzip" && d.coding == "":
			d.coding = name
		}
	}
	return d
}

// Write implements io.Writer.
func (d *deflater) Write(b []byte) (int, error) {
	if !d.began {
		if err := d.begin(); err != nil {
			return 0, err
		}
	}
	d.taken += int64(len(b))
	return d.to.Write(b)
}

func (d *deflater) begin() error {
	d.began, d.to = true, d.w
	switch d.coding {
	case "zstd":
		coder, err := zstd.NewWriter(d.w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(256<<10), zstd.WithLowerEncoderMem(true))
		if err != nil {
			return fmt.Errorf("server: zstd: %w", err)
		}
		d.coder = coder
	case "gzip":
		coder, err := kgzip.NewWriterLevel(d.w, kgzip.BestSpeed)
		if err != nil {
			return fmt.Errorf("server: gzip: %w", err)
		}
		d.coder = coder
	default:
		return nil
	}
	d.to = d.coder
	d.w.Header().Set("Content-Encoding", d.coding)
	return nil
}

// Flush sends what was written.
func (d *deflater) Flush() error {
	if !d.began {
		return nil
	}
	if d.coder != nil {
		if err := d.coder.Flush(); err != nil {
			return err
		}
	}
	if err := http.NewResponseController(d.w).Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// Close ends the answer.
func (d *deflater) Close() error {
	if d.coder == nil {
		return nil
	}
	return d.coder.Close()
}
