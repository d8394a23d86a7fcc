package debuginfod

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/callreel/callreel/internal/ownfolder"
)

// The kinds of files that servers have.
const (
	DebugInfo  = "debuginfo"
	Executable = "executable"
)

// DefaultMissingFor is that of Client.
const DefaultMissingFor = 10 * time.Minute

// ErrNotFound is wrapped by the error of Fetch when every server answered that it
// does not have the file. It is fs.ErrNotExist.
var ErrNotFound = fs.ErrNotExist

// A Client asks servers in order and caches what they send. The zero value asks none.
// It may be used by several goroutines at once; its fields must not change then.
type Client struct {
	// URLs are the servers, asked in this order: "https://debuginfod.example.org".
	URLs []string

	// CacheDir is where files are kept, as DIR/ID/KIND; it must be set, and nobody but
	// its user may be able to change what is in it. Files stay
	// until somebody removes them.
	CacheDir string

	// Limits bound each server's time and each file's size.
	Limits

	// MissingFor is how long it is remembered that no server has a file.
	MissingFor time.Duration

	// Agent is how the client names itself to servers; "callreel" if it is "".
	Agent string

	// Progress, if set, is told how much of a file has come; total is -1 when the
	// server does not say. It is called often, and once before a server is asked.
	Progress func(url string, done, total int64)

	silent silentServers
}

// FromEnvironment makes a client of the servers in DEBUGINFOD_URLS (separated by
// blanks) with the limits of DEBUGINFOD_TIMEOUT, DEBUGINFOD_MAXTIME and
// DEBUGINFOD_MAXSIZE, as elfutils has them (debuginfod-client-config(7)). It caches in
// the folder that is given. It returns nil and no error when there are no servers.
func FromEnvironment(cacheDir string) (*Client, error) {
	urls := strings.Fields(os.Getenv("DEBUGINFOD_URLS"))
	if len(urls) == 0 {
		return nil, nil
	}
	for _, u := range urls {
		if err := checkURL(u); err != nil {
			return nil, fmt.Errorf("DEBUGINFOD_URLS: %w", err)
		}
	}
	limits, err := limitsFromEnvironment()
	if err != nil {
		return nil, err
	}
	return &Client{URLs: urls, CacheDir: cacheDir, Limits: limits}, nil
}

func checkURL(text string) error {
	u, err := url.Parse(text)
	if err != nil {
		return fmt.Errorf("debuginfod: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("debuginfod: %s: want an http or https address", u.Redacted())
	}
	return nil
}

// Fetch returns the path of the file of a kind with the build ID, from the cache or
// from the first server that has it. A server that fails is passed over; when none
// has the file the error says what each one said, and wraps ErrNotFound only if all
// answered that they do not have it.
func (c *Client) Fetch(ctx context.Context, id, kind string) (string, error) {
	path, err := c.Cached(id, kind)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	path = filepath.Join(c.CacheDir, id, kind)
	if c.knownMissing(path) {
		return "", fmt.Errorf("debuginfod: %s of %s: %w: no server had it a short while ago", kind, id, ErrNotFound)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("debuginfod: %w", err)
	}
	defer os.Remove(filepath.Dir(path)) // fails unless it is empty
	removeStale(filepath.Dir(path))
	client := c.httpClient()
	defer client.CloseIdleConnections()
	var errs []error
	absent := true
	for _, server := range c.URLs {
		err := c.silent.known(server)
		if err == nil {
			err = c.download(ctx, client, server, id, kind, path)
		}
		if err == nil {
			return path, nil
		}
		if ctx.Err() == nil && unanswered(err) {
			c.silent.add(server, err)
		}
		errs = append(errs, err)
		absent = absent && errors.Is(err, ErrNotFound)
		if ctx.Err() != nil {
			return "", errors.Join(errs...)
		}
	}
	if len(errs) == 0 {
		return "", fmt.Errorf("debuginfod: %s of %s: %w: there are no servers", kind, id, ErrNotFound)
	}
	if absent {
		c.rememberMissing(path)
	}
	return "", &fetchError{errors: errs, absent: absent}
}

// Cached returns the path of a file that the cache has; no server is asked. The error wraps ErrNotFound if it has none.
func (c *Client) Cached(id, kind string) (string, error) {
	if err := checkRequest(id, kind); err != nil {
		return "", err
	}
	if c.CacheDir == "" {
		return "", errors.New("debuginfod: no cache folder")
	}
	// What others can change there could be a link to where this user's files are, or a file that isn't the server's.
	if err := ownfolder.Check(c.CacheDir); err != nil {
		return "", fmt.Errorf("debuginfod: the cache is not used: %w", err)
	}
	path := filepath.Join(c.CacheDir, id, kind)
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		return path, nil
	}
	return "", fmt.Errorf("debuginfod: %s of %s: %w in the cache", kind, id, ErrNotFound)
}

// fetchError is what the servers said. Where only some do not have the file it does
// not wrap ErrNotFound, whoever asks for that must not take the file for absent.
type fetchError struct {
	errors []error
	absent bool
}

// Error lists the servers' words.
func (e *fetchError) Error() string { return errors.Join(e.errors...).Error() }

// Unwrap returns the errors that count.
func (e *fetchError) Unwrap() []error {
	return slices.DeleteFunc(slices.Clone(e.errors), func(err error) bool { return !e.absent && errors.Is(err, ErrNotFound) })
}

// checkRequest keeps IDs and kinds, which become parts of paths and of URLs, plain.
func checkRequest(id, kind string) error {
	const longest = 512
	if _, err := hex.DecodeString(id); err != nil || len(id) < 4 || len(id) > longest || id != strings.ToLower(id) {
		return fmt.Errorf("debuginfod: %.80q is no build ID in lower-case hexadecimal", id)
	}
	if kind != DebugInfo && kind != Executable {
		return fmt.Errorf("debuginfod: %.80q is no kind of file, want %s or %s", kind, DebugInfo, Executable)
	}
	return nil
}

// maxRedirects is more than any server needs.
const maxRedirects = 5

// httpClient makes a client with the timeouts that net/http can keep by itself.
func (c *Client) httpClient() *http.Client {
	limits := c.Limits.withDefaults()
	connect := limits.ConnectTimeout
	return &http.Client{
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: connect}).DialContext,
			TLSHandshakeTimeout: connect,
			// A server that takes connections and says nothing.
			ResponseHeaderTimeout: limits.FirstByteTimeout,
			ForceAttemptHTTP2:     true,
			// Servers name the file, its size and its package there.
			MaxResponseHeaderBytes: 64 << 10,
			// Files are compressed already, and inflating would hide their size.
			DisableCompression: true,
		},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return fmt.Errorf("more than %d redirections", maxRedirects)
			}
			if r.URL.Scheme != "http" && r.URL.Scheme != "https" {
				return fmt.Errorf("redirected to %s, which is neither http nor https", r.URL.Redacted())
			}
			if via[len(via)-1].URL.Scheme == "https" && r.URL.Scheme != "https" {
				return fmt.Errorf("redirected from https to %s", r.URL.Redacted())
			}
			return nil
		},
	}
}

// or returns v, or the default when it is not set.
func or[T time.Duration | int64](v, byDefault T) T {
	if v <= 0 {
		return byDefault
	}
	return v
}
