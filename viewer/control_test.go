package viewer

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// asked notes what the page asked for.
type asked struct {
	list []string
	err  error
}

func (a *asked) Pause(_ context.Context, pid int) error {
	a.list = append(a.list, "pause")
	return a.err
}

func (a *asked) Resume(_ context.Context, pid int) error {
	a.list = append(a.list, "resume")
	return a.err
}

// Only the page itself, and who has the token from its user, may pause a recording, and only while it goes on.
func TestOnlyItsOwnPagePausesARecording(t *testing.T) {
	control := &asked{}
	path := filepath.Join(t.TempDir(), "grows.reel")
	w := newReel(t, path, []string{"work"})
	thread(t, w, "main", reel.Entry(2000, 0x10000, 1), reel.Exit(2500, 0x10000, 1))
	realtest.Must(t, w.Flush())
	s := serve(t, Options{Paths: []string{path}, Recording: true, Control: control})
	base := strings.TrimSuffix(s.URL(), "/")
	origin := base[:strings.LastIndexByte(base, '/')]
	ask := func(method, path string, headers ...string) int {
		r, err := http.NewRequest(method, base+path, nil)
		realtest.Must(t, err)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		answer, err := http.DefaultClient.Do(r)
		realtest.Must(t, err)
		answer.Body.Close()
		return answer.StatusCode
	}
	for _, c := range []struct {
		name, method, path string
		headers            []string
		want               int
	}{
		{"from the page", "POST", "/api/pause", []string{"Sec-Fetch-Site", "same-origin", "Origin", origin}, 204},
		{"by a program", "POST", "/api/resume", nil, 204},
		{"from another site", "POST", "/api/pause", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"from another port", "POST", "/api/pause", []string{"Sec-Fetch-Site", "same-site", "Origin", "http://127.0.0.1:1"}, 403},
		{"by an old browser, from another site", "POST", "/api/pause", []string{"Origin", "http://evil.example"}, 403},
		{"by an old browser, from a file", "POST", "/api/pause", []string{"Origin", "null"}, 403},
		{"by GET", "GET", "/api/pause", nil, 404},
		{"elsewhere", "POST", "/pause", nil, 405},
		{"something else", "POST", "/api/info", nil, 405},
	} {
		if got := ask(c.method, c.path, c.headers...); got != c.want {
			t.Errorf("%s: status %d, want %d", c.name, got, c.want)
		}
	}
	if !slices.Equal(control.list, []string{"pause", "resume"}) {
		t.Errorf("asked for %q", control.list)
	}
	control.err = errors.New("not now")
	if got := ask("POST", "/api/pause"); got != 409 {
		t.Errorf("status %d of what failed", got)
	}
	realtest.Must(t, w.Close())
	s.Ended()
	until(s, "info", func(i infoAnswer) bool { return !i.Reels[0].Live })
	if got := ask("POST", "/api/pause"); got != 409 {
		t.Errorf("status %d behind the end", got)
	}
}
