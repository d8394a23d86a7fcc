package server

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/symbols/server/storage"
)

// connect opens a connection of its own, for what no HTTP client would send.
func (r *running) connect(t testing.TB) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	realtest.Must(t, err)
	t.Cleanup(func() { _ = c.Close() }) // or by the server
	realtest.Must(t, c.SetDeadline(time.Now().Add(2*time.Minute)))
	return c
}

// answersStill checks that a server has come through.
func (r *running) answersStill(t testing.TB) {
	t.Helper()
	if code, _, text := r.ask(t, http.MethodGet, "/readyz", readToken, nil); code != http.StatusOK {
		t.Errorf("it doesn't answer any more: %d %s", code, text)
	}
}

func TestABodyOfAnySizeIsReadBeforeItIsAnswered(t *testing.T) {
	b := build(t, "8081828384")
	r := start(t, folder(t), nil)
	r.push(t, b.id, b.whole, http.StatusCreated)
	for _, size := range []int{quickBody - 1000, quickBody + 50_000, 5 * quickBody} {
		body := capture(b.id, make([]uint64, size/25)...)
		for k := 0; k < size/25; k += 1000 { // some of them have names
			body = bytes.Replace(body, []byte(`"0x10000"}`), fmt.Appendf(nil, `"%#x"}`, b.outer+0x10000), 1)
		}
		// This client reads nothing until it has sent all.
		c := r.connect(t)
		_, err := fmt.Fprintf(c, "POST /symbolize HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n", readToken, len(body))
		realtest.Must(t, err)
		_, err = c.Write(body)
		realtest.Must(t, err)
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		realtest.Must(t, err)
		var n named
		realtest.Must(t, json.NewDecoder(answer.Body).Decode(&n))
		realtest.Must(t, answer.Body.Close())
		got := 0
		for _, f := range n.Threads[0].Frames {
			if len(f.Inline) > 0 {
				got++
			}
		}
		if answer.StatusCode != http.StatusOK || len(n.Threads[0].Frames) != size/25 || got == 0 {
			t.Errorf("%d bytes: %s, %d frames, %d named", len(body), answer.Status, len(n.Threads[0].Frames), got)
		}
	}
}

func TestSlowClientsAreCutOff(t *testing.T) {
	r := start(t, folder(t), func(o *Options) { o.IdleTimeout, o.RequestTimeout = 500*time.Millisecond, 2*time.Second })
	post := "POST /symbolize HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + readToken + "\r\nContent-Length: 100000\r\n\r\n"
	for name, sends := range map[string]struct {
		head  string
		every time.Duration // a byte more; 0 for never
	}{
		"no request": {"", 0}, "half a head": {"GET / HT", 0}, "a head byte by byte": {"GET /", 50 * time.Millisecond},
		"no body": {post, 0}, "a body byte by byte": {post, 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := r.connect(t)
			_, err := c.Write([]byte(sends.head))
			realtest.Must(t, err)
			done := make(chan struct{})
			defer close(done)
			go func() {
				for sends.every > 0 {
					select {
					case <-done:
						return
					case <-time.After(sends.every):
						if _, err := c.Write([]byte(" ")); err != nil {
							return
						}
					}
				}
			}()
			// Whether it says something first or not, it ends the connection.
			_, err = io.Copy(io.Discard, c)
			if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
				t.Error("still open")
			}
		})
	}
}

func TestIdleConnectionsMakeRoom(t *testing.T) {
	r := start(t, folder(t), func(o *Options) { o.MaxConnections, o.IdleTimeout = 3, time.Hour })
	for range 6 {
		c := r.connect(t) // and stays
		_, err := fmt.Fprintf(c, "GET /readyz HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", readToken)
		realtest.Must(t, err)
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%v, %v", answer, err)
		}
		realtest.Must(t, answer.Body.Close())
	}
}

func TestStrangeJSONIsRefusedAndHurtsNobody(t *testing.T) {
	r := start(t, folder(t), nil)
	deep := strings.Repeat("[", 1_000_000)
	for name, c := range map[string]struct {
		body string
		code int
	}{
		"deep": {deep, 400}, "deep in an image": {`{"images":[{"load":1,"x":` + deep, 400},
		"deep in a frame":          {`{"images":[],"threads":[{"frames":[{"address":1,"x":` + strings.Repeat(`{"a":`, 100_000) + `1`, 400},
		"a huge exponent":          {`{"images":[],"threads":[{"frames":[{"address":1e999999999}]}]}`, 400},
		"a million digits":         {`{"images":[],"threads":[{"frames":[{"address":` + strings.Repeat("9", 1_000_000) + `}]}]}`, 400},
		"negative":                 {`{"images":[],"threads":[{"frames":[{"address":-1}]}]}`, 400},
		"a fraction":               {`{"images":[],"threads":[{"frames":[{"address":1.5}]}]}`, 400},
		"too large":                {`{"images":[],"threads":[{"frames":[{"address":"0x10000000000000000"}]}]}`, 400},
		"an ID as a path":          {`{"images":[{"id":"../../etc/passwd","load":1}],"threads":[]}`, 400},
		"a long ID":                {`{"images":[{"id":"` + strings.Repeat("ab", 500_000) + `","load":1,"size":9}],"threads":[{"frames":[2]}]}`, 400},
		"an image that is all":     {`{"images":[{"id":"abcd","load":0,"size":18446744073709551615}],"threads":[{"frames":["0xffffffffffffffff"]}]}`, 200},
		"an image over the end":    {`{"images":[{"id":"abcd","load":"0xffffffffffffffff","size":5}],"threads":[{"frames":[3]}]}`, 200},
		"bytes that aren't UTF-8":  {"{\"images\":[],\"threads\":[{\"name\":\"\xff\xfe\",\"frames\":[1]}]}", 200},
		"wrong at its end":         {`{"images":[{"id":"abcd","load":1,"size":99}],"threads":[{"frames":[` + strings.Repeat(`{"address":5},`, 500_000) + `{}]}]}`, 400},
		"keys twice":               {`{"images":[],"images":[],"threads":[],"threads":[{"frames":[1]}]}`, 200},
		"a value that is too long": {`{"images":[],"x":"` + strings.Repeat("a", 20<<20) + `"}`, 400},
	} {
		code, _, text := r.ask(t, http.MethodPost, "/symbolize", readToken, []byte(c.body))
		if code != c.code || code == http.StatusOK && !json.Valid([]byte(text)) {
			t.Errorf("%s: %d %.200s", name, code, text)
		}
		r.answersStill(t)
	}
}

func TestBombsOfEveryCodingAreLimited(t *testing.T) {
	r := start(t, folder(t), func(o *Options) { o.MaxBody = 1 << 20 })
	blanks := bytes.Repeat([]byte(" "), 64<<20)
	var wide bytes.Buffer
	w, err := zstd.NewWriter(&wide, zstd.WithWindowSize(64<<20))
	realtest.Must(t, err)
	_, err = w.Write(blanks)
	realtest.Must(t, err)
	realtest.Must(t, w.Close())
	var plain bytes.Buffer
	w, err = zstd.NewWriter(&plain, zstd.WithWindowSize(1<<20))
	realtest.Must(t, err)
	_, err = w.Write(blanks)
	realtest.Must(t, err)
	realtest.Must(t, w.Close())
	for name, c := range map[string]struct {
		coding string
		body   []byte
		code   int
	}{
		"gzip": {"gzip", gzipped(t, blanks), http.StatusRequestEntityTooLarge}, "zstd": {"zstd", plain.Bytes(), http.StatusRequestEntityTooLarge},
		"zstd with a large window": {"zstd", wide.Bytes(), http.StatusBadRequest},
		"no gzip":                  {"gzip", []byte("{}"), http.StatusBadRequest}, "no zstd": {"zstd", []byte("{}"), http.StatusBadRequest},
		"gzip that ends early": {"gzip", gzipped(t, blanks)[:1000], http.StatusBadRequest},
	} {
		for _, kind := range []string{"application/json", typeLines} {
			code, _, text := r.ask(t, http.MethodPost, "/symbolize", readToken, c.body, "Content-Encoding", c.coding, "Content-Type", kind)
			if code != c.code && !(code == http.StatusRequestEntityTooLarge && name == "gzip that ends early") {
				t.Errorf("%s, %s: %d %.100s, want %d", name, kind, code, text, c.code)
			}
		}
	}
	r.answersStill(t)
}

func TestAnswersAreCompressedForWhoAsks(t *testing.T) {
	b := build(t, "9091929394")
	r := start(t, folder(t), nil)
	r.push(t, b.id, b.whole, http.StatusCreated)
	body := capture(b.id, b.outer, b.outer+1, 3)
	_, _, plain := r.ask(t, http.MethodPost, "/symbolize", readToken, body)
	coder, err := zstd.NewWriter(nil)
	realtest.Must(t, err)
	packed := coder.EncodeAll(body, nil)
	for accept, want := range map[string]string{
		"zstd": "zstd", "gzip": "gzip", "gzip, zstd": "zstd", "zstd;q=0, gzip": "gzip", "br": "", "gzip;q=0.000": "", "GZIP": "gzip", "": "",
	} {
		code, h, text := r.ask(t, http.MethodPost, "/symbolize", readToken, packed, "Content-Encoding", "zstd", "Accept-Encoding", accept)
		if code != http.StatusOK || h.Get("Content-Encoding") != want || h.Get("Vary") != "Accept-Encoding" {
			t.Fatalf("%q: %d, %v", accept, code, h)
		}
		got := text
		switch want {
		case "zstd":
			d, err := zstd.NewReader(strings.NewReader(text))
			realtest.Must(t, err)
			all, err := io.ReadAll(d)
			realtest.Must(t, err)
			got = string(all)
		case "gzip":
			got = gunzipped(t, text)
		}
		if got != plain {
			t.Errorf("%q: %d bytes, want %d", accept, len(got), len(plain))
		}
	}
}

func TestPartsOfFilesAreHandedOutAsHTTPHasIt(t *testing.T) {
	b := build(t, "a8a9aaabac")
	for _, kind := range []string{"folder", "S3"} {
		t.Run(kind, func(t *testing.T) {
			r := start(t, storageOf(t, kind), nil)
			r.push(t, b.id, b.whole, http.StatusCreated)
			all, err := os.ReadFile(b.whole)
			realtest.Must(t, err)
			size := len(all)
			at := "/buildid/" + b.id + "/debuginfo"
			for ranges, want := range map[string]string{
				"bytes=0-0": string(all[:1]), "bytes=-5": string(all[size-5:]), fmt.Sprintf("bytes=%d-", size-3): string(all[size-3:]), "bytes=10-99999999999": string(all[10:]),
				"bytes= 3 - 4": string(all[3:5]), "bytes=-99999999999": string(all),
			} {
				if code, _, text := r.ask(t, http.MethodGet, at, readToken, nil, "Range", ranges); code != http.StatusPartialContent || text != want {
					t.Errorf("%s: %d, %d bytes, want %d", ranges, code, len(text), len(want))
				}
			}
			for _, ranges := range []string{fmt.Sprintf("bytes=%d-", size), "bytes=5-3", "bytes=a-b", "bytes=-", "bytes=--5", "bytes", "lines=1-2", "bytes=0x1-2", "bytes=1-2-3",
				"bytes=18446744073709551616-"} {
				if code, _, text := r.ask(t, http.MethodGet, at, readToken, nil, "Range", ranges); code != http.StatusRequestedRangeNotSatisfiable {
					t.Errorf("%s: %d, %d bytes", ranges, code, len(text))
				}
			}
			code, h, text := r.ask(t, http.MethodGet, at, readToken, nil, "Range", "bytes=0-1,5-6")
			if code != http.StatusPartialContent || !strings.HasPrefix(h.Get("Content-Type"), "multipart/byteranges") || !strings.Contains(text, "Content-Range: bytes 5-6/") {
				t.Errorf("two ranges: %d, %v", code, h)
			}
			many := "bytes=" + strings.Repeat("0-,", 1000) + "0-"
			if code, _, text := r.ask(t, http.MethodGet, at, readToken, nil, "Range", many); len(text) > 2*size {
				t.Errorf("a thousand times all of it: %d, %d bytes", code, len(text))
			}
			code, h, text = r.ask(t, http.MethodHead, at, readToken, nil)
			if code != http.StatusOK || text != "" || h.Get("Content-Length") != fmt.Sprint(size) || h.Get(headerSize) != fmt.Sprint(size) {
				t.Errorf("HEAD: %d, %v", code, h)
			}
			tag, modified := h.Get("ETag"), h.Get("Last-Modified")
			for _, c := range []struct {
				header, value string
				code          int
			}{
				{"If-None-Match", tag, 304}, {"If-None-Match", `"other"`, 200}, {"If-None-Match", "*", 304}, {"If-Match", `"other"`, 412}, {"If-Match", tag, 200},
				{"If-Modified-Since", modified, 304}, {"If-Modified-Since", "Mon, 01 Jan 2001 00:00:00 GMT", 200}, {"If-Modified-Since", "nonsense", 200},
			} {
				if code, _, _ := r.ask(t, http.MethodGet, at, readToken, nil, c.header, c.value); code != c.code {
					t.Errorf("%s: %s: %d, want %d", c.header, c.value, code, c.code)
				}
			}
			if code, _, _ := r.ask(t, http.MethodGet, at, readToken, nil, "Range", "bytes=0-1", "If-Range", `"other"`); code != http.StatusOK {
				t.Errorf("a part of another file: %d", code)
			}
			if code, _, text := r.ask(t, http.MethodGet, "/buildid/"+strings.ToUpper(b.id[:4])+"-"+b.id[4:]+"/debuginfo/", readToken, nil); code != http.StatusOK || len(text) != size {
				t.Errorf("an ID in another form: %d", code)
			}
		})
	}
}

func TestSectionsOfAnyNameAreFound(t *testing.T) {
	b := build(t, "b8b9babbbc")
	r := start(t, folder(t), nil)
	odd := b.stripped + ".odd"
	names := []string{".a b", ".a/b/../c", ".a%2fb", ".é", "..", ".?x#y"}
	args := []string{}
	for k, name := range names {
		content := fmt.Sprintf("%s.%d", b.stripped, k)
		realtest.Must(t, os.WriteFile(content, []byte("section "+name), 0o600))
		args = append(args, "--add-section", name+"="+content)
	}
	realtest.Output(t, ".", realtest.Objcopy, append(args, b.stripped, odd)...)
	r.push(t, b.id, odd, http.StatusCreated)
	for _, name := range names {
		escaped := ""
		for _, c := range []byte(name) {
			escaped += fmt.Sprintf("%%%02X", c)
		}
		code, h, text := r.ask(t, http.MethodGet, "/buildid/"+b.id+"/section/"+escaped, readToken, nil)
		if code != http.StatusOK || text != "section "+name || h.Get(headerSize) != fmt.Sprint(len(text)) {
			t.Errorf("%q: %d %q", name, code, text)
		}
	}
	for _, name := range []string{".bss", "", "%00", ".text%00", ".TEXT", ".tex", strings.Repeat("x", 4000)} {
		if code, _, text := r.ask(t, http.MethodGet, "/buildid/"+b.id+"/section/"+name, readToken, nil); code != http.StatusNotFound {
			t.Errorf("%.20q: %d %.100s", name, code, text)
		}
	}
	code, h, text := r.ask(t, http.MethodHead, "/buildid/"+b.id+"/section/.text", readToken, nil)
	if code != http.StatusOK || text != "" || h.Get("Content-Length") == "0" {
		t.Errorf("HEAD: %d %v", code, h)
	}
	code, _, text = r.ask(t, http.MethodGet, "/buildid/"+b.id+"/section/.comment", readToken, nil, "Range", "bytes=1-3")
	if _, _, all := r.ask(t, http.MethodGet, "/buildid/"+b.id+"/section/.comment", readToken, nil); code != http.StatusPartialContent || text != all[1:4] {
		t.Errorf("a part of a section: %d %q of %q", code, text, all)
	}
}

func TestRequestsAndFramesAreCounted(t *testing.T) {
	b := build(t, "c8c9cacbcc")
	r := start(t, folder(t), nil)
	r.push(t, b.id, b.whole, http.StatusCreated)
	r.ask(t, http.MethodPost, "/symbolize", readToken, capture(b.id, 1, 2, 3, 4, 5))
	r.ask(t, "BREW", "/"+strings.Repeat("x", 1000), readToken, nil)
	if n := testutil.ToFloat64(r.metrics.frames); n != 5 {
		t.Errorf("%v frames", n)
	}
	code, h, text := r.ask(t, http.MethodGet, "/metrics", readToken, nil)
	if code != http.StatusOK || !strings.HasPrefix(h.Get("Content-Type"), "text/plain") {
		t.Fatalf("%d, %v", code, h)
	}
	for _, want := range []string{
		`callreel_symbols_requests_total{method="POST",service="symbolize",status="200"} 1`, `callreel_symbols_requests_total{method="other",service="none",status="404"} 1`,
		`callreel_symbols_pushed_total{result="stored"} 1`, `callreel_symbols_builds_total{result="made"} 1`, "callreel_symbols_frames_total 5",
		`callreel_symbols_map_loads_total{from="built"} 1`, "callreel_symbols_requests_in_flight 1", "go_goroutines", "process_resident_memory_bytes",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(text, "BREW") || strings.Contains(text, "xxxx") {
		t.Error("a client has named a metric")
	}
}

func TestAServerWhoseBucketIsGoneIsNotReady(t *testing.T) {
	service, err := realtest.StartS3(t.Context(), realtest.Tool(t, realtest.VersityGW), t.TempDir())
	realtest.Must(t, err)
	t.Cleanup(service.End)
	for name, value := range service.Environment {
		t.Setenv(name, value)
	}
	s, err := storage.Open("s3://"+service.Bucket+"/prefix", t.TempDir())
	realtest.Must(t, err)
	b := build(t, "d8d9dadbdc")
	r := start(t, s, nil)
	r.push(t, b.id, b.whole, http.StatusCreated)
	if got := r.names(t, b.id, b.outer); !strings.HasSuffix(got, "outer") {
		t.Fatalf("named %q", got)
	}
	service.End()
	for path, want := range map[string]int{"/readyz": 503, "/healthz": 200, "/buildid/" + b.id + "/debuginfo": 500} {
		if code, _, text := r.ask(t, http.MethodGet, path, readToken, nil); code != want || strings.Contains(text, "127.0.0.1") {
			t.Errorf("%s: %d %s, want %d", path, code, text, want)
		}
	}
	// What is in memory is answered all the same.
	if got := r.names(t, b.id, b.outer); !strings.HasSuffix(got, "outer") {
		t.Errorf("named %q", got)
	}
}
