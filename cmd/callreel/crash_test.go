package main

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
)

// promisedCrash has exactly the keys of crash --json.
type promisedCrash struct {
	crashHead
	Images  []crashImage  `json:"images"`
	Threads []crashThread `json:"threads"`
}

// crashReportOf is a tombstone with a stack in a program, whose addresses are link addresses
// inside of calls.
func crashReportOf(id string, addrs []uint64) string {
	var b strings.Builder
	b.WriteString("*** *** *** *** *** ***\nABI: 'x86_64'\npid: 7, tid: 8, name: wor\x1bker  >>> prog <<<\n" +
		"signal 11 (SIGSEGV), code 1 (SEGV_MAPERR), fault addr 0xc\n    rax 0000000000000001  rbx 0000000000000002\n\nbacktrace:\n")
	for k, a := range addrs {
		fmt.Fprintf(&b, "      #%02d pc %016x  /data/app/prog (BuildId: %s)\n", k, a, id)
	}
	return b.String()
}

func TestCrashNamesAReportByTheImageWithItsID(t *testing.T) {
	path := compileDebug(t)
	im, err := object.Open(path)
	realtest.Must(t, err)
	defer im.Close()
	addrs := functionAddresses(t, path)
	dir := t.TempDir()
	report := filepath.Join(dir, "tombstone_00")
	realtest.Must(t, os.WriteFile(report, []byte(crashReportOf(im.ID(), addrs)), 0o600))
	realtest.Must(t, os.Symlink(path, filepath.Join(dir, "prog")))

	a := callreel("", "crash", report, "--debug-dir", dir, "--json")
	if a.code != exitDone || a.stderr != "" {
		t.Fatalf("%d %s", a.code, a.stderr)
	}
	got := realtest.DecodeExactly[promisedCrash](t, a.stdout)
	if got.Format != "tombstone" || got.Reason != "SIGSEGV (SEGV_MAPERR) at 0xc" || got.More.Address != "0xc" || got.PID != 7 || len(got.Missing) != 0 {
		t.Errorf("%+v", got.crashHead)
	}
	if len(got.Images) != 1 || !got.Images[0].Found || !got.Images[0].Used || got.Images[0].ID != im.ID() {
		t.Errorf("images are %+v", got.Images)
	}
	th := got.Threads[0]
	if !th.Crashed || th.TID != 8 || th.End != "report" || th.Registers["rbx"] != "0x2" {
		t.Errorf("the thread is %+v", th)
	}
	want := symbolizerTruth(t, path, addrs)
	k := 0
	for n := range addrs {
		var frames []string
		for ; k < len(th.Frames); k++ {
			f := &th.Frames[k]
			frames = append(frames, fmt.Sprintf("%s %s:%d", f.Linkage, f.File, f.Line))
			if f.By != "report" || f.Image != "/data/app/prog" || f.Address != fmt.Sprintf("%#x", addrs[n]) {
				t.Errorf("frame %d is %+v", k, f)
			}
			if !f.Inlined {
				k++
				break
			}
		}
		if !slices.Equal(frames, want[n]) {
			t.Errorf("address %d: %q, want %q", n, frames, want[n])
		}
	}

	a = callreel("", "crash", report) // without its image
	if a.code != exitDone || !strings.Contains(a.stdout, im.ID()) || !strings.Contains(a.stdout, "Missing") {
		t.Errorf("%d %s%s", a.code, a.stdout, a.stderr)
	}
	if strings.Contains(a.stdout, "\x1b") {
		t.Errorf("control characters of the report are shown: %q", a.stdout)
	}
}

func TestCrashReadsStandardInputAndTellsRecursionOnce(t *testing.T) {
	addrs := []uint64{0x10}
	for range 100 {
		addrs = append(addrs, 0x20, 0x30)
	}
	a := callreel(crashReportOf("00112233445566778899", append(addrs, 0x40)), "crash", "-")
	if a.code != exitDone || !strings.Contains(a.stdout, "(the last 2 calls 99 times more)\n#201 ") || strings.Count(a.stdout, "\n#") != 4 {
		t.Errorf("%d %s%s", a.code, a.stdout, a.stderr)
	}
	a = callreel("hello\n", "crash", "-")
	if a.code != exitFailed || !strings.Contains(a.stderr, "standard input") {
		t.Errorf("%d %s", a.code, a.stderr)
	}
}

func TestCrashRefusesWhatIsNoReport(t *testing.T) {
	path := filepath.Join(t.TempDir(), "text")
	realtest.Must(t, os.WriteFile(path, []byte("hello\n"), 0o600))
	for _, file := range []string{path, path + ".none", filepath.Dir(path)} {
		if a := callreel("", "crash", file); a.code != exitFailed || a.stdout != "" || !strings.Contains(a.stderr, file) {
			t.Errorf("%s: code %d, stdout %q, stderr %q", file, a.code, a.stdout, a.stderr)
		}
	}
}

// A core whose program is gone is walked with what a debuginfod server has.
func TestCrashFetchesTheImagesOfStacks(t *testing.T) {
	path := compileDebug(t)
	im, err := object.Open(path)
	realtest.Must(t, err)
	defer im.Close()
	program, err := os.ReadFile(path)
	realtest.Must(t, err)
	asked := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		if r.URL.Path != "/buildid/"+im.ID()+"/executable" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(program) // to a client that may have gone
	}))
	defer server.Close()
	t.Setenv("DEBUGINFOD_URLS", server.URL)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	addrs := functionAddresses(t, path)
	dump := filepath.Join(t.TempDir(), "dump")
	realtest.Must(t, os.WriteFile(dump, minidumpAt(im, addrs[0]), 0o600))
	a := callreel("", "crash", dump, "--json")
	if a.code != exitDone || a.stderr != "" {
		t.Fatalf("%d %s", a.code, a.stderr)
	}
	got := realtest.DecodeExactly[promisedCrash](t, a.stdout)
	if len(got.Images) != 1 || !got.Images[0].Found || got.Images[0].File == "" || len(got.Missing) != 0 || got.Threads[0].Frames[0].Function == "" || len(got.Code) == 0 {
		t.Errorf("images %+v, frames %+v; asked for %d", got.Images, got.Threads[0].Frames, len(asked))
	}
}

// minidumpAt is a minidump of one thread that stands at a link address of an image, which is
// loaded where it is linked to.
func minidumpAt(im *object.Image, pc uint64) []byte {
	le := binary.LittleEndian
	const system, context, id, name, threads, modules, exception, directory, end = 32, 88, 1428, 1460, 1480, 1532, 1648, 1816, 1864
	b := make([]byte, end)
	copy(b, "MDMP")
	le.PutUint32(b[4:], 0xa793)
	le.PutUint32(b[8:], 4)
	le.PutUint32(b[12:], directory)
	le.PutUint16(b[system:], 9) // x86-64
	le.PutUint32(b[system+20:], 0x8201)
	le.PutUint64(b[context+152:], 0x7fff0000)
	le.PutUint64(b[context+248:], pc)
	copy(b[id:], "LEpB")
	copy(b[id+4:], im.BuildID())
	le.PutUint32(b[name:], 8)
	copy(b[name+4:], "p\x00r\x00o\x00g\x00")
	le.PutUint32(b[threads:], 1)
	le.PutUint32(b[threads+4:], 7)
	le.PutUint64(b[threads+28:], 0x7fff0000)
	le.PutUint32(b[threads+44:], 1232)
	le.PutUint32(b[threads+48:], context)
	le.PutUint32(b[modules:], 1)
	m := b[modules+4:]
	le.PutUint64(m, im.BaseAddr())
	le.PutUint32(m[8:], 1<<20)
	le.PutUint32(m[20:], name)
	le.PutUint32(m[76:], uint32(4+len(im.BuildID())))
	le.PutUint32(m[80:], id)
	le.PutUint32(b[exception:], 7)
	le.PutUint32(b[exception+8:], 11)
	le.PutUint32(b[exception+160:], 1232)
	le.PutUint32(b[exception+164:], context)
	for k, s := range [][3]uint32{{7, 56, system}, {3, 52, threads}, {4, 112, modules}, {6, 168, exception}} {
		le.PutUint32(b[directory+12*k:], s[0])
		le.PutUint32(b[directory+12*k+4:], s[1])
		le.PutUint32(b[directory+12*k+8:], s[2])
	}
	return b
}
