package viewer

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// oneCall is a reel of one call.
func oneCall(t testing.TB) string {
	return madeReel(t, []string{"main"}, func(w *reel.Writer) {
		thread(t, w, "main", reel.Entry(2000, 0x10000, 1), reel.Exit(5000, 0x10000, 1))
	})
}

func TestOnlyRequestsThatAreMeantForItAreAnswered(t *testing.T) {
	c := serveReels(t, oneCall(t))
	_, port, err := net.SplitHostPort(c.listener.Addr().String())
	realtest.Must(t, err)
	info := "/" + c.token + "/api/info"
	host := func(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }
	header := func(key, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(key, value) }
	}
	method := func(name string) func(*http.Request) { return func(r *http.Request) { r.Method = name } }
	for _, k := range []struct {
		name   string
		path   string
		change func(*http.Request)
		want   int
	}{
		{"as printed", info, nil, 200},
		{"localhost", info, host("localhost:" + port), 200},
		{"LOCALHOST", info, host("LocalHost:" + port), 200},
		{"a rebound name", info, host("evil.example:" + port), 421},
		{"a name that begins right", info, host("localhost.evil.example:" + port), 421},
		{"another loopback address", info, host("127.0.0.2:" + port), 421},
		{"all addresses", info, host("0.0.0.0:" + port), 421},
		{"no port", info, host("127.0.0.1"), 421},
		{"another port", info, host("127.0.0.1:1"), 421},
		{"no host", info, host("-"), 421},
		{"no token", "/api/info", nil, 404},
		{"nothing", "/", nil, 404},
		{"another token", "/" + strings.Repeat("0", len(c.token)) + "/api/info", nil, 404},
		{"part of the token", "/" + c.token[:len(c.token)-1] + "/api/info", nil, 404},
		{"more than the token", "/" + c.token + "0/api/info", nil, 404},
		{"the token elsewhere", "/x/" + c.token + "/api/info", nil, 404},
		{"POST", info, method("POST"), 405},
		{"PUT", info, method("PUT"), 405},
		{"DELETE", info, method("DELETE"), 405},
		{"OPTIONS", info, method("OPTIONS"), 405},
		{"HEAD", info, method("HEAD"), 200},
		{"another site", info, header("Sec-Fetch-Site", "cross-site"), 403},
		{"another port's page", info, header("Sec-Fetch-Site", "same-site"), 403},
		{"its own page", info, header("Sec-Fetch-Site", "same-origin"), 200},
		{"a link to the page", "/" + c.token + "/", header("Sec-Fetch-Site", "cross-site"), 200},
		{"without the slash", "/" + c.token, nil, 301},
		{"no such request", "/" + c.token + "/api/secrets", nil, 404},
		{"no such file", "/" + c.token + "/assets/none.js", nil, 404},
		{"a folder", "/" + c.token + "/assets", nil, 404},
		{"out of the folder", "/" + c.token + "/../server.go", nil, 404},
		{"out of the folder, escaped", "/" + c.token + "/%2e%2e/%2e%2e/server.go", nil, 404},
		{"an absolute path", "/" + c.token + "//etc/passwd", nil, 404},
	} {
		t.Run(k.name, func(t *testing.T) {
			a, body := c.do(k.path, k.change)
			if a.StatusCode != k.want {
				t.Fatalf("%s: %s", a.Status, body)
			}
			for key, want := range map[string]string{
				"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
				"Cache-Control": "no-store", "Cross-Origin-Resource-Policy": "same-origin", "X-Frame-Options": "DENY",
			} {
				if got := a.Header.Get(key); got != want {
					t.Errorf("%s: %q, want %q", key, got, want)
				}
			}
			for key := range a.Header {
				if strings.HasPrefix(key, "Access-Control-") {
					t.Errorf("%s: others may not read this", key)
				}
			}
			if k.want != 200 && strings.Contains(string(body), c.token) && k.want != 301 {
				t.Errorf("a refusal tells the token: %s", body)
			}
		})
	}
}

func TestTokensAreLongAndNewEachTime(t *testing.T) {
	path := oneCall(t)
	a, b := serveReels(t, path), serveReels(t, path)
	if a.token == b.token || len(a.token) < 2*16 {
		t.Errorf("tokens %q and %q", a.token, b.token)
	}
	if want := fmt.Sprintf("http://%s/%s/", a.listener.Addr(), a.token); a.URL() != want {
		t.Errorf("the URL is %s, want %s", a.URL(), want)
	}
}

func TestPageHasNothingInline(t *testing.T) {
	c := serveReels(t, oneCall(t))
	a, body := c.do("/"+c.token+"/", nil)
	if a.StatusCode != 200 || a.Header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("%s %s", a.Status, a.Header.Get("Content-Type"))
	}
	for _, wrong := range []string{`<style`, `<script>`, `\son[a-z]+=`, `\sstyle=`, `javascript:`, `(src|href|content)="?(https?:)?//`} {
		if found := regexp.MustCompile("(?i)" + wrong).Find(body); found != nil {
			t.Errorf("the page has %q, which its own policy forbids, or the network would have to bring", found)
		}
	}
}

func TestWrongParametersAreRefusedAndSaid(t *testing.T) {
	c := serveReels(t, oneCall(t))
	lanes := strings.Repeat("0:0:1,", maxLanes) + "0:0:1"
	for _, request := range []string{
		"view?width=0&lanes=0:0:1", "view?width=-1&lanes=0:0:1", "view?width=999999999&lanes=0:0:1", "view?width=1e3&lanes=0:0:1", "view?width=NaN",
		"view?from=NaN", "view?from=Inf", "view?to=-Inf", "view?from=1e300", "view?from=x", "view?from=5&to=4",
		"view?lanes=1:0:1", "view?lanes=0:0", "view?lanes=0:0:1:1", "view?lanes=0:0:99999", "view?lanes=0:-1:1", "view?lanes=:::", "view?lanes=0:0:1,", "view?lanes=4294967296:0:1",
		"view?width=16384&lanes=0:0:4096", "view?lanes=" + lanes,
		"overview?width=0", "overview?width=99999999",
		"names?ids=x", "names?ids=-1", "names?ids=" + strings.Repeat("1,", maxNames) + "1",
		"find?q=x&limit=99999999", "find?q=" + strings.Repeat("x", maxGlob+1),
		"first", "next?f=-1", "next?q=x&dir=2", "next?f=99999999999", "call?lane=-1", "call?row=x",
		"functions?lanes=1", "functions?lanes=x", "functions?limit=-1", "functions?ticket=%22%3E", "functions?ticket=" + strings.Repeat("x", maxTicket+1),
		"tree?depth=0", "tree?limit=99999999", "distribution", "distribution?f=x", "calls?f=1&sort=random", "calls?f=1&limit=99999999", "calls?f=1&min=NaN",
		"diff", "info?%zz", "view?reel=1", "view?reel=-1",
	} {
		if request == "info?%zz" {
			continue // takes none
		}
		a, body := c.do("/"+c.token+"/api/"+request, nil)
		var said struct{ Error string }
		if a.StatusCode != http.StatusBadRequest || json.Unmarshal(body, &said) != nil || said.Error == "" || len(body) > 1000 {
			t.Errorf("%.80s: %s: %s", request, a.Status, body)
		}
	}
	if a, _ := c.do("/"+c.token+"/api/find?q="+strings.Repeat("x", maxQuery), nil); a.StatusCode != http.StatusRequestURITooLong {
		t.Errorf("a long query: %s", a.Status)
	}
	if a, _ := c.do("/"+c.token+"/api/find?q="+strings.Repeat("x", 2*maxHeader), nil); a.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a very long query: %s", a.Status)
	}
}

func TestAddressesBesidesLoopbackAreSaid(t *testing.T) {
	for _, k := range []struct {
		address string
		open    bool
		allowed []string
		refused []string
	}{
		{"127.0.0.1", false, []string{"127.0.0.1:7", "localhost:7"}, []string{"10.0.0.1:7", "[::1]:7", "example.com:7", "127.0.0.1:8"}},
		{"::1", false, []string{"[::1]:7", "localhost:7"}, []string{"127.0.0.1:7", "[::2]:7"}},
		{"10.0.0.1", true, []string{"10.0.0.1:7"}, []string{"localhost:7", "127.0.0.1:7", "example.com:7"}},
		{"0.0.0.0", true, []string{"10.0.0.1:7", "127.0.0.1:7", "localhost:7"}, []string{"example.com:7", "127.0.0.1:8"}},
		{"::", true, []string{"[fe80::1]:7", "localhost:7"}, []string{"example.com:7"}},
	} {
		h := newHosts(k.address, &net.TCPAddr{IP: net.ParseIP(k.address), Port: 7})
		if h.open != k.open {
			t.Errorf("%s: open to others: %v", k.address, h.open)
		}
		for _, host := range k.allowed {
			if !h.allows(host) {
				t.Errorf("%s refuses %s", k.address, host)
			}
		}
		for _, host := range k.refused {
			if h.allows(host) {
				t.Errorf("%s answers to %s", k.address, host)
			}
		}
	}
}
