package debuginfod

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
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
	limits := c.Limits.withDefaults()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	supervisor := supervise(limits, cancel)
	defer supervisor.stop()
	defer func() {
		if reason := context.Cause(ctx); err != nil && errors.Is(reason, errLimit) {
			told := fmt.Errorf("debuginfod: %s: %w", shown(address), reason)
			if unanswered := (*noAnswerError)(nil); errors.As(err, &unanswered) {
				told = &noAnswerError{told}
			}
			err = errors.Join(told, leftover(err))
		}
	}()
	if c.Progress != nil {
		c.Progress(address, 0, -1)
	}
	answer, err := get(ctx, client, address, limits.MaxSize, cmp.Or(c.Agent, "callreel"))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	supervisor.heard(0)
	f, err := os.CreateTemp(filepath.Dir(path), temporary)
	if err != nil {
		return fmt.Errorf("debuginfod: %w", err)
	}
	defer func() {
		if err != nil {
			if failed := os.Remove(f.Name()); failed != nil {
				err = errors.Join(err, &leftoverError{failed})
			}
		}
	}()
	err = c.receive(f, answer, address, limits.MaxSize, supervisor)
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

// temporary is the pattern of the names of files that are being received.
const temporary = ".*.tmp"

// removeStale removes what downloads have left whose process was killed: nothing has
// been written there for longer than any limit lets a download pause.
func removeStale(dir string) {
	const longAgo = time.Hour
	found, err := filepath.Glob(filepath.Join(dir, temporary))
	if err != nil {
		return
	}
	for _, path := range found {
		if info, err := os.Lstat(path); err == nil && time.Since(info.ModTime()) > longAgo {
			_ = os.Remove(path) // another process may have done so
		}
	}
}

// A leftoverError says that what was received in vain could not be removed.
type leftoverError struct{ err error }

// Error is the reason.
func (e *leftoverError) Error() string {
	return "debuginfod: what was received in vain stays: " + e.err.Error()
}

// Unwrap returns the reason.
func (e *leftoverError) Unwrap() error { return e.err }

// leftover returns the part of an error that says so.
func leftover(err error) error {
	var failed *leftoverError
	if errors.As(err, &failed) {
		return failed
	}
	return nil
}

// The headers of debuginfod servers (elfutils, debuginfod(8)).
const (
	maxSizeHeader = "X-DEBUGINFOD-MAXSIZE" // what we take at most; a server may spare itself more
	sizeHeader    = "X-DEBUGINFOD-SIZE"    // of the file, also where the answer is sent in chunks
)

// get asks for a file and returns the answer if it has one that may be taken.
func get(ctx context.Context, client *http.Client, address string, limit int64, agent string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("debuginfod: %w", err)
	}
	request.Header.Set("User-Agent", agent)
	if limit != noLimit {
		request.Header.Set(maxSizeHeader, strconv.FormatInt(limit, 10))
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, failedRequest(err)
	}
	switch size := claimed(answer); {
	case answer.StatusCode == http.StatusNotFound:
		err = fmt.Errorf("debuginfod: %s: %w", shown(address), ErrNotFound)
	case answer.StatusCode != http.StatusOK:
		err = fmt.Errorf("debuginfod: %s: the server answers %s", shown(address), answer.Status)
	case size > limit:
		err = fmt.Errorf("debuginfod: %s: refused: %d bytes, at most %d are taken", shown(address), size, limit)
	default:
		return answer, nil
	}
	return nil, errors.Join(err, answer.Body.Close())
}

// failedRequest tells what has no answer from what has one that can't be used, such as a redirection to nowhere.
func failedRequest(err error) error {
	told := fmt.Errorf("debuginfod: %w", err)
	var network net.Error
	var operation *net.OpError
	switch {
	case errors.As(err, &network) && network.Timeout():
		return &noAnswerError{fmt.Errorf("%w: %w", errLimit, told)}
	case errors.Is(err, errLimit), errors.As(err, &operation):
		return &noAnswerError{told}
	}
	return told
}

// claimed is the size that an answer says the file has, or -1.
func claimed(answer *http.Response) int64 {
	if answer.ContentLength >= 0 {
		return answer.ContentLength
	}
	if n, err := strconv.ParseInt(answer.Header.Get(sizeHeader), 10, 64); err == nil && n >= 0 {
		return n
	}
	return -1
}

// receive copies the answer's body to a file.
func (c *Client) receive(to io.Writer, answer *http.Response, address string, limit int64, supervisor *supervisor) error {
	total := claimed(answer)
	buf := make([]byte, 128<<10)
	for done := int64(0); ; {
		n, err := answer.Body.Read(buf)
		if n > 0 {
			supervisor.heard(n)
			done += int64(n)
			if done > limit {
				return fmt.Errorf("debuginfod: %s: refused: more than the %d bytes that are taken at most", shown(address), limit)
			}
			if total >= 0 && done > total {
				return fmt.Errorf("debuginfod: %s: refused: more than the %d bytes that the server spoke of", shown(address), total)
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return fmt.Errorf("debuginfod: %w", err)
			}
			if c.Progress != nil {
				c.Progress(address, done, total)
			}
		}
		switch {
		case err == io.EOF && done == 0:
			return fmt.Errorf("debuginfod: %s: the server sent nothing", shown(address))
		case err == io.EOF && done < total:
			return fmt.Errorf("debuginfod: %s: cut off after %d of %d bytes", shown(address), done, total)
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("debuginfod: %s: cut off after %d of %d bytes: %w", shown(address), done, total, err)
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
