package push

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/callreel/callreel/symbols/server"
)

// A Client pushes to one server. Its methods may be called from several goroutines at once.
type Client struct {
	base  *url.URL
	token string
	http  *http.Client
}

// New makes a client of the server at an http or https address. The token may be "" if the address has one as its password.
func New(address, token string) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("push: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("push: %s: want an http or https address", u.Redacted())
	}
	return &Client{u, token, &http.Client{
		Transport: &http.Transport{
			Proxy:       http.ProxyFromEnvironment,
			DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext, TLSHandshakeTimeout: 10 * time.Second,
			// A server that has the file says so before it is sent.
			ExpectContinueTimeout: 5 * time.Second, ForceAttemptHTTP2: true,
		},
		// A token is for the server that was named, and for no other.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Content is what is sent: it may be read more than once.
type Content interface {
	// Open returns the bytes from their first, which are closed, and their number.
	Open() (io.ReadCloser, int64, error)
}

// File pushes an image of an ID.
func (c *Client) File(ctx context.Context, id, name string, content Content) (*server.PushAnswer, error) {
	return c.put(ctx, content, name, "buildid", id)
}

// Source pushes the text of a source file that an image's debug information names by its path, which begins with a slash. The
// server must have the debug information.
func (c *Client) Source(ctx context.Context, id, name string, content Content) (*server.PushAnswer, error) {
	return c.put(ctx, content, path.Base(name), append([]string{"buildid", id, "source"}, strings.Split(strings.TrimPrefix(path.Clean(name), "/"), "/")...)...)
}

// tries is how often a push is tried whose server answers that it can't now, or not at all.
const tries = 4

func (c *Client) put(ctx context.Context, content Content, name string, place ...string) (a *server.PushAnswer, err error) {
	sum, err := sumOf(content)
	if err != nil {
		return nil, fmt.Errorf("push: %w", err)
	}
	for k := range tries {
		if k > 0 {
			select {
			case <-time.After(time.Second << k):
			case <-ctx.Done():
				return nil, errors.Join(err, context.Cause(ctx))
			}
		}
		again := false
		if a, again, err = c.once(ctx, content, name, sum, place); err == nil || !again || ctx.Err() != nil {
			return a, err
		}
	}
	return nil, err
}

// once sends a request; again says that it may go better later.
func (c *Client) once(ctx context.Context, content Content, name, sum string, place []string) (a *server.PushAnswer, again bool, err error) {
	body, size, err := content.Open()
	if err != nil {
		return nil, false, fmt.Errorf("push: %w", err)
	}
	defer body.Close() // only read from
	address := c.base.JoinPath(escaped(place)...)
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, address.String(), body)
	if err != nil {
		return nil, false, fmt.Errorf("push: %w", err)
	}
	request.ContentLength = size
	if size == 0 {
		request.Body = http.NoBody
	}
	request.Header.Set("Expect", "100-continue")
	request.Header.Set("User-Agent", "callreel")
	request.Header.Set(server.HeaderSHA256, sum)
	request.Header.Set(server.HeaderName, url.PathEscape(name))
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, true, fmt.Errorf("push: %w", err)
	}
	defer answer.Body.Close()
	const most = 64 << 10
	said, err := io.ReadAll(io.LimitReader(answer.Body, most))
	if err != nil {
		return nil, true, fmt.Errorf("push: %s: %w", address.Redacted(), err)
	}
	if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusCreated {
		again := answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode >= 500 && answer.StatusCode != http.StatusInsufficientStorage
		return nil, again, fmt.Errorf("push: %s: the server answers %s: %s", address.Redacted(), answer.Status, strings.TrimSpace(string(said[:min(len(said), 500)])))
	}
	a = &server.PushAnswer{}
	if err := json.Unmarshal(said, a); err != nil {
		return nil, false, fmt.Errorf("push: %s: this is no symbol server: %w", address.Redacted(), err)
	}
	return a, false, nil
}

// escaped makes the parts of a path such that they go through as they are.
func escaped(place []string) []string {
	var list []string
	for _, part := range place {
		list = append(list, url.PathEscape(part))
	}
	return list
}

// sumOf is the SHA-256 of a content.
func sumOf(content Content) (string, error) {
	in, _, err := content.Open()
	if err != nil {
		return "", err
	}
	defer in.Close() // only read from
	h := sha256.New()
	if _, err := io.Copy(h, in); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
