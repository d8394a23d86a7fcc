package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
)

// symbolized has the keys that symbolize --json promises.
type symbolized struct {
	Images []struct {
		ID   string `json:"id"`
		Load string `json:"load"`
		Size int64  `json:"size"`
		Path string `json:"path"`
	} `json:"images"`
	Threads []struct {
		TID    int `json:"tid"`
		Frames []struct {
			Address string      `json:"address"`
			Image   string      `json:"image"`
			Offset  string      `json:"offset"`
			Inline  []callFrame `json:"inline"`
			Reason  string      `json:"reason"`
		} `json:"frames"`
	} `json:"threads"`
}

// capture is a stack of one thread through one image, as JSON.
func capture(image map[string]any, addrs []uint64) string {
	var frames []map[string]any
	for _, a := range addrs {
		frames = append(frames, map[string]any{"address": fmt.Sprintf("%#x", a)})
	}
	text, _ := json.Marshal(map[string]any{"images": []any{image}, "threads": []any{map[string]any{"tid": 7, "frames": frames}}}) // of these there is no error
	return string(text)
}

func TestSymbolizeNamesASlidStackAsLLVMDoes(t *testing.T) {
	path := compileDebug(t, "-pie", "-fPIE")
	im, err := object.Open(path)
	realtest.Must(t, err)
	defer im.Close()
	const load = 0x55d2c0a0f000
	addrs := functionAddresses(t, path)
	var stack []uint64
	for k, a := range addrs {
		if k > 0 {
			a++ // a return address, behind the byte that is asked for
		}
		stack = append(stack, load+a)
	}
	in := capture(map[string]any{"id": im.ID(), "load": fmt.Sprintf("%#x", load), "size": 0x10000, "path": path}, stack)
	want := symbolizerTruth(t, path, addrs)
	for range 2 { // the second finds the map in the store
		a := callreel(in, "symbolize", "--json")
		if a.code != exitDone || a.stderr != "" {
			t.Fatalf("%d %s", a.code, a.stderr)
		}
		got := realtest.DecodeExactly[symbolized](t, a.stdout)
		if got.Images[0].ID != im.ID() || got.Images[0].Load != "0x55d2c0a0f000" || got.Threads[0].TID != 7 || len(got.Threads[0].Frames) != len(stack) {
			t.Fatalf("%+v", got.Images)
		}
		for k, f := range got.Threads[0].Frames {
			var frames []string
			for n := range f.Inline {
				frames = append(frames, f.Inline[n].text())
			}
			if !slices.Equal(frames, want[k]) || f.Image != path || f.Address != fmt.Sprintf("%#x", stack[k]) || f.Offset != fmt.Sprintf("%#x", stack[k]-load) {
				t.Fatalf("frame %d: %+v, want %q", k, f, want[k])
			}
		}
	}
	store, err := defaultStore()
	realtest.Must(t, err)
	// For the content and for the path, but not for all that claims its ID.
	if got, err := filepath.Glob(filepath.Join(store, im.ID()[:2], im.ID()[2:]+".*.symmap")); err != nil || len(got) != 2 {
		t.Errorf("stored as %q, %v", got, err)
	}
}

func TestSymbolizeSaysWhyThereIsNoName(t *testing.T) {
	path := compileDebug(t)
	stripped := filepath.Join(t.TempDir(), "bare")
	realtest.Output(t, ".", realtest.Objcopy, "--strip-all", path, stripped)
	im, err := object.Open(stripped)
	realtest.Must(t, err)
	defer im.Close()
	at := functionAddresses(t, path)[0]
	for _, c := range []struct {
		image map[string]any
		want  []string
	}{
		{map[string]any{"load": 0x1000_0000, "size": 1, "path": path}, []string{"no image at this address"}},
		{map[string]any{"load": 0, "size": 1 << 20, "id": "abcd"}, []string{"ID abcd", "not in the store", "debug folders"}},
		{map[string]any{"load": 0, "size": 1 << 20, "id": "abcd", "path": path}, []string{"ID abcd", path, "refused"}},
		{map[string]any{"load": 0, "size": 1 << 20, "path": "/nowhere/lib.so"}, []string{"/nowhere/lib.so", "no such file"}},
		{map[string]any{"load": 0, "size": 1 << 20, "path": stripped, "id": im.ID()}, []string{"ID " + im.ID(), "bare is stripped"}},
	} {
		a := callreel(capture(c.image, []uint64{at}), "symbolize", "--json")
		frame := realtest.DecodeExactly[symbolized](t, a.stdout).Threads[0].Frames[0]
		for _, want := range c.want {
			if a.code != exitDone || len(frame.Inline) != 0 || !strings.Contains(frame.Reason, want) {
				t.Errorf("%v: %+v, want %q", c.image, frame, want)
			}
		}
	}
	// With the debug file in a folder, the ID is enough.
	dir := t.TempDir()
	debug := filepath.Join(dir, ".build-id", im.ID()[:2], im.ID()[2:]+".debug")
	realtest.Must(t, os.MkdirAll(filepath.Dir(debug), 0o755))
	realtest.Output(t, ".", realtest.Objcopy, "--only-keep-debug", path, debug)
	in := capture(map[string]any{"load": 0, "size": 1 << 20, "id": strings.ToUpper(im.ID())}, []uint64{at})
	a := callreel(in, "symbolize", "--json", "--debug-dir", dir, "--store", filepath.Join(dir, "store"))
	if frame := realtest.DecodeExactly[symbolized](t, a.stdout).Threads[0].Frames[0]; len(frame.Inline) == 0 || frame.Reason != "" || frame.Image != im.ID() {
		t.Errorf("%+v", a)
	}
	if a := callreel(in, "symbolize", "--json", "--store", filepath.Join(dir, "store")); !strings.Contains(a.stdout, `"line"`) {
		t.Errorf("from the store: %+v", a)
	}
}

func TestSymbolizeWritesStacksForPeople(t *testing.T) {
	path := compileDebug(t)
	at := functionAddresses(t, path)[0]
	in := capture(map[string]any{"load": 0x10000000, "size": 0x10000, "path": path}, []uint64{0x10000000 + at, 0x99})
	a := callreel(in, "symbolize")
	checkTerminalSafe(t, a.stdout)
	lines := strings.Split(a.stdout, "\n")
	if a.code != exitDone || lines[0] != "thread 7" || !strings.Contains(lines[1], fmt.Sprintf("0x%016x", 0x10000000+at)) || !strings.Contains(a.stdout, "?? no image at this address") ||
		!strings.Contains(a.stdout, fmt.Sprintf("(prog+%#x)", at)) {
		t.Errorf("%s%s", a.stdout, a.stderr)
	}
}

// A real program prints its own stack; the filter is given nothing but that text.
func TestSymbolizeNamesWhatBacktraceSymbolsPrints(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir := t.TempDir()
	write(t, dir, "prog.c", []byte(`
#include <execinfo.h>
__attribute__((noinline)) void leaf(void)
{
	void *a[64];
	backtrace_symbols_fd(a, backtrace(a, 64), 1);
}
static inline __attribute__((always_inline)) void middle(void) { leaf(); }
__attribute__((noinline)) void root(void)
{
	middle();
	__asm__ volatile("");
}
int main(void)
{
	root();
	return 0;
}
`))
	realtest.Output(t, dir, realtest.GCC, "-g", "-O1", "-pie", "-fPIE", "-o", "prog", "prog.c")
	path := filepath.Join(dir, "prog")
	printed, err := exec.Command(path).Output()
	realtest.Must(t, err)
	log := "before\n" + string(printed) + "after 0x1234\n"
	a := callreel(log, "symbolize")
	for _, want := range []string{
		"] [leaf at " + path + ".c:6]\n", "] [middle at " + path + ".c:8, inlined by root at " + path + ".c:11]\n", "] [main at " + path + ".c:16]\n", "before\n", "after 0x1234\n",
	} {
		if a.code != exitDone || strings.Count(a.stdout, want) != 1 {
			t.Errorf("no %q in\n%s%s", want, a.stdout, a.stderr)
		}
	}
	// The same from a file, as JSON.
	file := write(t, dir, "crash.log", []byte(log))
	got := realtest.DecodeExactly[struct {
		Images  []any `json:"images"`
		Threads []struct {
			Frames []struct {
				Address, Image, Offset, Reason string
				Inline                         []callFrame
			}
		}
	}](t, callreel("", "symbolize", "--json", file).stdout)
	if len(got.Threads) != 1 || len(got.Threads[0].Frames) < 3 || got.Threads[0].Frames[1].Inline[1].Function != "root" {
		t.Errorf("%+v", got)
	}
}

func TestSymbolizeFiltersByGivenImages(t *testing.T) {
	path := compileDebug(t, "-pie", "-fPIE")
	at := functionAddresses(t, path)[0]
	name := strings.Split(symbolizerTruth(t, path, []uint64{at})[0][0], " ")[0]
	for arg, base := range map[string]uint64{path: 0, path + "@0x7f0000000000": 0x7f0000000000, path + "@7f0000000000": 0x7f0000000000} {
		in := fmt.Sprintf("pc %#x, sp 0x7fff00001234\n", base+at)
		a := callreel(in, "symbolize", "--image", arg)
		if a.code != exitDone || !strings.HasPrefix(a.stdout, fmt.Sprintf("pc %#x [", base+at)) || !strings.HasSuffix(a.stdout, "], sp 0x7fff00001234\n") || name == "" {
			t.Errorf("%s: %+v", arg, a)
		}
	}
	// Text of another machine names the file by another path.
	in := fmt.Sprintf("/opt/app/prog(+%#x) [0x55d2c0a0f123]\n", at+1)
	if a := callreel(in, "symbolize", "--image", path); !strings.Contains(a.stdout, "] [") || strings.Contains(a.stdout, "no symbols") {
		t.Errorf("%+v", a)
	}
}

func TestSymbolizeTellsCapturesFromText(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for in, text := range map[string]bool{
		`{"images":[],"threads":[]}`: false, "  \n{\n \"threads\": []}\n": false, `{}`: false,
		"": true, "hello": true, "{\"level\":\"info\"}\n{\"level\":\"info\"}\n": true, "[1]\n": true, "\n\n": true,
	} {
		a := callreel(in, "symbolize")
		if a.code != exitDone || (a.stdout == in) != text {
			t.Errorf("%q: %+v", in, a)
		}
	}
	a := callreel(`{"images":[{}]}`, "symbolize", "--json")
	if a.code != exitFailed || !strings.Contains(a.stderr, "images[0]") {
		t.Errorf("%+v", a)
	}
	if a := callreel(`{"images":[]}`, "symbolize", "--image", os.Args[0]); a.code != exitUsage || !strings.Contains(a.stderr, "--image") {
		t.Errorf("%+v", a)
	}
	t.Setenv("DEBUGINFOD_URLS", "ftp://nowhere")
	if a := callreel("", "symbolize"); a.code != exitUsage || !strings.Contains(a.stderr, "DEBUGINFOD_URLS") {
		t.Errorf("%+v", a)
	}
}

func TestTenThousandFramesAreSymbolizedInOneGo(t *testing.T) {
	path := compileDebug(t)
	addrs := functionAddresses(t, path)
	var stack []uint64
	for k := range 10_000 {
		stack = append(stack, 0x10000000+addrs[k*31%len(addrs)])
	}
	in := capture(map[string]any{"load": 0x10000000, "size": 0x10000, "path": path}, stack)
	start := time.Now()
	a := callreel(in, "symbolize", "--json")
	t.Logf("%v", time.Since(start))
	if got := realtest.DecodeExactly[symbolized](t, a.stdout); a.code != exitDone || len(got.Threads[0].Frames) != 10_000 {
		t.Errorf("code %d", a.code)
	}
}
