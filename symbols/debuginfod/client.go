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
)

// The kinds of files that servers have.
const (
	DebugInfo  = "debuginfo"
	Executable = "executable"
)

// The defaults of Client.
const (
	DefaultConnectTimeout = 10 * time.Second
	DefaultStallTimeout   = 30 * time.Second
	DefaultMissingFor     = 10 * time.Minute
	DefaultMaxSize        = 8 << 30
)

// ErrNotFound is wrapped by the error of Fetch when every server answered that it
// does not have the file. It is fs.ErrNotExist.
var ErrNotFound = fs.ErrNotExist

// A Client asks servers in order and caches what they send. The zero value asks none.
// It may be used by several goroutines at once; its fields must not change then.
type Client struct {
	// URLs are the servers, asked in this order: "https://debuginfod.example.org".
	URLs []string

	// CacheDir is where files are kept, as DIR/ID/KIND; it must be set. Files stay
	// until somebody removes them.
	CacheDir string

	// ConnectTimeout bounds the making of a connection, TLS included.
	ConnectTimeout time.Duration

	// StallTimeout bounds how long a server may send nothing, before its answer and
	// within it.
	StallTimeout time.Duration

	// MissingFor is how long it is remembered that no server has a file.
	MissingFor time.Duration

	// MaxSize bounds a file, in bytes.
	MaxSize int64

	// Progress, if set, is told how much of a file has come; total is -1 when the
	// server does not say. It is called often.
	Progress func(url string, done, total int64)
}

// FromEnvironment makes a client of the servers in DEBUGINFOD_URLS (separated by
// blanks) that caches in the user's cache folder (XDG_CACHE_HOME). It returns nil and
// no error when the variable names no servers.
func FromEnvironment() (*Client, error) {
	urls := strings.Fields(os.Getenv("DEBUGINFOD_URLS"))
	if len(urls) == 0 {
		return nil, nil
	}
	for _, u := range urls {
		if err := checkURL(u); err != nil {
			return nil, fmt.Errorf("DEBUGINFOD_URLS: %w", err)
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("debuginfod: no place for the cache; set XDG_CACHE_HOME: %w", err)
	}
	return &Client{URLs: urls, CacheDir: filepath.Join(cache, "callreel", "debuginfod")}, nil
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
	if err := checkRequest(id, kind); err != nil {
		return "", err
	}
	if c.CacheDir == "" {
		return "", errors.New("debuginfod: no cache folder")
	}
	path := filepath.Join(c.CacheDir, id, kind)
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		return path, nil
	}
	if c.knownMissing(path) {
		return "", fmt.Errorf("debuginfod: %s of %s: %w: no server had it a short while ago", kind, id, ErrNotFound)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("debuginfod: %w", err)
	}
	client := c.httpClient()
	defer client.CloseIdleConnections()
	var errs []error
	absent := true
	for _, server := range c.URLs {
		err := c.download(ctx, client, server, id, kind, path)
		if err == nil {
			return path, nil
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
	connect := or(c.ConnectTimeout, DefaultConnectTimeout)
	return &http.Client{
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: connect}).DialContext,
			TLSHandshakeTimeout: connect,
			ForceAttemptHTTP2:   true,
			// Files are compressed already, and inflating would hide their size.
			DisableCompression: true,
		},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return fmt.Errorf("more than %d redirections", maxRedirects)
			}
			if via[0].URL.Scheme == "https" && r.URL.Scheme != "https" {
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
