package storage

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/minio/minio-go/v7"
)

// s3Object is an object that is read by ranges. All of them are of the object that was opened: one that has been written
// since is refused.
type s3Object struct {
	s    *S3
	ctx  context.Context
	info Info
	off  int64         // of the next Read
	body io.ReadCloser // what comes from at on; nil if nothing was asked for
	at   int64
}

// Info implements Object.
func (o *s3Object) Info() Info { return o.info }

// Read implements io.Reader.
func (o *s3Object) Read(b []byte) (int, error) {
	if o.off >= o.info.Size {
		return 0, io.EOF
	}
	if o.body != nil && o.at != o.off { // http.ServeContent seeks to the end and back, which must not cost a request
		_ = o.body.Close()
		o.body = nil
	}
	if o.body == nil {
		body, err := o.from(o.off, o.info.Size-1)
		if err != nil {
			return 0, err
		}
		o.body, o.at = body, o.off
	}
	n, err := o.body.Read(b)
	o.off += int64(n)
	o.at = o.off
	if errors.Is(err, io.EOF) && o.off < o.info.Size {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// from asks for the bytes of a range, the last included.
func (o *s3Object) from(first, last int64) (io.ReadCloser, error) {
	var opts minio.GetObjectOptions
	if err := errors.Join(opts.SetRange(first, last), opts.SetMatchETag(o.info.Tag)); err != nil {
		return nil, fmt.Errorf("storage: %s: %w", o.info.Key, err)
	}
	body, _, err := o.s.get(o.ctx, o.info.Key, opts)
	return body, err
}

// Seek implements io.Seeker.
func (o *s3Object) Seek(off int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		off += o.off
	case io.SeekEnd:
		off += o.info.Size
	}
	if off < 0 {
		return 0, fmt.Errorf("storage: %s: no place %d", o.info.Key, off)
	}
	o.off = off
	return off, nil
}

// ReadAt implements io.ReaderAt.
func (o *s3Object) ReadAt(b []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("storage: %s: no place %d", o.info.Key, off)
	}
	want := min(int64(len(b)), o.info.Size-off)
	if want <= 0 {
		return 0, io.EOF
	}
	body, err := o.from(off, off+want-1)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	n, err := io.ReadFull(body, b[:want])
	if err == nil && n < len(b) {
		err = io.EOF
	}
	return n, err
}

// Close implements io.Closer.
func (o *s3Object) Close() error {
	if o.body == nil {
		return nil
	}
	return o.body.Close()
}
