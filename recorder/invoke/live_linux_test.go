package invoke_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// stands builds the program once.
var stands = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "invoke-test")
	if err != nil {
		return "", err
	}
	library := filepath.Join(dir, "lib.c")
	if err := os.WriteFile(library, []byte("void stand(void);\n__attribute__((constructor)) static void begin(void) { stand(); }\n"), 0o600); err != nil {
		return "", err
	}
	for _, args := range [][]string{
		{"g++", "-O2", "-g", "-c", "-o", dir + "/throws.o", "testdata/throws.cc"},
		{"gcc", "-O2", "-g", "-Wall", "-Wextra", "-fno-builtin-malloc", "-rdynamic", "-pthread", "-o", dir + "/stands", "testdata/stands.c", dir + "/throws.o", "-ldl", "-lstdc++"},
		{"gcc", "-shared", "-fPIC", "-o", dir + "/lib.so", library},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			return string(out), err
		}
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := stands(); err == nil {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// start starts the program, which stands somewhere then.
func start(t *testing.T, how string) *realtest.Proc {
	t.Helper()
	realtest.Need(t, realtest.GCC, realtest.GXX, realtest.LivePtrace)
	dir, err := stands()
	if err != nil {
		t.Fatalf("%v\n%s", err, dir)
	}
	p := realtest.Start(t, dir+"/stands", how, dir+"/lib.so")
	return p
}

// finish has the program go on, and checks that it ends well.
func finish(t *testing.T, p *realtest.Proc) {
	t.Helper()
	p.Say("")
	if code := p.Wait(); code != 0 {
		t.Errorf("the program ended with %d: %s", code, p.Stderr())
	}
	if out := strings.Join(p.Stdout(), "\n"); !strings.HasSuffix(out, "ok") || strings.Contains(out, "wrong") {
		t.Errorf("the program said %q", out)
	}
}

// called is what --json says of a call.
type called struct {
	TID   int    `json:"tid"`
	Type  string `json:"type"`
	Value any    `json:"value"`
}

// call runs callreel call, which has to wait for the machine but not for a point that never comes.
func call(t *testing.T, p *realtest.Proc, text string, args ...string) realtest.Result {
	t.Helper()
	return realtest.Callreel(t, append([]string{"call", "-p", strconv.Itoa(p.Pid()), "--timeout", "30s", "--wait", "10s", text}, args...)...)
}

// only are the flags for the first thread alone, where there is no use in waiting.
func only(p *realtest.Proc) []string {
	return []string{"--tid", strconv.Itoa(p.Pid()), "--wait", "100ms"}
}

func TestCallsAreRefusedWhereLocksMayBeHeld(t *testing.T) {
	for _, c := range []struct{ how, why string }{
		{"poll", ""}, {"qsort", ""}, {"threads", ""}, {"spin", ""},
		{"malloc", "allocator"}, {"stdio", "fgets"}, {"signal", "signal"}, {"atfork", "C library"}, {"exit", "exit"}, {"dlopen", "C library"},
		{"iterate", "dl_iterate_phdr"}, {"once", "C library"}, {"mutex", "pthread_mutex_lock"},
	} {
		t.Run(c.how, func(t *testing.T) {
			p := start(t, c.how)
			args := only(p)
			if c.why == "" {
				args = append(args[:2], "--json")
			}
			r := call(t, p, "malloc_trim(0)", args...)
			switch {
			case c.why == "" && r.Code != 0:
				t.Errorf("code %d: %s", r.Code, r.Stderr)
			case c.why == "":
				if got := realtest.Decode[called](t, r.Stdout); got.TID != p.Pid() || got.Type != "int" {
					t.Errorf("%s", r.Stdout)
				}
			case r.Code != 3 || !strings.Contains(r.Stderr, c.why):
				t.Errorf("code %d: %s; want a refusal for %s", r.Code, r.Stderr, c.why)
			}
			finish(t, p)
		})
	}
}

func TestResultsHaveTheTypesOfDebugInformation(t *testing.T) {
	p := start(t, "poll")
	for text, want := range map[string]string{
		`eight(-1, 2, 3, 4, "five5", 6, 7, "eighthhh")`: "87654319 (0x5397faf)",
		"half(5)": "2.5", "third(6.0)": "2", `greet("x\ty")`: `"hello x\ty"`, "negative()": "-5 (0xfffffffb)", "small()": "200 (0xc8)", "nothing()": "returned",
		`strlen("abc")`: "3 (0x3)", `getenv("NO_SUCH_VARIABLE")`: "NULL", "stands:negative()": "-5 (0xfffffffb)", `throws("nobody catches", 0)`: "1 (0x1)",
		"__errno_location()": "0x",
	} {
		if r := call(t, p, text); r.Code != 0 || !strings.HasPrefix(r.Stdout, want) {
			t.Errorf("%s: code %d, %s%s; want %s", text, r.Code, r.Stdout, r.Stderr, want)
		}
	}
	for text, want := range map[string]int{
		"big()": 3, "hidden(1)": 3, "fork()": 3, "negativ()": 2, "eight(1)": 2, "half(NULL, 1)": 2, `half("a")`: 2, "nosuch:negative()": 2, "greet(&nosuch)": 2,
		`throws("nobody catches", 1)`: 1, "strlen(1)": 1, "_exits()": 1,
	} {
		if r := call(t, p, text); r.Code != want || r.Stderr == "" {
			t.Errorf("%s: code %d, %s%s; want code %d", text, r.Code, r.Stdout, r.Stderr, want)
		}
	}
	finish(t, p)
}

func TestAnOverdueCallIsPutBackOnlyWhereItHoldsNoLock(t *testing.T) {
	p := start(t, "threads")
	tid := strconv.Itoa(p.Pid())
	if r := call(t, p, "sleep(3600)", "--timeout", "50ms", "--tid", tid); r.Code != 1 || !strings.Contains(r.Stderr, "put back") {
		t.Errorf("sleep: code %d, %s", r.Code, r.Stderr)
	}
	if r := call(t, p, "getpid()"); r.Code != 0 || !strings.HasPrefix(r.Stdout, tid) {
		t.Errorf("getpid after that: code %d, %s%s", r.Code, r.Stdout, r.Stderr)
	}
	// It waits for a line with stdin's lock held; the other thread waits for the same line in poll.
	if r := call(t, p, "asks()", "--timeout", "50ms", "--tid", tid); r.Code != 1 || !strings.Contains(r.Stderr, "left in it") {
		t.Errorf("asks: code %d, %s", r.Code, r.Stderr)
	}
	if r := call(t, p, "getpid()", only(p)...); r.Code != 3 {
		t.Errorf("a call in a thread that was left in one: code %d, %s", r.Code, r.Stderr)
	}
	r := call(t, p, "getpid()", "--json")
	if r.Code != 0 || realtest.Decode[called](t, r.Stdout).TID == p.Pid() {
		t.Errorf("a call in the other thread: code %d, %s%s", r.Code, r.Stdout, r.Stderr)
	}
	p.Say("a line")
	finish(t, p)
}

func TestProgramsThatCannotBeCalledIntoAreRefused(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace, realtest.GCC)
	source := filepath.Join(t.TempDir(), "static.c")
	realtest.Must(t, os.WriteFile(source, []byte("#include <stdio.h>\nint main(void) { puts(\"ready\"); fflush(stdout); return getchar() == 0; }\n"), 0o600))
	static := source[:len(source)-2]
	if out, err := exec.Command("gcc", "-static", "-o", static, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	golang := realtest.BuildGoSource(t, "package main\n\nimport (\n\t\"fmt\"\n\t\"time\"\n)\n\nfunc main() {\n\tfmt.Println(\"ready\")\n\ttime.Sleep(time.Hour)\n}\n", []string{"CGO_ENABLED=0"})
	for program, why := range map[string]string{golang: "Go", static: "static"} {
		p := realtest.Start(t, program)
		if r := call(t, p, "getpid()"); r.Code != 3 || !strings.Contains(r.Stderr, why) {
			t.Errorf("%s: code %d, %s", why, r.Code, r.Stderr)
		}
	}
}

func TestCallsByTwoAtOnceInABusyProgram(t *testing.T) {
	p := start(t, "spin")
	for k := range 5 {
		var wait sync.WaitGroup
		for i := range 2 {
			wait.Add(1)
			go func() {
				defer wait.Done()
				for j := range 4 {
					n := k*8 + i*4 + j
					if r := call(t, p, fmt.Sprintf(`strtol("%d", NULL, 10)`, n)); r.Code != 0 || !strings.HasPrefix(r.Stdout, strconv.Itoa(n)) {
						t.Errorf("call %d: code %d, %s%s", n, r.Code, r.Stdout, r.Stderr)
					}
				}
			}()
		}
		wait.Wait()
	}
	finish(t, p)
}
