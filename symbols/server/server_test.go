package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/symbols/server/storage"
)

const (
	readToken = "token-to-read"
	pushToken = "token-to-push"
)

// program is a C program with an inlined call.
const program = `static inline __attribute__((always_inline)) int inner(int x) { return x * 3 + 1; }
__attribute__((noinline)) int outer(int x) { return inner(x) + 2; }
int main(int argc, char **argv) { return outer(argc); }
`

// built is a program in its forms.
type built struct {
	id, whole, stripped, debug, source string
	outer                              uint64 // link address
}

// build compiles the program with an ID of its own.
func build(t testing.TB, id string, flags ...string) *built {
	t.Helper()
	dir := t.TempDir()
	b := &built{id: id, whole: filepath.Join(dir, "whole"), stripped: filepath.Join(dir, "stripped"), debug: filepath.Join(dir, "debug"), source: filepath.Join(dir, "prog.c")}
	realtest.Must(t, os.WriteFile(b.source, []byte(program), 0o600))
	realtest.Output(t, dir, realtest.GCC, append([]string{"-g", "-O1", "-Wl,--build-id=0x" + id, "-o", b.whole, b.source}, flags...)...)
	realtest.Output(t, dir, realtest.Objcopy, "--strip-all", b.whole, b.stripped)
	realtest.Output(t, dir, realtest.Objcopy, "--only-keep-debug", b.whole, b.debug)
	im, err := object.Open(b.whole)
	realtest.Must(t, err)
	defer im.Close()
	list, err := im.FunctionSymbols()
	realtest.Must(t, err)
	for _, s := range list {
		if s.Name == "outer" {
			b.outer = s.Addr
		}
	}
	return b
}

// running is a server that serves.
type running struct {
	*Server
	url  string
	stop func()
}

// start starts a server that needs tokens for all.
func start(t testing.TB, s storage.Storage, change func(*Options)) *running {
	t.Helper()
	opt := Options{Storage: s, CacheDir: t.TempDir(), Tokens: []string{readToken}, PushTokens: []string{pushToken}, MissingFor: time.Millisecond}
	if change != nil {
		change(&opt)
	}
	server, err := New(t.Context(), opt)
	realtest.Must(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	realtest.Must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, l) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
		if err := server.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	t.Cleanup(stop)
	return &running{server, "http://" + l.Addr().String(), stop}
}

func folder(t testing.TB) storage.Storage {
	t.Helper()
	s, err := storage.OpenFolder(filepath.Join(t.TempDir(), "store"))
	realtest.Must(t, err)
	return s
}

// ask sends a request and returns the answer.
func (r *running) ask(t testing.TB, method, path, token string, body []byte, headers ...string) (int, http.Header, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, r.url+path, bytes.NewReader(body))
	realtest.Must(t, err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	for k := 0; k+1 < len(headers); k += 2 {
		request.Header.Set(headers[k], headers[k+1])
	}
	answer, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return 0, nil, err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return answer.StatusCode, answer.Header, err.Error()
	}
	return answer.StatusCode, answer.Header, string(text)
}

// push pushes a file and checks the answer's status.
func (r *running) push(t testing.TB, id, path string, want int) string {
	t.Helper()
	data, err := os.ReadFile(path)
	realtest.Must(t, err)
	code, _, text := r.ask(t, http.MethodPut, "/buildid/"+id, pushToken, data, HeaderName, filepath.Base(path))
	if code != want {
		t.Fatalf("push of %s: %d %s, want %d", path, code, text, want)
	}
	return text
}

// capture is a request for one address.
func capture(id string, addresses ...uint64) []byte {
	var frames []string
	for _, a := range addresses {
		frames = append(frames, fmt.Sprintf(`{"address":"%#x"}`, a+0x10000))
	}
	return []byte(fmt.Sprintf(`{"images":[{"id":%q,"load":"0x10000","size":65536,"path":"/bin/prog"}],"threads":[{"tid":1,"frames":[%s]}]}`, id, strings.Join(frames, ",")))
}

// named is the answer to a capture.
type named struct {
	Threads []struct {
		Frames []struct {
			Inline []struct {
				Function, File string
				Line           int
			}
			Reason string
		}
	}
}

// names asks for the function at an address: "inner<outer", or the reason for none.
func (r *running) names(t testing.TB, id string, address uint64) string {
	t.Helper()
	code, _, text := r.ask(t, http.MethodPost, "/symbolize", readToken, capture(id, address))
	if code != http.StatusOK {
		t.Fatalf("symbolize: %d %s", code, text)
	}
	var n named
	realtest.Must(t, json.Unmarshal([]byte(text), &n))
	var list []string
	for _, c := range n.Threads[0].Frames[0].Inline {
		list = append(list, c.Function)
	}
	if len(list) == 0 {
		return n.Threads[0].Frames[0].Reason
	}
	return strings.Join(list, "<")
}

func TestWhatIsPushedIsHandedOutAndNamesAddresses(t *testing.T) {
	b := build(t, "00112233445566778899")
	for _, storageKind := range []string{"folder", "S3"} {
		t.Run(storageKind, func(t *testing.T) {
			r := start(t, storageOf(t, storageKind), nil)
			if got := r.names(t, b.id, b.outer); !strings.Contains(got, "no symbols") {
				t.Errorf("before the push: %q", got)
			}
			r.push(t, b.id, b.stripped, http.StatusCreated)
			r.push(t, b.id, b.debug, http.StatusCreated)
			r.push(t, b.id, b.debug, http.StatusOK)
			for kind, path := range map[string]string{"debuginfo": b.debug, "executable": b.stripped} {
				want, err := os.ReadFile(path)
				realtest.Must(t, err)
				code, h, text := r.ask(t, http.MethodGet, "/buildid/"+b.id+"/"+kind, readToken, nil)
				if code != http.StatusOK || text != string(want) || h.Get(headerSize) != fmt.Sprint(len(want)) || h.Get(headerFile) != filepath.Base(path) {
					t.Errorf("%s: %d, %d bytes, %v", kind, code, len(text), h)
				}
				code, h, text = r.ask(t, http.MethodGet, "/buildid/"+strings.ToUpper(b.id)+"/"+kind, readToken, nil, "Range", "bytes=100-199")
				if code != http.StatusPartialContent || text != string(want[100:200]) || h.Get("Content-Range") != fmt.Sprintf("bytes 100-199/%d", len(want)) {
					t.Errorf("%s, a range: %d, %d bytes, %v", kind, code, len(text), h)
				}
				if code, _, _ = r.ask(t, http.MethodGet, "/buildid/"+b.id+"/"+kind, readToken, nil, headerMaxSize, "1000"); code != http.StatusNotAcceptable {
					t.Errorf("larger than the client takes: %d", code)
				}
			}
			if got := r.names(t, b.id, b.outer); got != "inner<outer" && got != "outer" {
				t.Errorf("named %q", got)
			}
			code, _, text := r.ask(t, http.MethodGet, "/symmap/"+b.id, readToken, nil)
			if code != http.StatusOK || !strings.Contains(text[:8], "symmap") {
				t.Errorf("the map: %d, %d bytes", code, len(text))
			}
			for name, path := range map[string]string{".debug_info": b.debug, ".text": b.stripped, ".comment": b.debug} {
				code, _, text := r.ask(t, http.MethodGet, "/buildid/"+b.id+"/section/"+name, readToken, nil)
				out := filepath.Join(t.TempDir(), "section")
				realtest.Output(t, ".", realtest.Objcopy, "--dump-section", name+"="+out, path, "/dev/null")
				want, err := os.ReadFile(out)
				realtest.Must(t, err)
				if code != http.StatusOK || text != string(want) {
					t.Errorf("section %s: %d, %d bytes, want %d", name, code, len(text), len(want))
				}
			}
			if code, _, _ := r.ask(t, http.MethodGet, "/buildid/"+b.id+"/section/.none", readToken, nil); code != http.StatusNotFound {
				t.Errorf("no such section: %d", code)
			}
		})
	}
}

// storageOf makes an empty storage.
func storageOf(t testing.TB, kind string) storage.Storage {
	t.Helper()
	if kind == "folder" {
		return folder(t)
	}
	s, err := storage.Open("s3://"+realtest.S3(t)+"/prefix", t.TempDir())
	realtest.Must(t, err)
	return s
}

func TestADebugFileThatComesLaterNamesWhatWasNamedWithoutIt(t *testing.T) {
	b := build(t, "a0a1a2a3a4")
	r := start(t, folder(t), nil)
	r.push(t, b.id, b.stripped, http.StatusCreated)
	if got := r.names(t, b.id, b.outer); strings.Contains(got, "outer") {
		t.Fatalf("named %q without symbols", got)
	}
	other := start(t, r.storage, nil) // which has the old map in memory, too
	if got := other.names(t, b.id, b.outer); strings.Contains(got, "outer") {
		t.Fatalf("named %q without symbols", got)
	}
	r.push(t, b.id, b.debug, http.StatusCreated)
	for _, s := range []*running{r, other} {
		deadline := time.Now().Add(time.Minute)
		for !strings.Contains(s.names(t, b.id, b.outer), "outer") {
			if time.Now().After(deadline) {
				t.Fatal("never named")
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
}

func TestNothingIsServedWithoutATokenButWhatIsPublic(t *testing.T) {
	b := build(t, "b0b1b2b3b4")
	private := start(t, folder(t), nil)
	requests := map[string][2]string{
		ServiceFiles: {http.MethodGet, "/buildid/" + b.id + "/debuginfo"}, ServiceSource: {http.MethodGet, "/buildid/" + b.id + "/source" + b.source},
		ServiceSymbolize: {http.MethodPost, "/symbolize"}, ServiceMaps: {http.MethodGet, "/symmap/" + b.id},
		ServiceMetrics: {http.MethodGet, "/metrics"}, ServiceHealth: {http.MethodGet, "/readyz"}, "push": {http.MethodPut, "/buildid/" + b.id},
	}
	data, err := os.ReadFile(b.whole)
	realtest.Must(t, err)
	for service, what := range requests {
		body := []byte(nil)
		if service == "push" {
			body = data
		}
		for _, token := range []string{"", "token-to-rea", readToken + "x", "wrong"} {
			if code, _, _ := private.ask(t, what[0], what[1], token, body); code != http.StatusUnauthorized {
				t.Errorf("%s with token %q: %d", service, token, code)
			}
		}
		if service == "push" {
			if code, _, _ := private.ask(t, what[0], what[1], readToken, body); code != http.StatusUnauthorized {
				t.Errorf("a push by a reader: %d", code)
			}
			continue
		}
		public := start(t, folder(t), func(o *Options) { o.Public = []string{service} })
		if code, _, _ := public.ask(t, what[0], what[1], "", nil); code == http.StatusUnauthorized {
			t.Errorf("%s is public and refused", service)
		}
		for other, what := range requests {
			if code, _, _ := public.ask(t, what[0], what[1], "", nil); other != service && code != http.StatusUnauthorized {
				t.Errorf("%s with only %s public: %d", other, service, code)
			}
		}
	}
	// As clients of debuginfod give it.
	u := strings.Replace(private.url, "http://", "http://any:"+readToken+"@", 1)
	answer, err := http.Get(u + "/readyz")
	realtest.Must(t, err)
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("a password in the address: %s", answer.Status)
	}
}

func TestWhatIsPushedIsNeverBelievedAndNeverReplaced(t *testing.T) {
	b, other := build(t, "c0c1c2c3c4"), build(t, "c0c1c2c3c4", "-O2", "-DX")
	strange := build(t, "c5c6c7c8c9")
	r := start(t, folder(t), func(o *Options) { o.MaxUpload = 1 << 20 })
	r.push(t, b.id, strange.whole, http.StatusUnprocessableEntity) // of another ID
	for name, data := range map[string][]byte{"nothing": nil, "text": []byte("hello\n"), "cut": []byte("\x7fELF\x02\x01\x01"), "large": make([]byte, 1<<20+1)} {
		if code, _, text := r.ask(t, http.MethodPut, "/buildid/"+b.id, pushToken, data); code != http.StatusUnprocessableEntity && (code != http.StatusRequestEntityTooLarge || name != "large") {
			t.Errorf("%s: %d %s", name, code, text)
		}
	}
	if code, _, text := r.ask(t, http.MethodPut, "/buildid/"+b.id, pushToken, []byte("x"), HeaderSHA256, strings.Repeat("0", 64)); code != http.StatusBadRequest {
		t.Errorf("another sum than announced: %d %s", code, text)
	}
	realtest.Must(t, r.storage.List(t.Context(), "", func(o storage.Info) error { t.Errorf("%s was stored", o.Key); return nil }))
	r.push(t, b.id, b.whole, http.StatusCreated)
	r.push(t, b.id, b.whole, http.StatusOK)
	want, err := os.ReadFile(b.whole)
	realtest.Must(t, err)
	for _, path := range []string{other.whole, other.debug, other.stripped} {
		r.push(t, b.id, path, http.StatusConflict)
		for _, kind := range []string{"debuginfo", "executable"} {
			if _, _, text := r.ask(t, http.MethodGet, "/buildid/"+b.id+"/"+kind, readToken, nil); text != string(want) {
				t.Fatalf("%s was replaced by %s", kind, path)
			}
		}
	}
}

func TestPathsAndIDsAreParsed(t *testing.T) {
	s := folder(t)
	secret := filepath.Join(filepath.Dir(s.String()), "secret")
	realtest.Must(t, os.WriteFile(secret, []byte("secret"), 0o600))
	r := start(t, s, nil)
	for _, path := range []string{
		"/buildid/../../secret/debuginfo", "/buildid/..%2f..%2fsecret/debuginfo", "/buildid/ab/debuginfo", "/buildid/abc/debuginfo", "/buildid/xyz1/debuginfo",
		"/buildid/" + strings.Repeat("ab", 100) + "/debuginfo", "/buildid//debuginfo", "/buildid/abcd/other", "/buildid/abcd", "/symmap/..%2fsecret", "/symmap/",
		"/buildid/abcd/source/" + strings.Repeat("x/", 3000), "/buildid/abcd/source/../../../secret", "/secret", "/../secret", "/buildid/abcd/section/" + strings.Repeat("x", 5000),
		"/buildid/abcd%00/debuginfo",
	} {
		code, _, text := r.ask(t, http.MethodGet, path, readToken, nil)
		if code != http.StatusNotFound && code != http.StatusBadRequest {
			t.Errorf("%.60s: %d %.100s", path, code, text)
		}
		if strings.Contains(text, "secret\n") || text == "secret" {
			t.Errorf("%s gave the secret", path)
		}
	}
	for _, method := range []string{"DELETE", "PATCH", "TRACE", "POST", "OPTIONS"} {
		if code, _, _ := r.ask(t, method, "/buildid/abcd/debuginfo", pushToken, nil); code != http.StatusNotFound {
			t.Errorf("%s: %d", method, code)
		}
	}
}

func TestSourceFilesAreTakenThatTheDebugInformationNames(t *testing.T) {
	b := build(t, "d0d1d2d3d4")
	r := start(t, folder(t), nil)
	r.push(t, b.id, b.whole, http.StatusCreated)
	at := "/buildid/" + b.id + "/source"
	if code, _, text := r.ask(t, http.MethodPut, at+"/etc/passwd", pushToken, []byte("x")); code != http.StatusUnprocessableEntity {
		t.Errorf("a file that nothing names: %d %s", code, text)
	}
	for k, want := range []int{http.StatusCreated, http.StatusOK} {
		if code, _, text := r.ask(t, http.MethodPut, at+b.source, pushToken, []byte(program)); code != want {
			t.Fatalf("push %d: %d %s", k, code, text)
		}
	}
	if code, _, text := r.ask(t, http.MethodPut, at+b.source, pushToken, []byte("another text")); code != http.StatusConflict {
		t.Errorf("another text: %d %s", code, text)
	}
	for _, path := range []string{b.source, "/x/.." + b.source, strings.ReplaceAll(b.source, ".", "%2e")} {
		if code, _, text := r.ask(t, http.MethodGet, at+path, readToken, nil); code != http.StatusOK || text != program {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
}

func TestRealClientsOfDebuginfodAreServed(t *testing.T) {
	realtest.Need(t, realtest.DebuginfodFind, realtest.GDB)
	b := build(t, "e0e1e2e3e4e5e6e7e8e9e0e1e2e3e4e5e6e7e8e9")
	r := start(t, folder(t), nil)
	r.push(t, b.id, b.debug, http.StatusCreated)
	r.push(t, b.id, b.stripped, http.StatusCreated)
	if code, _, text := r.ask(t, http.MethodPut, "/buildid/"+b.id+"/source"+b.source, pushToken, []byte(program)); code != http.StatusCreated {
		t.Fatalf("%d %s", code, text)
	}
	cache := t.TempDir()
	env := append(os.Environ(), "DEBUGINFOD_URLS="+strings.Replace(r.url, "http://", "http://any:"+readToken+"@", 1), "DEBUGINFOD_CACHE_PATH="+cache, "HOME="+cache)
	for what, path := range map[string]string{"debuginfo": b.debug, "executable": b.stripped, "source": b.source} {
		args := []string{what, b.id}
		if what == "source" {
			args = append(args, b.source)
		}
		cmd := exec.Command(realtest.Tool(t, realtest.DebuginfodFind), args...)
		cmd.Env = env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("debuginfod-find %s: %v\n%s", what, err, out)
		}
		got, err := os.ReadFile(strings.TrimSpace(string(out)))
		realtest.Must(t, err)
		want, err := os.ReadFile(path)
		realtest.Must(t, err)
		if !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, want %d", what, len(got), len(want))
		}
	}
	realtest.Must(t, os.Remove(b.source)) // gdb has to ask for it
	cmd := exec.Command(realtest.Tool(t, realtest.GDB), "-nx", "-batch", "-iex", "set debuginfod enabled on", "-ex", "list outer", b.stripped)
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "int outer(int x)") {
		t.Errorf("gdb: %v\n%s", err, out)
	}
}
