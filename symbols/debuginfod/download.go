package debuginfod

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/callreel/callreel/object"
)

// download gets a file from one server and puts it in its place.
func (c *Client) download(ctx context.Context, client *http.Client, server, id, kind, path string) (err error) {
	if err := checkURL(server); err != nil {
		return err
	}
	address, err := url.JoinPath(server, "buildid", id, kind)
	if err != nil {
		return fmt.Errorf("debuginfod: %w", err)
	}
	ctx, watch := watchFor(ctx, or(c.StallTimeout, DefaultStallTimeout))
	defer watch.stop()
	defer func() {
		if err != nil && watch.stalled() {
			err = fmt.Errorf("debuginfod: %s: gave up: nothing came for %s", shown(address), watch.limit)
		}
	}()
	answer, err := c.get(ctx, client, address)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	f, err := os.CreateTemp(filepath.Dir(path), ".*.tmp")
	if err != nil {
		return fmt.Errorf("debuginfod: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	err = c.receive(f, answer, address, watch)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := check(f.Name(), id); err != nil {
		return fmt.Errorf("debuginfod: %s: refused: %w", shown(address), err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("debuginfod: %w", err)
	}
	return nil
}

// shown is an address without the password that it may have.
func shown(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "address"
	}
	return u.Redacted()
}

// get asks for a file and returns the answer if it has one that may be taken.
func (c *Client) get(ctx context.Context, client *http.Client, address string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("debuginfod: %w", err)
	}
	request.Header.Set("User-Agent", "callreel")
	answer, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("debuginfod: %w", err)
	}
	switch limit := or(c.MaxSize, DefaultMaxSize); {
	case answer.StatusCode == http.StatusNotFound:
		err = fmt.Errorf("debuginfod: %s: %w", shown(address), ErrNotFound)
	case answer.StatusCode != http.StatusOK:
		err = fmt.Errorf("debuginfod: %s: the server answers %s", shown(address), answer.Status)
	case answer.ContentLength > limit:
		err = fmt.Errorf("debuginfod: %s: refused: %d bytes, at most %d are taken", shown(address), answer.ContentLength, limit)
	default:
		return answer, nil
	}
	return nil, errors.Join(err, answer.Body.Close())
}

// receive copies the answer's body to a file.
func (c *Client) receive(to io.Writer, answer *http.Response, address string, watch *watch) error {
	limit := or(c.MaxSize, DefaultMaxSize)
	buf := make([]byte, 128<<10)
	for done := int64(0); ; {
		n, err := answer.Body.Read(buf)
		if n > 0 {
			watch.heard()
			if done += int64(n); done > limit {
				return fmt.Errorf("debuginfod: %s: refused: more than the %d bytes that are taken at most", shown(address), limit)
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return fmt.Errorf("debuginfod: %w", err)
			}
			if c.Progress != nil {
				c.Progress(address, done, answer.ContentLength)
			}
		}
		switch {
		case err == io.EOF && done == 0:
			return fmt.Errorf("debuginfod: %s: the server sent nothing", shown(address))
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("debuginfod: %s: cut off after %d of %d bytes: %w", shown(address), done, answer.ContentLength, err)
		}
	}
}

// check refuses what is not the file with the ID: the cache must not keep the page of
// some gateway.
func check(path, id string) error {
	im, err := object.OpenID(path, id)
	if err != nil {
		return err
	}
	return im.Close()
}

// A watch ends a context when nothing has been heard for a time.
type watch struct {
	limit  time.Duration
	timer  *time.Timer
	ctx    context.Context
	cancel context.CancelCauseFunc
}

var errStalled = errors.New("stalled")

func watchFor(ctx context.Context, limit time.Duration) (context.Context, *watch) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watch{limit: limit, ctx: ctx, cancel: cancel}
	w.timer = time.AfterFunc(limit, func() { cancel(errStalled) })
	return ctx, w
}

// heard puts the end off.
func (w *watch) heard() { w.timer.Reset(w.limit) }

// stalled says whether the time was up.
func (w *watch) stalled() bool { return errors.Is(context.Cause(w.ctx), errStalled) }

// stop ends the watch, and the context.
func (w *watch) stop() {
	w.timer.Stop()
	w.cancel(nil)
}
