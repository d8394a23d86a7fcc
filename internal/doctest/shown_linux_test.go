package doctest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/callreel/callreel/demo"
	"github.com/callreel/callreel/internal/realtest"
)

// patience is how long a command may take before it counts as hung. Test machines are busy.
const patience = 2 * time.Minute

// stage is where commands of documents are run: the demo's server at work, and a folder with the files that documents name.
type stage struct {
	pid    string
	port   string
	folder string // copied for each block
	path   string // of the folder in which callreel is
}

// newStage starts the demo's server under load and records it.
// home is where commands that write into one's home do so.
func (s *stage) home() string { return filepath.Join(s.path, "home") }

func newStage(t *testing.T) *stage {
	t.Helper()
	realtest.Need(t, realtest.LivePtrace, realtest.GCC)
	s := &stage{folder: t.TempDir(), path: t.TempDir()}
	if err := os.Symlink(realtest.CallreelPath(t), filepath.Join(s.path, "callreel")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(s.home(), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := demo.Build(context.Background(), s.folder); err != nil {
		t.Fatal(err)
	}
	server := realtest.StartCommand(t, exec.Command(filepath.Join(s.folder, demo.Server), "0"))
	s.port = strings.TrimPrefix(server.WaitLine("listening on "), "listening on ")
	s.pid = fmt.Sprint(server.Pid())
	// A first recording may meet the server before its load.
	var load *realtest.Proc
	for start := time.Now(); ; {
		if load == nil || !load.Alive() {
			load = s.load(t, 5)
		}
		s.must(t, "callreel record -p PID -m server -d 1200ms --force -o slow.reel")
		if said := s.must(t, "callreel report slow.reel -f handle_request --limit 1"); strings.Contains(said, "server!handle_request") {
			break
		}
		if time.Since(start) > patience {
			t.Fatal("the server gets no requests")
		}
	}
	for _, name := range []string{"demo.reel", "before.reel", "after.reel"} {
		if err := os.Link(filepath.Join(s.folder, "slow.reel"), filepath.Join(s.folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	s.must(t, "callreel symbols build server")
	s.write(t, "crash.log", "image 0x400000 0x5000 - ./server\n0x401d7d\n")
	s.write(t, "addresses.txt", "0x555555555d7d\n")
	s.write(t, "capture.json", `{"images":[{"id":"","load":"0x400000","size":20480,"path":"./server"}],"threads":[{"tid":1,"frames":[{"address":"0x401d7d"}]}]}`)
	s.write(t, "Makefile", "all:\n\t@true\n")
	return s
}

// load keeps the server at work for so many seconds, or until the test's end. It makes a limited number of requests, for a minute or so.
func (s *stage) load(t *testing.T, seconds int) *realtest.Proc {
	t.Helper()
	return realtest.StartCommand(t, exec.Command(filepath.Join(s.folder, demo.Load), s.port, fmt.Sprint(seconds)))
}

func (s *stage) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.folder, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// must runs a line in the stage's own folder.
func (s *stage) must(t *testing.T, line string) string {
	t.Helper()
	said, code := s.run(t, s.folder, line)
	if code != 0 {
		t.Fatalf("%s: code %d\n%s", line, code, said)
	}
	return said
}

var pidFlag = regexp.MustCompile(`-p (PID|\d+)`)

// durations are those of recordings, which a test needn't make as long.
var durations = regexp.MustCompile(`(callreel (?:record|top|sample|stall) .*)-d (\S+)`)

// endless says that a use of callreel goes on until Ctrl-C.
func endless(words []string) bool {
	has := func(flag string) bool { return slices.Contains(words, flag) }
	switch words[0] {
	case "record":
		return !has("-d") && !has("--")
	case "top":
		return !has("-d") && !has("--once")
	case "sample", "stall":
		return !has("-d") && !has("--")
	}
	return false
}

// prepare makes a line of a document one that can be run in a test: for the process that is there, and for a second.
func (s *stage) prepare(line string) string {
	line = pidFlag.ReplaceAllString(line, "-p "+s.pid)
	if uses := Uses(line); len(uses) > 0 && endless(uses[0]) {
		line = strings.Replace(line, "callreel "+uses[0][0], "callreel "+uses[0][0]+" -d 1s", 1)
	}
	if strings.Contains(line, "--when") { // the server's slow request comes once a second
		return line
	}
	return durations.ReplaceAllStringFunc(line, func(use string) string {
		m := durations.FindStringSubmatch(use)
		if d, err := time.ParseDuration(m[2]); err == nil && d > 3*time.Second { // shorter ones are to see the slow request
			return m[1] + "-d 1500ms"
		}
		return use
	})
}

// run gives a line to a shell in a folder, and returns what it writes to stdout and stderr, and its code.
func (s *stage) run(t *testing.T, folder, line string) (said string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", s.prepare(line))
	cmd.Dir, cmd.Env = folder, s.environment()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) } // all of them, so that they detach
	cmd.WaitDelay = patience
	out, err := cmd.CombinedOutput()
	exit := new(exec.ExitError)
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func (s *stage) environment() []string {
	return append(os.Environ(), "PATH="+s.path+":"+os.Getenv("PATH"), "HOME="+s.home(), "XDG_CACHE_HOME="+filepath.Join(s.folder, "cache"), "NO_COLOR=1")
}

// background starts a line's recorder, which ends by SIGINT when the block does, and returns when it is at work.
func (s *stage) background(t *testing.T, folder, line string) {
	t.Helper()
	words := Uses(line)[0]
	for i, w := range words {
		if w == "PID" {
			words[i] = s.pid
		}
	}
	cmd := exec.Command(filepath.Join(s.path, "callreel"), words...)
	cmd.Dir, cmd.Env = folder, s.environment()
	p := realtest.StartCommand(t, cmd)
	t.Cleanup(func() {
		if p.Alive() {
			p.Signal(os.Interrupt)
		}
		if code := p.Wait(); code != 0 {
			t.Errorf("%s: code %d\n%s", line, code, p.Stderr())
		}
	})
	output := filepath.Join(folder, words[slices.Index(words, "-o")+1])
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if info, err := os.Stat(output); err == nil && (info.Size() > 0 || info.IsDir()) && (!slices.Contains(words, "--when") || strings.Contains(p.Stderr(), "armed")) {
			return
		}
		if !p.Alive() || time.Since(start) > patience {
			t.Fatalf("%s: not at work\n%s", line, p.Stderr())
		}
	}
}

// view runs callreel view, asks for its page, and ends it.
func (s *stage) view(t *testing.T, folder string, words []string) {
	t.Helper()
	words = slices.DeleteFunc(append(words, "--no-open"), func(w string) bool { return w == "--port" || w == "8099" })
	cmd := exec.Command(filepath.Join(s.path, "callreel"), words...)
	cmd.Dir, cmd.Env = folder, s.environment()
	p := realtest.StartCommand(t, cmd)
	url := p.WaitLine("http://")
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(page), "<html") {
		t.Errorf("%s: %s, %v", url, answer.Status, err)
	}
	p.Signal(os.Interrupt)
	if code := p.Wait(); code != 0 {
		t.Errorf("callreel %q: code %d\n%s", words, code, p.Stderr())
	}
}

// block runs a block's commands, one after the other.
func (s *stage) block(t *testing.T, b *Block) {
	s.load(t, 3600)
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(s.folder)); err != nil {
		t.Fatal(err)
	}
	for _, c := range b.Commands() {
		uses := Uses(c.Text)
		if len(uses) == 0 {
			continue
		}
		for _, words := range uses { // what a reader wouldn't have yet
			name := "server-" + s.pid + ".reel" // as record calls its file by itself
			if i := slices.Index(words, "-o"); i >= 0 && i+1 < len(words) && words[i+1] != "-" {
				name = words[i+1]
			} else if words[0] == "symbols" && words[1] == "build" {
				name = "server.symmap"
			}
			if err := os.RemoveAll(filepath.Join(folder, name)); err != nil {
				t.Fatal(err)
			}
		}
		switch {
		case strings.HasSuffix(strings.TrimSpace(c.Text), "&"):
			s.background(t, folder, c.Text)
			continue
		case uses[0][0] == "view":
			s.view(t, folder, uses[0])
			continue
		case slices.Contains(uses[0], "--view"): // record --view goes on until Ctrl-C; tests of its own hold it
			continue
		}
		want := 0
		if _, says, ok := strings.Cut(c.Text, "exit code "); ok {
			fmt.Sscan(says, &want)
		}
		said, code := s.run(t, folder, c.Text)
		if code != want {
			t.Errorf("line %d: %s: code %d, want %d\n%s", c.Line, c.Text, code, want, said)
		}
		if !b.Has("varies") {
			s.compare(t, folder, &c, said)
		}
	}
}

var (
	// number is a number with its unit, if it has one (cut off, perhaps), and the blanks before it, which align it.
	number   = regexp.MustCompile(`\s*(0x[0-9a-f]+|-?\d[\d,.:]*( ?(ns|us|ms|m|s|bytes|B|KiB|MiB|GiB)\b| ?%)?)`)
	noNumber = regexp.MustCompile(`\s-(\s|$|#)`)
	numbers  = regexp.MustCompile(`#(\s*#)*`)
	// byChance stands behind a function's name, cut or not, or behind a dump's.
	byChance = regexp.MustCompile(`  \(.*$|; not whole, see callreel report$`)
	folders  = regexp.MustCompile(`(/[\w.+-]+)+/`)
)

// shape is a line of output without what is another each time.
func shape(line string) string {
	line = number.ReplaceAllString(folders.ReplaceAllString(line, ""), "#")
	line = noNumber.ReplaceAllString(line, "#") // columns may be empty, too
	return strings.Join(strings.Fields(numbers.ReplaceAllString(byChance.ReplaceAllString(line, ""), "#")), " ")
}

var limits = regexp.MustCompile(` --limit \d+`)

// compare looks for each line that is shown among those that came. What a --limit leaves out depends on chance, so all are asked for.
func (s *stage) compare(t *testing.T, folder string, c *Command, said string) {
	t.Helper()
	if len(c.Output) == 0 {
		return
	}
	if line := limits.ReplaceAllString(c.Text, ""); line != c.Text {
		more, _ := s.run(t, folder, line)
		said += more
	}
	came := map[string]bool{}
	for line := range strings.Lines(said) {
		came[shape(strings.TrimSuffix(line, "\n"))] = true
	}
	for _, line := range c.Output {
		if !came[shape(line)] {
			t.Errorf("line %d: %s: no line like\n%s\nbut\n%s", c.Line, c.Text, line, said)
			return
		}
	}
}

func TestCommandsThatAreShownWork(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a hundred commands")
	}
	realtest.Need(t, realtest.LivePtrace, realtest.GCC)
	ran := 0
	for _, d := range all(t) {
		var shown []*Block
		for i := range d.Blocks {
			b := &d.Blocks[i]
			if (b.Kind == "sh" || b.Kind == "console" && !b.Has("seen")) && len(b.Commands()) > 0 {
				shown = append(shown, b)
				ran += len(b.Commands())
			}
		}
		if len(shown) == 0 {
			continue
		}
		t.Run(d.Path, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.programs(t, d)
			for _, b := range shown {
				t.Run(fmt.Sprint("line ", b.Line), func(t *testing.T) { s.block(t, b) })
			}
		})
	}
	if ran < 50 {
		t.Errorf("only %d commands were found", ran)
	}
}

func TestShapesForgetOnlyWhatVaries(t *testing.T) {
	same := [][2]string{
		{"  14,047    8.835 s  server!route  (3 unfinished), open for 8 ms", "9 1.2 ms server!route"},
		{"     1  337.40 ms   -     -  337.40 ms  server!hash_collide", "2  9 ms 8 ms 7 ns 6 ns server!hash_collide  (1 unf"},
		{"0x1d7d: read_request at /tmp/demo/server.c:247", "0x1d80: read_request at /src/x/server.c:9"},
		{"2.6 MiB (1.2 bytes an event)", "926 KiB (1.3 bytes an event)"},
	}
	for _, p := range same {
		if shape(p[0]) != shape(p[1]) {
			t.Errorf("%q and %q: %q and %q", p[0], p[1], shape(p[0]), shape(p[1]))
		}
	}
	if a, b := shape("3 of 4 functions traced"), shape("3 of 4 functions recorded"); a == b {
		t.Errorf("words are forgotten: %q", a)
	}
}
