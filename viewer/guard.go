package viewer

import (
	"crypto/subtle"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// nobody takes the messages of net/http.
var nobody = log.New(io.Discard, "", 0)

// hosts are the names under which the server answers. A page of another name, which its owner has made to lead here (DNS
// rebinding), sends that name.
type hosts struct {
	names map[string]bool
	port  string
	open  bool   // not on loopback
	any   bool   // on all addresses: under any address of this machine, which cannot be rebound
	shown string // host and port of the URL
}

func newHosts(address string, listening net.Addr) hosts {
	_, port, err := net.SplitHostPort(listening.String())
	if err != nil { // it is what Listen has made
		port = "0"
	}
	h := hosts{port: port, shown: net.JoinHostPort(address, port), names: map[string]bool{strings.ToLower(address): true}}
	ip, err := netip.ParseAddr(address)
	switch {
	case err == nil && ip.IsUnspecified():
		h.open, h.any = true, true
		h.shown = net.JoinHostPort("127.0.0.1", port)
		h.names["localhost"] = true
		if name, err := os.Hostname(); err == nil {
			h.names[strings.ToLower(name)] = true
		}
	case err == nil && ip.IsLoopback(), address == "localhost":
		h.names["localhost"] = true
	default:
		h.open = true
	}
	return h
}

// allows says whether a request's Host is the server's.
func (h *hosts) allows(host string) bool {
	name, port, err := net.SplitHostPort(host)
	if err != nil { // no port is port 80
		name, port = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"), "80"
	}
	if port != h.port {
		return false
	}
	if h.names[strings.ToLower(name)] {
		return true
	}
	_, err = netip.ParseAddr(name)
	return h.any && err == nil
}

// policy lets the page load its own files, and nothing run that is not one.
const policy = "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// handler lets through what is meant for the server, with the token taken off.
func (s *Server) handler() http.Handler {
	token := []byte(s.token)
	api := s.routes()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setHeaders(w.Header())
		if !s.hosts.allows(r.Host) {
			http.Error(w, "callreel: not a name of this server: use the address that callreel has printed, with its port.", http.StatusMisdirectedRequest)
			return
		}
		given, rest, found := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		if subtle.ConstantTimeCompare([]byte(given), token) != 1 {
			http.Error(w, "callreel: nothing here: use the whole address that callreel has printed.", http.StatusNotFound)
			return
		}
		if r.ContentLength != 0 {
			w.Header().Set("Connection", "close") // rather than read it
		}
		if name, isAPI := strings.CutPrefix(rest, "api/"); isAPI && s.controlled(w, r, name) {
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "callreel: only GET and HEAD.", http.StatusMethodNotAllowed)
			return
		}
		name, isAPI := strings.CutPrefix(rest, "api/")
		switch {
		case !found: // relative addresses need the slash
			http.Redirect(w, r, "/"+s.token+"/", http.StatusMovedPermanently)
		case isAPI && !sameOrigin(r):
			failWith(w, http.StatusForbidden, "only the page of this server may ask")
		case isAPI:
			s.serveAPI(w, r, api, name)
		default:
			s.serveFile(w, r, rest)
		}
	})
}

func setHeaders(h http.Header) {
	for key, value := range map[string]string{
		"Content-Security-Policy":      policy,
		"X-Content-Type-Options":       "nosniff",
		"X-Frame-Options":              "DENY",
		"Referrer-Policy":              "no-referrer", // the token is in the address
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Cache-Control":                "no-store",
	} {
		h.Set(key, value)
	}
}

// sameOrigin says whether a request comes from the server's own page, or was typed in. Browsers say so (Fetch Metadata, W3C);
// what is no browser has the token from its user.
func sameOrigin(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return true
	}
	return false
}

// fileTypes are those of the page's files: the system's own table may say anything.
var fileTypes = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml", ".png": "image/png", ".json": "application/json", ".txt": "text/plain; charset=utf-8", ".woff2": "font/woff2",
}

// serveFile answers with a file of the page.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request, name string) {
	if name == "" {
		name = "index.html"
	}
	data, kind := s.file(name)
	if data == nil {
		http.Error(w, "callreel: there is no such file.", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	if r.Method == http.MethodHead {
		return
	}
	_, _ = w.Write(data) // a browser that has gone away is nobody's error
}
