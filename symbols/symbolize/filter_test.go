package symbolize

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
)

// backtracing prints its maps, its stack, and its stack in a signal handler.
const backtracing = `
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static void print(void) { void *a[64]; backtrace_symbols_fd(a, backtrace(a, 64), 1); }
static inline __attribute__((always_inline)) void middle(void) { print(); }
__attribute__((noinline)) void work(int depth) { if (depth) work(depth - 1); else middle(); __asm__ volatile(""); }
static void handler(int s) { write(1, "signal\n", 7); print(); _exit(0); }
__attribute__((noinline)) int crash(volatile int *p) { return *p; }
int main(int argc, char **argv)
{
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "r");
	if (argc > 1)
		while (fgets(line, sizeof line, maps))
			fputs(line, stdout);
	fflush(stdout);
	work(2);
	signal(SIGSEGV, handler);
	return crash(0);
}
`

// filtered runs Filter over a text.
func filtered(t *testing.T, source Source, in string, images ...*Image) string {
	t.Helper()
	var b bytes.Buffer
	realtest.Must(t, Filter(context.Background(), strings.NewReader(in), &b, source, images...))
	return b.String()
}

// named are the names that were put behind the lines of an image's frames.
func named(text, image string) []string {
	var names []string
	for line := range strings.Lines(text) {
		if _, after, ok := strings.Cut(strings.TrimSpace(line), "] ["); ok && strings.HasPrefix(line, image) {
			names = append(names, strings.TrimSuffix(after, "]"))
		}
	}
	return names
}

func TestBacktraceThatAProgramPrintsOfItselfIsNamed(t *testing.T) {
	for _, c := range []struct {
		what  string
		flags []string
		args  []string // any makes it print its maps first
	}{
		{"maps in the text", []string{"-pie", "-fPIE"}, []string{"maps"}},
		{"offsets only", []string{"-pie", "-fPIE"}, nil},
		{"exported symbols", []string{"-pie", "-fPIE", "-rdynamic"}, nil},
		{"not relocated", []string{"-no-pie", "-fno-pie"}, nil},
	} {
		t.Run(c.what, func(t *testing.T) {
			path := compile(t, realtest.GCC, "prog.c", backtracing, append([]string{"-g", "-O1"}, c.flags...)...)
			printed, err := exec.Command(path, c.args...).Output()
			realtest.Must(t, err)
			got := named(filtered(t, local(t), string(printed)), path)
			line := func(code string) int { return strings.Count(backtracing[:strings.Index(backtracing, code)], "\n") + 1 }
			at := func(function, code string) string { return fmt.Sprintf("%s at %s.c:%d", function, path, line(code)) }
			want := []string{
				at("print", "static void print"),
				at("middle", "static inline") + ", inlined by " + at("work", "work(depth - 1)"), at("work", "work(depth - 1)"), at("work", "work(depth - 1)"),
				at("main", "\twork(2)"), "_start",
				at("print", "static void print"), at("handler", "static void handler"),
				at("crash", "int crash"), // its first instruction, where the signal came
				at("main", "return crash(0)"), "_start",
			}
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("%s\ngot\n%s\nwant\n%s", printed, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// example is a small program, and where its parts are.
type example struct {
	path          string
	image         *Image // loaded at 0x7f0000000000
	main, outer   uint64 // addresses of the functions there
	mainAt, chain string // what stands there
}

func makeExample(t *testing.T) example {
	t.Helper()
	path := compile(t, realtest.GCC, "prog.c", source, "-g", "-O1")
	im, err := object.Open(path)
	realtest.Must(t, err)
	defer im.Close()
	e := example{path: path, image: Describe(im)}
	e.image.Load = 0x7f0000000000
	main, outer := codeAddresses(t, path, "main")[0], codeAddresses(t, path, "outer")[0]
	e.main, e.outer = e.image.Load+main, e.image.Load+outer
	answers := truth(t, path, []uint64{main, outer})
	text := func(frames []string) string {
		return "[" + strings.ReplaceAll(strings.Join(frames, ", inlined by "), " "+path, " at "+path) + "]"
	}
	e.mainAt, e.chain = text(answers[0]), text(answers[1])
	return e
}

func TestAddressesInAnyTextAreNamedInPlace(t *testing.T) {
	e := makeExample(t)
	in := fmt.Sprintf("pc=%#x, 0x1000 and %016x; %x. not x%x nor %#xg or %#x1\n\r\n\n  tail %#x", e.main, e.outer, e.main, e.main, e.main, e.main, e.outer)
	want := fmt.Sprintf("pc=%#x %s, 0x1000 and %016x %s; %x %s. not x%x nor %#xg or %#x1\n\r\n\n  tail %#x %s",
		e.main, e.mainAt, e.outer, e.chain, e.main, e.mainAt, e.main, e.main, e.main, e.outer, e.chain)
	if got := filtered(t, local(t), in, e.image); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func TestStacksOfManyToolsAreNamed(t *testing.T) {
	e := makeExample(t)
	after := codeAddresses(t, e.path, "outer")
	ret := e.image.Load + after[len(after)-1] + 1 // behind the last byte of outer
	last := "[" + strings.ReplaceAll(strings.Join(truth(t, e.path, after[len(after)-1:])[0], ", inlined by "), " "+e.path, " at "+e.path) + "]"
	offset := e.main - e.image.Load
	end := e.image.Load + e.image.Size - 1
	for what, c := range map[string]struct{ in, want string }{
		"gdb": {
			fmt.Sprintf("#0  0x%016x in ?? ()\n#1  0x%016x in ?? ()\n    at x\n#2  <signal handler called>\n#3  0x%016x in ?? ()\n", e.main, ret, e.main),
			fmt.Sprintf("#0  0x%016x %s in ?? ()\n#1  0x%016x %s in ?? ()\n    at x\n#2  <signal handler called>\n#3  0x%016x %s in ?? ()\n",
				e.main, e.mainAt, ret, last, e.main, e.mainAt),
		},
		"addresses": {
			fmt.Sprintf("%#x\n%#x\n%#x interrupted\n\n%#x\n", e.main, ret, e.main, e.main),
			fmt.Sprintf("%#x %s\n%#x %s\n%#x %s interrupted\n\n%#x %s\n", e.main, e.mainAt, ret, last, e.main, e.mainAt, e.main, e.mainAt),
		},
		"sanitizer": {
			fmt.Sprintf("    #0 0x1 (%s+%#x) (BuildId: %s)\n    #1 0x2  (%s+%#x)\n", e.path, offset, e.image.ID, e.path, offset),
			fmt.Sprintf("    #0 0x1 %s (%s+%#x) (BuildId: %s)\n    #1 0x2 %s  (%s+%#x)\n", e.mainAt, e.path, offset, e.image.ID, e.mainAt, e.path, offset),
		},
		"systemd": {
			fmt.Sprintf("Module %s with build-id %s\nStack trace of thread 7:\n#0  0x1 n/a (%s + %#x)\n#1  0x2 n/a (%s + %#x)\n",
				e.path, e.image.ID, e.path, offset, e.path, after[len(after)-1]+1),
			fmt.Sprintf("Module %s with build-id %s\nStack trace of thread 7:\n#0  0x1 %s n/a (%s + %#x)\n#1  0x2 %s n/a (%s + %#x)\n",
				e.path, e.image.ID, e.mainAt, e.path, offset, last, e.path, after[len(after)-1]+1),
		},
		"Android": {
			fmt.Sprintf("  #00 pc %016x  %s (main+0)\n", offset, e.path),
			fmt.Sprintf("  #00 pc %016x %s  %s (main+0)\n", offset, e.mainAt, e.path),
		},
		"Linux": {
			fmt.Sprintf("[ 1.0] Call Trace:\n[ 1.0]  [<%016x>] f+0x1/0x2\n[ 1.0] ? g+0x1/0x2 [m]\n", ret),
			fmt.Sprintf("[ 1.0] Call Trace:\n[ 1.0]  [<%016x>] %s f+0x1/0x2\n[ 1.0] ? g+0x1/0x2 [m]\n", ret, last),
		},
		"Apple, whose images come last": {
			fmt.Sprintf("Incident Identifier: X\n\nThread 0 Crashed:\n0   prog  \t0x%016x 0x1 + 2\n1   prog  \t0x%016x 0x1 + 2\n\nBinary Images:\n%#x - %#x prog x86_64 <%s> %s\n\nEOF\n",
				e.main, ret, e.image.Load, end, "", e.path),
			fmt.Sprintf("Incident Identifier: X\n\nThread 0 Crashed:\n0   prog  \t0x%016x %s 0x1 + 2\n1   prog  \t0x%016x %s 0x1 + 2\n\nBinary Images:\n%#x - %#x prog x86_64 <%s> %s\n\nEOF\n",
				e.main, e.mainAt, ret, last, e.image.Load, end, "", e.path),
		},
	} {
		t.Run(what, func(t *testing.T) {
			images := []*Image{e.image}
			if strings.HasPrefix(what, "Apple") {
				images = nil
			}
			if got := filtered(t, local(t), c.in, images...); got != c.want {
				t.Errorf("%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestImagesOfTheTextAreUsedForWhatFollows(t *testing.T) {
	e := makeExample(t)
	for what, line := range map[string]string{
		"maps":        fmt.Sprintf("%x-%x r-xp 00000000 08:01 7 %s", e.image.Load, e.image.Load+0x8000, e.path),
		"simple form": fmt.Sprintf("image %#x - %s %s", e.image.Load, e.image.ID, e.path),
	} {
		in := fmt.Sprintf("%#x\n%s\n%#x\n", e.main, line, e.main)
		if got, want := filtered(t, local(t), in), fmt.Sprintf("%#x\n%s\n%#x %s\n", e.main, line, e.main, e.mainAt); got != want {
			t.Errorf("%s: %s\nwant\n%s", what, got, want)
		}
	}
}

func TestFilterSaysWhyAFrameHasNoName(t *testing.T) {
	e := makeExample(t)
	in := fmt.Sprintf("image 0x10000000 0x1000 - /nowhere/lib.so\n0x10000010\n0x20000000\nsee 0x10000010\n#1 %#x in ?? ()\n", e.image.Load+1)
	lines := strings.Split(filtered(t, local(t), in, e.image), "\n")
	for k, want := range map[int]string{1: "/nowhere/lib.so", 2: reasonNoImage, 4: "no"} {
		if !strings.Contains(lines[k], " [") || !strings.Contains(lines[k], want) {
			t.Errorf("line %d: %q, want %q", k, lines[k], want)
		}
	}
	if lines[3] != "see 0x10000010" {
		t.Errorf("%q", lines[3])
	}
}

func TestFilterAnswersBeforeItAsksForMore(t *testing.T) {
	e := makeExample(t)
	r, w := io.Pipe()
	answers, out := io.Pipe()
	done := make(chan error, 1)
	source := local(t)
	go func() {
		err := Filter(context.Background(), r, out, source, e.image)
		out.Close()
		done <- err
	}()
	want := fmt.Sprintf("at %#x %s\n", e.main, e.mainAt)
	buf := make([]byte, len(want)+100)
	for range 3 {
		if _, err := fmt.Fprintf(w, "at %#x\n", e.main); err != nil {
			t.Fatal(err)
		}
		n, err := answers.Read(buf)
		if err != nil || string(buf[:n]) != want {
			t.Fatalf("%q, %v; want %q", buf[:n], err, want)
		}
	}
	realtest.Must(t, w.Close())
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestFilterLetsEverythingElseThrough(t *testing.T) {
	long := strings.Repeat("0x1000 ", 40_000)
	for _, in := range []string{
		"", "\n", "no newline", long, long + "\n" + long, "raw \xff\x1b bytes\r\n", "Incident Identifier: held\nto the end", strings.Repeat("\n", 70_000),
		"Incident Identifier: 1\nBinary Images:\n" + long + "\nafter\n", "Binary Images:\n0x1 - 0x2 a <> /a\n0x5\n",
	} {
		if got := filtered(t, nowhere{}, in); got != in && !strings.Contains(in, "0x1 - 0x2") {
			t.Errorf("%d bytes became %d: %.100q", len(in), len(got), got)
		}
	}
}

func TestFilterHoldsABoundedReport(t *testing.T) {
	line := strings.Repeat("x", 1000) + "\n"
	r, w := io.Pipe()
	answers, out := io.Pipe()
	go func() {
		_ = Filter(context.Background(), r, out, nowhere{}) // ends when the test closes its input
		out.Close()
	}()
	go func() {
		_, err := io.WriteString(w, "Incident Identifier: X\n")
		for n := 0; err == nil && n < 2*maxReport; n += len(line) {
			_, err = io.WriteString(w, line)
		}
	}()
	buf := make([]byte, 100)
	if _, err := io.ReadFull(answers, buf); err != nil || !strings.HasPrefix(string(buf), "Incident") {
		t.Errorf("%q, %v", buf, err)
	}
	realtest.Must(t, r.Close())
	realtest.Must(t, answers.Close())
}

func TestNamesInTextAreSafeForATerminal(t *testing.T) {
	for _, name := range []string{"\x1b[2J", "a\rb", "line\nfeed", "\xff", "\u202egnp", "\u009b", strings.Repeat("x", 1<<20)} {
		n := Named{Calls: []Call{{Function: name, File: name, Line: 1}, {Function: name}}}
		said := note(&n) + note(&Named{Reason: name})
		if !utf8.ValidString(said) || strings.IndexFunc(said, func(r rune) bool { return !unicode.IsPrint(r) }) >= 0 || len(said) > 5*maxName {
			t.Errorf("%.80q became %d bytes: %.80q", name, len(said), said)
		}
	}
}

func TestTextBecomesJSON(t *testing.T) {
	e := makeExample(t)
	in := fmt.Sprintf(`%x-%x r-xp 00000000 08:01 7 %s
Thread 12 (LWP 7):
#0  f () at f.c:3
#1  0x%016x in ?? ()
Thread 13 (LWP 8):
#0  0x%016x in ?? ()
No symbol table info available.
#1  <signal handler called>
#2  0x%016x in ?? ()

%#x
0x10
text
%#x
`, e.image.Load, e.image.Load+e.image.Size, e.path, e.outer+1, e.main, e.main, e.main, e.main)
	var b bytes.Buffer
	realtest.Must(t, TextJSON(context.Background(), strings.NewReader(in), &b, local(t)))
	got := realtest.DecodeExactly[promised](t, b.String())
	var stacks []string
	for _, th := range got.Threads {
		stack := string(th.TID) + ":"
		for _, f := range th.Frames {
			name := f.Reason
			if len(f.Inline) > 0 {
				name = f.Inline[len(f.Inline)-1].Function
			}
			stack += " " + strings.ReplaceAll(name, " ", "_")
		}
		stacks = append(stacks, stack)
	}
	want := []string{"12: outer", "13: main main", ": main no_image_at_this_address", ": main"}
	if strings.Join(stacks, "\n") != strings.Join(want, "\n") || len(got.Images) != 1 {
		t.Errorf("%q, want %q\n%s", stacks, want, b.String())
	}
}

func TestCaptureBecomesText(t *testing.T) {
	e := makeExample(t)
	in := fmt.Sprintf(`{"images":[{"path":%q,"load":%d,"size":%d}],"threads":[{"tid":7,"name":"m\u001bain","frames":[%d,16]},{"frames":[]}]}`,
		e.path, e.image.Load, e.image.Size, e.outer)
	var b bytes.Buffer
	realtest.Must(t, Text(context.Background(), strings.NewReader(in), &b, local(t)))
	lines := strings.Split(b.String(), "\n")
	if len(lines) != 7 || lines[0] != `thread 7 m\x1bain` || !strings.Contains(lines[1], "inner at") || !strings.HasSuffix(lines[1], "(inlined)") ||
		!strings.Contains(lines[2], "outer at") || !strings.HasSuffix(lines[2], fmt.Sprintf("(prog+%#x)", e.outer-e.image.Load)) ||
		!strings.Contains(lines[3], "?? no image") || lines[5] != "thread" {
		t.Errorf("%s", b.String())
	}
}

func TestTextWithTooManyFramesIsRefusedAsJSON(t *testing.T) {
	r, w, err := os.Pipe()
	realtest.Must(t, err)
	defer r.Close()
	go func() {
		line := []byte(strings.Repeat("0x1000\n", 1000))
		for n := 0; n <= maxDeferred; n += 1000 {
			if _, err := w.Write(line); err != nil {
				break
			}
		}
		w.Close()
	}()
	if err := TextJSON(context.Background(), r, io.Discard, nowhere{}); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("%v", err)
	}
}

func FuzzFilterKeepsText(f *testing.F) {
	f.Add([]byte("hello 0x1000\n#1 0x1000 in f\n"))
	f.Add([]byte("Incident Identifier: X\n0   p   0x0000000000001000 f + 1\nBinary Images:\n0x1000 - 0x2000 p <ab> /p\n\n"))
	f.Add([]byte("1000-2000 r-xp 0 0:0 0 /p\n/p(+0x1) [0x1001]\n[<0000000000001001>] f\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var out bytes.Buffer
		realtest.Must(t, Filter(context.Background(), bytes.NewReader(in), &out, nowhere{}))
		// What was put in stands in brackets behind a blank: the rest is what came in, in order.
		rest := out.Bytes()
		for _, c := range in {
			k := bytes.IndexByte(rest, c)
			if k < 0 {
				t.Fatalf("%q became %q", in, out.Bytes())
			}
			rest = rest[k+1:]
		}
		if bytes.Count(in, []byte("\n")) != bytes.Count(out.Bytes(), []byte("\n")) {
			t.Fatalf("%q became %q", in, out.Bytes())
		}
		realtest.Must(t, TextJSON(context.Background(), bytes.NewReader(in), io.Discard, nowhere{}))
	})
}
