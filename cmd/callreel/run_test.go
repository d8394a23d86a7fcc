package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder"
)

// answer is what one run of the program left.
type answer struct {
	stdout, stderr string
	code           int
}

// callreel runs the program inside the test, without a terminal.
func callreel(stdin string, args ...string) answer {
	var stdout, stderr bytes.Buffer
	code := run(args, strings.NewReader(stdin), &stdout, &stderr)
	return answer{stdout.String(), stderr.String(), code}
}

// checkTerminalSafe fails the test when text has something in it that a terminal obeys.
func checkTerminalSafe(t *testing.T, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Errorf("not UTF-8: %q", text)
	}
	for _, r := range text {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Errorf("character %U in %q", r, text)
			return
		}
	}
}

// hostileNames are names as an image may have them, to do harm in a terminal or a parser.
var hostileNames = []string{
	"\x1b[2J\x1b]0;owned\a", "a\rb", "line\nfeed", "nul\x00l", "\x9b31m", "\xff\xfe", "\u009b31m", "\u202egnp.exe",
	"\u2028", "quote\"back\\slash", "</script><b>", "\x7f", "_ZN\x1b[31mE", "%s%n", "ünïcödé",
}

func TestWrongUsageEndsWithCode2AndSaysWhatToDo(t *testing.T) {
	reel := emptyReel(t)
	for _, c := range []struct {
		args []string
		want string // in stderr
	}{
		{nil, "Verbs:"},
		{[]string{"recrod"}, "near it is record"},
		{[]string{"wibble"}, "callreel --help"},
		{[]string{"--wibble"}, "callreel --help"},
		{[]string{"help", "wibble"}, `no verb "wibble"`},
		{[]string{"record"}, "-p PID or -- CMD"},
		{[]string{"record", "--wibble"}, "callreel record --help"},
		{[]string{"record", "-p", "x"}, "not a process ID"},
		{[]string{"record", "-p", "0"}, "not a process ID"},
		{[]string{"record", "-p", "-7"}, "not a process ID"},
		{[]string{"record", "-p", "4294967297"}, "not a process ID"},
		{[]string{"record", "-p", "1", "--", "ls"}, "not both"},
		{[]string{"record", "ls", "-l"}, "put -- before the command"},
		{[]string{"record", "-p", "1", "--clock", "wall"}, "full, exit or none"},
		{[]string{"record", "-p", "1", "-d", "-3s"}, "-d -3s"},
		{[]string{"record", "-p", "1", "-d", "5"}, "duration"},
		{[]string{"record", "-p", "1", "--ring", "9X"}, "K, M or G"},
		{[]string{"record", "-o", reel, "--", "ls"}, "--force replaces it"},
		{[]string{"top"}, "give -p PID"},
		{[]string{"top", "-p", "1", "x"}, "no argument is expected"},
		{[]string{"top", "-p", "1", "--sort", "size"}, "calls, self, p99 or max"},
		{[]string{"top", "-p", "1", "--limit", "-1"}, "--limit -1"},
		{[]string{"top", "-p", "1", "--interval", "1ms"}, "use 100ms or more"},
		{[]string{"top", "-p", "1", "-d", "-1s"}, "-d -1s"},
		{[]string{"top", "-p", "1", "--off"}, "--off goes with --budget"},
		{[]string{"functions"}, "-p PID or one FILE"},
		{[]string{"functions", "a", "b"}, "one FILE"},
		{[]string{"functions", "-p", "1", "a"}, "-p PID or one FILE"},
		{[]string{"report"}, "one FILE"},
		{[]string{"report", "a", "b"}, "one FILE"},
		{[]string{"report", reel, "--sort", "size"}, "calls, total, self, max, cpu, ready or blocked"},
		{[]string{"report", reel, "--limit", "-1"}, "--limit -1"},
		{[]string{"report", reel, "-f", "wibble"}, "-f wibble matches nothing"},
		{[]string{"record", "--no-open", "-p", "1"}, "goes with --view"},
		{[]string{"view"}, "one FILE, or two"},
		{[]string{"view", "a", "b", "c"}, "one FILE, or two"},
		{[]string{"view", reel, "--address", "example.com"}, "is not an IP address"},
		{[]string{"view", reel, "--port", "65536"}, "callreel view --help"},
		{[]string{"diff", reel}, "two FILEs"},
		{[]string{"diff", reel, reel, "--sort", "size"}, "slower, total, self"},
		{[]string{"diff", reel, reel, "--limit", "-1"}, "--limit -1"},
		{[]string{"diff", reel, reel, "-f", "wibble"}, "-f wibble matches nothing"},
		{[]string{"export"}, "one FILE"},
		{[]string{"export", reel, "-o", "x"}, "there is: chrome, folded, perfetto, pprof, speedscope"},
		{[]string{"export", reel, "--format", "wibble", "-o", "x"}, "only: chrome, folded"},
		{[]string{"export", reel, "--format", "chrome"}, "- for stdout"},
		{[]string{"export", reel, "--format", "chrome", "-o", reel}, "the reel itself"},
		{[]string{"export", reel, "--format", "chrome", "-o", t.TempDir()}, "is a directory"},
		{[]string{"export", reel, "--format", "pprof", "-o", "x", "--split", "1M"}, "--format chrome only"},
		{[]string{"export", reel, "--format", "chrome", "-o", "-", "--split", "1M"}, "several files"},
		{[]string{"export", reel, "--format", "chrome", "-o", "x", "--split", "1K"}, "at least 64K"},
		{[]string{"export", reel, "--format", "chrome", "-o", "x", "--split", "0"}, "at least 64K"},
		{[]string{"export", reel, "--format", "folded", "-o", "x", "--weight", "size"}, "use wall, cpu, ready, blocked or calls"},
		{[]string{"export", reel, "--format", "pprof", "-o", "x", "--weight", "calls"}, "pprof has them all"},
		{[]string{"export", reel, "--format", "speedscope", "-o", "x", "--weight", "calls"}, "folded only"},
		{[]string{"export", reel, "--format", "folded", "-o", "x", "--lines"}, "no place for files and lines"},
		{[]string{"crash"}, "one FILE"},
		{[]string{"crash", "a", "b"}, "one FILE"},
		{[]string{"detach"}, "-p PID"},
		{[]string{"detach", "7"}, "no argument is expected"},
		{[]string{"doctor", "7"}, "no argument is expected"},
		{[]string{"demo", "7"}, "no argument is expected"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			a := callreel("", c.args...)
			if a.code != exitUsage || a.stdout != "" || !strings.Contains(a.stderr, c.want) {
				t.Errorf("code %d, stdout %q, stderr %q; want code %d and %q", a.code, a.stdout, a.stderr, exitUsage, c.want)
			}
			if !strings.HasPrefix(a.stderr, "callreel") {
				t.Errorf("stderr does not say who speaks: %q", a.stderr)
			}
		})
	}
}

func TestHelpListsEachVerbInTheOrderOfUse(t *testing.T) {
	a := callreel("", "--help")
	if a.code != exitDone || a.stderr != "" {
		t.Fatalf("code %d, stderr %q", a.code, a.stderr)
	}
	at := 0
	for _, verb := range []string{"record", "top", "functions", "report", "view", "diff", "export", "detach", "crash", "symbols", "symbolize", "demangle", "doctor", "demo"} {
		i := strings.Index(a.stdout[at:], "\n  "+verb+" ")
		if i < 0 {
			t.Fatalf("%s is missing, or out of order, in\n%s", verb, a.stdout)
		}
		at += i
	}
}

func TestEachVerbsHelpHasUsageAndAnExample(t *testing.T) {
	for _, verb := range newRoot().Commands() {
		if verb.Hidden {
			continue
		}
		for _, args := range [][]string{{verb.Name(), "--help"}, {"help", verb.Name()}} {
			a := callreel("", args...)
			if a.code != exitDone || a.stderr != "" {
				t.Errorf("%q: code %d, stderr %q", args, a.code, a.stderr)
			}
			for _, want := range []string{"Usage:\n  callreel " + verb.Name(), "Examples:\n  callreel ", "Flags:"} {
				if !strings.Contains(a.stdout, want) {
					t.Errorf("%q: no %q in\n%s", args, want, a.stdout)
				}
			}
			for line := range strings.Lines(a.stdout) {
				if n := utf8.RuneCountInString(line); n > 121 {
					t.Errorf("%q: a line of %d characters: %s", args, n, line)
				}
			}
		}
	}
}

func TestVersionIsPrinted(t *testing.T) {
	if a := callreel("", "--version"); a.code != exitDone || a.stdout != "callreel "+versionText()+"\n" {
		t.Errorf("code %d, stdout %q", a.code, a.stdout)
	}
}

func TestFileThatCannotBeReadEndsWithCode1AndItsName(t *testing.T) {
	dir := t.TempDir()
	empty, other := write(t, dir, "empty", nil), write(t, dir, "other", []byte("hello\n"))
	for _, verb := range [][]string{{"report"}, {"report", "--json"}, {"view", "--no-open"}, {"diff", emptyReel(t)}, {"export", "--format", "chrome", "-o", filepath.Join(dir, "out")}, {"functions"}} {
		for _, file := range []string{filepath.Join(dir, "missing"), empty, other, dir} {
			a := callreel("", append(verb, file)...)
			if a.code != exitFailed || a.stdout != "" || !strings.Contains(a.stderr, file) {
				t.Errorf("%q of %s: code %d, stdout %q, stderr %q", verb, file, a.code, a.stdout, a.stderr)
			}
			checkTerminalSafe(t, a.stderr)
		}
	}
	if got, _ := filepath.Glob(filepath.Join(dir, "*out*")); got != nil {
		t.Errorf("left behind: %q", got)
	}
}

func TestErrorsHaveTheCodesThatScriptsRelyOn(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{errors.New("disk full"), exitFailed},
		{usageError("wrong"), exitUsage},
		{&recorder.NoMatchError{Flag: "-f", Glob: "x"}, exitUsage},
		{fs.ErrExist, exitUsage},
		{fs.ErrNotExist, exitFailed},
		{fs.ErrPermission, exitNotPermitted},
		{process.ErrNoProcess, exitFailed},
		{process.ErrNotPermitted, exitNotPermitted},
		{process.ErrTraced, exitNotPermitted},
		{process.ErrForeignArch, exitNotPermitted},
		{process.ErrUnsupported, exitNotPermitted},
		{&process.SeccompError{Number: 9}, exitNotPermitted},
		{recorder.ErrRecorded, exitNotPermitted},
		{recorder.ErrUnsupported, exitNotPermitted},
		{recorder.ErrNothing, exitNotPermitted},
		{process.ErrCommandNotFound, exitNotFound},
		{fmt.Errorf("%w: %w", process.ErrCommandNotExecutable, fs.ErrPermission), exitNotExecutable},
		{&exitError{code: 42}, 42},
	} {
		if got := exitCode(fmt.Errorf("callreel: process 7: %w", c.err)); got != c.want {
			t.Errorf("%v: code %d, want %d", c.err, got, c.want)
		}
	}
}

func TestErrorsThatQuoteHostileNamesAreSafeForATerminal(t *testing.T) {
	for _, name := range hostileNames {
		said := message(errors.Join(fmt.Errorf("process 7 (%s): no", name), errors.New("undoing: no")))
		checkTerminalSafe(t, said)
		if !strings.HasPrefix(said, "callreel: process 7") {
			t.Errorf("%q", said)
		}
	}
}
