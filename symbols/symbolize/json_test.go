package symbolize

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
)

// promised has exactly the keys that a capture's answer has.
type promised struct {
	Images  []jsonImage `json:"images"`
	Threads []struct {
		TID    json.RawMessage `json:"tid"`
		Name   string          `json:"name"`
		Frames []jsonFrame     `json:"frames"`
	} `json:"threads"`
}

// answerJSON runs JSON over a text.
func answerJSON(t *testing.T, source Source, in string) string {
	t.Helper()
	var b bytes.Buffer
	if err := JSON(context.Background(), strings.NewReader(in), &b, source); err != nil {
		t.Fatalf("%v\nof %.500s", err, in)
	}
	return b.String()
}

func TestJSONAnswersWithThePromisedKeys(t *testing.T) {
	path := compile(t, realtest.GCC, "prog.c", source, "-g", "-O1")
	outer, caller := codeAddresses(t, path, "outer"), codeAddresses(t, path, "caller")
	const load = 0x55d2c0a0f000
	// Numbers and strings, frames as objects and as addresses, threads of any ID.
	in := fmt.Sprintf(`{"images":[{"path":%q,"load":%d,"size":"0x8000"}],
		"threads":[{"tid":7,"name":"main","frames":[{"address":"%#x"},{"address":%d},%d,"0x10"]},{"tid":"io","frames":[]},{}]}`,
		path, uint64(load), load+outer[0], load+caller[len(caller)-1]+1, load+caller[len(caller)-1]+1)
	got := realtest.DecodeExactly[promised](t, answerJSON(t, local(t), in))
	if len(got.Images) != 1 || got.Images[0] != (jsonImage{Load: "0x55d2c0a0f000", Size: 0x8000, Path: path}) {
		t.Errorf("images: %+v", got.Images)
	}
	if len(got.Threads) != 3 || string(got.Threads[0].TID) != "7" || got.Threads[0].Name != "main" || string(got.Threads[1].TID) != `"io"` {
		t.Fatalf("threads: %+v", got.Threads)
	}
	want := truth(t, path, []uint64{outer[0], caller[len(caller)-1]})
	for k, f := range got.Threads[0].Frames {
		var names []string
		for _, c := range f.Inline {
			names = append(names, fmt.Sprintf("%s %s:%d", c.Function, c.File, c.Line))
		}
		switch {
		case k == 3:
			if f.Address != "0x10" || f.Inline == nil || len(f.Inline) > 0 || f.Reason == "" || f.Image != "" {
				t.Errorf("an address without an image: %+v", f)
			}
		case strings.Join(names, "\n") != strings.Join(want[min(k, 1)], "\n"):
			t.Errorf("frame %d: %q, want %q", k, names, want[min(k, 1)])
		case f.Image != path || f.Reason != "" || f.Offset != fmt.Sprintf("%#x", []uint64{outer[0], caller[len(caller)-1] + 1}[min(k, 1)]):
			t.Errorf("frame %d: %+v", k, f)
		}
	}
}

func TestJSONKeepsWhatItDoesNotKnow(t *testing.T) {
	const in = `{"version":3,"images":[{"id":"AB-CD","load":4096,"size":0,"path":"/nowhere","vendor":{"x":[1]}}],"host":"h\u0085\u007f",
		"threads":[{"tid":1,"state":"running","frames":[{"address":5000,"registers":{"pc":1e3},"kind":"signal","inline":"old"}],"crashed":true}],"end":null}`
	var got map[string]any
	out := answerJSON(t, local(t), in)
	realtest.Must(t, json.Unmarshal([]byte(out), &got))
	image := got["images"].([]any)[0].(map[string]any)
	thread := got["threads"].([]any)[0].(map[string]any)
	frame := thread["frames"].([]any)[0].(map[string]any)
	for what, pair := range map[string][2]any{
		"version": {got["version"], 3.0}, "host": {got["host"], "h\u0085\u007f"}, "id": {image["id"], "abcd"}, "load": {image["load"], "0x1000"},
		"vendor": {fmt.Sprint(image["vendor"]), "map[x:[1]]"}, "state": {thread["state"], "running"}, "crashed": {thread["crashed"], true},
		"kind": {frame["kind"], "signal"}, "address": {frame["address"], "0x1388"}, "inline": {fmt.Sprint(frame["inline"]), "[]"},
		"registers": {fmt.Sprint(frame["registers"]), "map[pc:1000]"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %v, want %v\n%s", what, pair[0], pair[1], out)
		}
	}
	if _, there := got["end"]; !there || strings.ContainsAny(out, "\u0085\u007f") {
		t.Errorf("%q", out)
	}
}

func TestJSONThreadsMayComeBeforeImages(t *testing.T) {
	path := compile(t, realtest.GCC, "prog.c", source, "-g")
	at := 0x10000000 + codeAddresses(t, path, "main")[0]
	images := fmt.Sprintf(`"images":[{"path":%q,"load":"0x10000000","size":32768}]`, path)
	threads := fmt.Sprintf(`"threads":[{"tid":1,"frames":[{"address":%d,"x":1}],"y":2}]`, at)
	first, last := answerJSON(t, local(t), "{"+images+","+threads+"}"), answerJSON(t, local(t), "{"+threads+","+images+"}")
	if first != last || !strings.Contains(first, `"function":"main"`) {
		t.Errorf("%s\nbut\n%s", first, last)
	}
}

func TestJSONTakesSeveralCaptures(t *testing.T) {
	one := `{"images":[{"load":"0x1000","size":4096,"path":"/nowhere"}],"threads":[{"frames":["0x1234"]}]}`
	two := `{"threads":[{"frames":["0x1234"]}]}`
	out := answerJSON(t, local(t), one+"\n"+two+"\n"+one)
	d := json.NewDecoder(strings.NewReader(out))
	for k := range 3 {
		var p promised
		realtest.Must(t, d.Decode(&p))
		if f := p.Threads[0].Frames[0]; (f.Reason == reasonNoImage) != (k == 1) {
			t.Errorf("capture %d: %+v", k, f)
		}
	}
}

func TestJSONThatIsWrongIsRefusedWithItsPlace(t *testing.T) {
	for in, want := range map[string]string{
		``:                             "EOF",
		`[]`:                           "a capture is an object",
		`{"images":[{"path":"/a"}]}`:   "no load address",
		`{"images":[{"load":-1}]}`:     "images[0]",
		`{"images":[{"load":1.5}]}`:    "whole number",
		`{"images":[{"load":1e3}]}`:    "whole number",
		`{"images":[{"load":"1000"}]}`: "whole number",
		`{"images":[{"load":"0x"}]}`:   "whole number",
		`{"images":[{"load":18446744073709551616}]}`:                           "whole number",
		`{"images":[{"load":"0x10000000000000000"}]}`:                          "whole number",
		`{"images":[{"load":1,"id":"xyz"}]}`:                                   "not hexadecimal",
		`{"images":{}}`:                                                        "not a list",
		`{"threads":[7]}`:                                                      "thread",
		`{"images":[],"threads":[{"frames":[{}]}]}`:                            "no address",
		`{"images":[],"threads":[{"frames":[{"address":1},{"address":"x"}]}]}`: "frames[1]",
		`{"images":[],"threads":[{"frames":[true]}]}`:                          "frames[0]",
		`{"images":[],"threads":[{"frames":[null]}]}`:                          "no address",
		`{"images":[`:     "unexpected EOF",
		`{"images":[]} x`: "invalid character",
	} {
		var b bytes.Buffer
		err := JSON(context.Background(), strings.NewReader(in), &b, local(t))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "JSON at byte") {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
	}
}

func TestJSONThatIsDamagedIsRefusedAtEachPlace(t *testing.T) {
	const in = `{"images":[{"id":"ab","load":4096,"size":1,"path":"/a"}],"threads":[{"tid":1,"name":"n","frames":[{"address":"0x1000"},5]}]}`
	for n := range len(in) {
		err := JSON(context.Background(), strings.NewReader(in[:n]), io.Discard, local(t))
		if err == nil {
			t.Errorf("cut at %d: no error", n)
		}
	}
	for n := range 8 * len(in) {
		b := []byte(in)
		b[n/8] ^= 1 << (n % 8)
		var out bytes.Buffer
		if err := JSON(context.Background(), bytes.NewReader(b), &out, local(t)); err == nil && !json.Valid(out.Bytes()) {
			t.Errorf("%s became %s", b, out.Bytes())
		}
	}
}

// endless is a JSON value without an end.
type endless struct{ start string }

func (e *endless) Read(b []byte) (int, error) {
	n := copy(b, e.start)
	e.start = e.start[n:]
	for k := n; k < len(b); k++ {
		b[k] = 'x'
	}
	return len(b), nil
}

func TestJSONValuesWithoutAnEndAreRefused(t *testing.T) {
	for _, start := range []string{`{"images":[{"path":"`, `{"`, `{"threads":[{"tid":"`, `{"a":"`, `{"threads":[{"frames":[{"x":"`} {
		err := JSON(context.Background(), &endless{start}, io.Discard, local(t))
		if err == nil || !strings.Contains(err.Error(), "one value has more than") {
			t.Errorf("%s: %v", start, err)
		}
	}
}

func TestJSONThreadsThatWaitForImagesAreBounded(t *testing.T) {
	frames := strings.Repeat("1,", 4095) + "1"
	r, w := io.Pipe()
	go func() {
		_, err := io.WriteString(w, `{"threads":[`)
		for err == nil {
			_, err = io.WriteString(w, `{"frames":[`+frames+`]},`)
		}
	}()
	err := JSON(context.Background(), r, io.Discard, local(t))
	realtest.Must(t, r.Close())
	if err == nil || !strings.Contains(err.Error(), "put images first") {
		t.Errorf("%v", err)
	}
}

func TestJSONEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	stopped := errors.New("stopped")
	cancel(stopped)
	if err := JSON(ctx, strings.NewReader(`{"images":[],"threads":[{"frames":[1]}]}`), io.Discard, local(t)); !errors.Is(err, stopped) {
		t.Errorf("%v", err)
	}
}

// bigCapture has many threads of a deep stack through one image.
func bigCapture(t testing.TB, path string, addrs []uint64, frames int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"images":[{"path":%q,"load":"0x10000000","size":65536}],"threads":[`, path)
	for k := range frames {
		if k%100 == 0 {
			if k > 0 {
				b.WriteString("]},")
			}
			fmt.Fprintf(&b, `{"tid":%d,"frames":[`, k)
		} else {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"address":"%#x"}`, 0x10000000+addrs[k*7%len(addrs)])
	}
	b.WriteString("]}]}")
	return b.String()
}

func TestTenThousandFramesAreNamedInOrder(t *testing.T) {
	path := compile(t, realtest.GCC, "prog.c", source, "-g", "-O1")
	addrs := codeAddresses(t, path, "outer", "caller", "main")
	in := bigCapture(t, path, addrs, 10_000)
	start := time.Now()
	got := realtest.DecodeExactly[promised](t, answerJSON(t, local(t), in))
	t.Logf("10,000 frames, the map's making included: %v", time.Since(start))
	n := 0
	for _, thread := range got.Threads {
		for _, f := range thread.Frames {
			if want := fmt.Sprintf("%#x", 0x10000000+addrs[n*7%len(addrs)]); f.Address != want || len(f.Inline) == 0 {
				t.Fatalf("frame %d: %+v, want %s", n, f, want)
			}
			n++
		}
	}
	if n != 10_000 {
		t.Errorf("%d frames", n)
	}
}

func BenchmarkJSON(b *testing.B) {
	path := compile(b, realtest.GCC, "prog.c", source, "-g", "-O1")
	var addrs []uint64
	for a := range uint64(100) {
		addrs = append(addrs, 0x1000+a*4)
	}
	in := bigCapture(b, path, addrs, 10_000)
	source := local(b)
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		realtest.Must(b, JSON(context.Background(), strings.NewReader(in), io.Discard, source))
	}
}

func FuzzJSONAnswersWithJSON(f *testing.F) {
	f.Add([]byte(`{"images":[{"id":"ab","load":4096,"size":1,"path":"/a","x":1}],"threads":[{"tid":1,"name":"n","frames":[{"address":"0x1000","kind":"signal"},5]}],"y":2}`))
	f.Add([]byte(`{"threads":[{"frames":[1]},{"frames":[2],"frames":[3]}],"images":null,"images":[{"load":1},{"load":1,"size":5}]}{}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		var out bytes.Buffer
		if err := JSON(context.Background(), bytes.NewReader(in), &out, nowhere{}); err != nil {
			return
		}
		d := json.NewDecoder(&out)
		for d.More() {
			var v map[string]any
			if err := d.Decode(&v); err != nil {
				t.Fatalf("%q became %q: %v", in, out.Bytes(), err)
			}
		}
		realtest.Must(t, Text(context.Background(), bytes.NewReader(in), io.Discard, nowhere{}))
	})
}

// nowhere has no symbols for any image.
type nowhere struct{}

func (nowhere) Module(_ context.Context, im *Image) (*Module, error) {
	return nil, fmt.Errorf("no symbols for %s", im.Name())
}
