package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// patience is how long a test waits for what must come.
const patience = time.Minute

// serving is a callreel that serves a page.
type serving struct {
	*exec.Cmd
	url    string
	stdout *bufio.Reader
	stderr *strings.Builder
}

// startServing starts callreel and waits for the address of its page.
func startServing(t *testing.T, fromStderr bool, env []string, args ...string) *serving {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	t.Cleanup(cancel)
	s := &serving{Cmd: exec.CommandContext(ctx, realtest.CallreelPath(t), args...), stderr: &strings.Builder{}}
	s.Env = append(os.Environ(), env...)
	out, err := s.StdoutPipe()
	realtest.Must(t, err)
	s.stdout = bufio.NewReader(out)
	var from io.Reader = s.stdout
	if fromStderr {
		from, err = s.StderrPipe()
		realtest.Must(t, err)
	} else {
		s.Stderr = s.stderr
	}
	realtest.Must(t, s.Start())
	t.Cleanup(func() { _ = s.Process.Kill() }) // that has mostly ended
	line, err := bufio.NewReader(from).ReadString('\n')
	if err != nil {
		t.Fatalf("callreel %q: %v; %s", args, err, s.stderr)
	}
	s.url = regexp.MustCompile(`http://\S+`).FindString(line)
	return s
}

// end ends it as Ctrl-C does, and returns the exit code.
func (s *serving) end(t *testing.T) int {
	t.Helper()
	realtest.Must(t, s.Process.Signal(os.Interrupt))
	_ = s.Wait() // the code says it
	return s.ProcessState.ExitCode()
}

func fetch(t *testing.T, url string) string {
	t.Helper()
	a, err := http.Get(url)
	realtest.Must(t, err)
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	realtest.Must(t, err)
	if a.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s: %s", url, a.Status, body)
	}
	return string(body)
}

func TestViewPrintsItsAddressAndServesUntilCtrlC(t *testing.T) {
	path := makeReel(t, "main", "outer", "inner")
	s := startServing(t, false, []string{"DISPLAY=", "WAYLAND_DISPLAY="}, "view", path, "--no-open")
	if !regexp.MustCompile(`^http://127\.0\.0\.1:[0-9]+/[0-9a-f]{32,}/$`).MatchString(s.url) {
		t.Errorf("the address is %q", s.url)
	}
	if page := fetch(t, s.url); !strings.Contains(page, "<html") {
		t.Errorf("the page is %.100q", page)
	}
	var got struct{ Functions []struct{ Name string } }
	realtest.Must(t, json.Unmarshal([]byte(fetch(t, s.url+"api/functions")), &got))
	if len(got.Functions) != 2 || got.Functions[0].Name != "outer" {
		t.Errorf("%+v", got)
	}
	if code := s.end(t); code != exitDone || s.stderr.String() != "" {
		t.Errorf("code %d, stderr %q", code, s.stderr)
	}
}

func TestViewTellsOfDamageAndOfWhoCanReachIt(t *testing.T) {
	cut := cutEvents(t, makeReel(t, "main", "outer", "inner"))
	s := startServing(t, false, nil, "view", "--no-open", "--address", "0.0.0.0", cut)
	fetch(t, s.url)
	if code := s.end(t); code != exitDone || !strings.Contains(s.stderr.String(), "is damaged") || !strings.Contains(s.stderr.String(), "0.0.0.0") {
		t.Errorf("code %d, stderr %q", code, s.stderr)
	}
}

// The browser is told of a file that only the user can read: others see command lines.
func TestViewDoesNotTellTheTokenOnACommandLine(t *testing.T) {
	dir := t.TempDir()
	said := filepath.Join(dir, "said")
	opener := "#!/bin/sh\n{ echo \"$1\"; ls -ld \"$(dirname \"${1#file://}\")\"; cat \"${1#file://}\"; } >" + said + ".part && mv " + said + ".part " + said + "\n"
	for _, name := range []string{"xdg-open", "open"} {
		realtest.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(opener), 0o755))
	}
	s := startServing(t, false, []string{"DISPLAY=:99", "PATH=" + dir + ":" + os.Getenv("PATH"), "XDG_RUNTIME_DIR=" + dir}, "view", makeReel(t, "main", "f"))
	var text []byte
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		var err error
		if text, err = os.ReadFile(said); err == nil {
			break
		}
		if time.Since(start) > patience {
			t.Fatal("the browser was not opened")
		}
	}
	lines := strings.SplitN(string(text), "\n", 3)
	token := strings.Split(s.url, "/")[3]
	if strings.Contains(lines[0], token) || !strings.HasPrefix(lines[0], "file:///") || !strings.HasPrefix(lines[1], "drwx------") || !strings.Contains(lines[2], s.url) {
		t.Errorf("the browser got %q", text)
	}
	if code := s.end(t); code != exitDone {
		t.Errorf("code %d, stderr %q", code, s.stderr)
	}
	if _, err := os.Lstat(filepath.Dir(strings.TrimPrefix(lines[0], "file://"))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("left behind: %s: %v", lines[0], err)
	}
}

func TestRecordViewFollowsTheRecordingAndStays(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace, realtest.GCC)
	path := filepath.Join(t.TempDir(), "live.reel")
	s := startServing(t, true, nil, "record", "--view", "--no-open", "-o", path, "-f", "counted_*", "--summary", path+".json", "--", realtest.Build(t, "threads"), "fixed", "2", "200")
	type info struct {
		Reels []struct {
			Closed, Live bool
			Calls        uint64
		}
	}
	var got info
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		realtest.Must(t, json.Unmarshal([]byte(fetch(t, s.url+"api/info")), &got))
		if got.Reels[0].Closed && !got.Reels[0].Live {
			break
		}
		if time.Since(start) > patience {
			t.Fatalf("still %+v", got)
		}
	}
	// From then on a signal is for the page.
	var text []byte
	for start := time.Now(); !json.Valid(text); time.Sleep(10 * time.Millisecond) {
		text, _ = os.ReadFile(path + ".json") // it is to come
		if time.Since(start) > patience {
			t.Fatal("there is no summary")
		}
	}
	if sum := realtest.DecodeExactly[summary](t, string(text)); got.Reels[0].Calls != sum.Calls || sum.Calls == 0 {
		t.Errorf("the page has %d calls, the recording %d", got.Reels[0].Calls, sum.Calls)
	}
	if code := s.end(t); code != exitDone {
		t.Errorf("code %d", code)
	}
}

// promisedDiff has the keys of diff --json.
type promisedDiff struct {
	Functions []promisedChange `json:"functions"`
	A         promisedSum      `json:"a"`
	B         promisedSum      `json:"b"`
	Split     promisedSplit    `json:"split"`
	Slower    float64          `json:"slower_share"`
	Compared  int              `json:"compared"`
}

// promisedSplit has the parts of what B has of own time more.
type promisedSplit struct {
	MoreCallsNS   int64 `json:"more_calls_ns"`
	SlowerCallsNS int64 `json:"slower_calls_ns"`
	NewPathNS     int64 `json:"new_path_ns"`
	MissingPathNS int64 `json:"missing_path_ns"`
}

type promisedChange struct {
	Name         string         `json:"name"`
	Module       string         `json:"module"`
	SlowerNS     int64          `json:"slower_ns"`
	DeltaTotalNS int64          `json:"delta_total_ns"`
	DeltaSelfNS  int64          `json:"delta_self_ns"`
	A            *promisedTimes `json:"a"`
	B            *promisedTimes `json:"b"`
	promisedSplit
}

type promisedTimes struct {
	Func    uint32 `json:"func"`
	Calls   uint64 `json:"calls"`
	TotalNS uint64 `json:"total_ns"`
	SelfNS  uint64 `json:"self_ns"`
	P50NS   uint64 `json:"p50_ns"`
	P99NS   uint64 `json:"p99_ns"`
	MaxNS   uint64 `json:"max_ns"`
}

type promisedSum struct {
	Calls      uint64 `json:"calls"`
	DurationNS uint64 `json:"duration_ns"`
	Dropped    uint64 `json:"dropped"`
}

// diffReel is a reel in which fine and slow are called so often, slow for so many ns.
func diffReel(t *testing.T, calls int, took uint64) string {
	t.Helper()
	var events []reel.Event
	at := uint64(2000)
	for range calls {
		for i, d := range []uint64{500, took} {
			id := uint32(i + 1)
			events = append(events, reel.Entry(at, 0x10000, id), reel.Exit(at+d, 0x10000, id))
			at += d
		}
	}
	return makeReelOf(t, []string{"fine", "slow\x1b[31m"}, events)
}

func TestDiffRanksWhatBecameSlower(t *testing.T) {
	a, b := diffReel(t, 10, 200), diffReel(t, 40, 300)
	d := realtest.DecodeExactly[promisedDiff](t, callreel("", "diff", a, b, "--json").stdout)
	if len(d.Functions) != 2 || d.Functions[0].Name != "slow\x1b[31m" || d.Functions[0].SlowerNS != 40*100 || d.Functions[1].SlowerNS != 0 || d.Functions[1].DeltaSelfNS != 30*500 {
		t.Errorf("%+v", d)
	}
	for _, f := range d.Functions {
		if f.MoreCallsNS+f.SlowerCallsNS+f.NewPathNS+f.MissingPathNS != f.DeltaSelfNS {
			t.Errorf("the parts of %+v don't add up", f)
		}
	}
	if d.Split.MoreCallsNS != 30*200+30*500 || d.Split.SlowerCallsNS != 40*100 {
		t.Errorf("%+v", d.Split)
	}
	if d.A.Calls != 20 || d.B.Calls != 80 {
		t.Errorf("%+v, %+v", d.A, d.B)
	}
	text := callreel("", "diff", a, b, "--limit", "1")
	checkTerminalSafe(t, text.stdout)
	if text.code != exitDone || !strings.Contains(text.stdout, "4.00 us") || !strings.Contains(text.stdout, "200 ns > 300 ns") || !strings.Contains(text.stdout, "and 1 other function") {
		t.Errorf("code %d:\n%s", text.code, text.stdout)
	}
	back := realtest.DecodeExactly[promisedDiff](t, callreel("", "diff", b, a, "--json", "--sort", "total").stdout)
	if back.Functions[0].SlowerNS != -10*100 || back.Functions[0].DeltaTotalNS > 0 {
		t.Errorf("%+v", back.Functions)
	}
	if only := realtest.DecodeExactly[promisedDiff](t, callreel("", "diff", a, b, "--json", "-f", "fi*").stdout); len(only.Functions) != 1 {
		t.Errorf("%+v", only)
	}
}

func TestDiffFailsIfBIsSlowerByMore(t *testing.T) {
	a, b := diffReel(t, 50, 200), diffReel(t, 50, 300) // 700 ns against 800 for one call of each
	for _, k := range []struct {
		a, b, share string
		code        int
	}{
		{a, b, "15%", exitDone}, {a, b, "14%", exitFailed}, {b, a, "1%", exitDone}, {a, a, "0.1%", exitDone},
		{a, b, "0%", exitUsage}, {a, b, "5", exitUsage}, {a, b, "much%", exitUsage},
		{diffReel(t, 5, 200), b, "50%", exitFailed}, // too few calls to tell
	} {
		if r := callreel("", "diff", k.a, k.b, "--fail-over", k.share); r.code != k.code {
			t.Errorf("--fail-over %s: code %d, want %d\n%s%s", k.share, r.code, k.code, r.stdout, r.stderr)
		}
	}
}

func TestDiffOfAReelWithItselfHasNoChange(t *testing.T) {
	a := diffReel(t, 10, 200)
	for _, f := range realtest.DecodeExactly[promisedDiff](t, callreel("", "diff", a, a, "--json").stdout).Functions {
		if f.SlowerNS != 0 || f.DeltaTotalNS != 0 || f.DeltaSelfNS != 0 || fmt.Sprint(*f.A) != fmt.Sprint(*f.B) {
			t.Errorf("%+v", f)
		}
	}
}

func TestTwoFilesThatCannotBeComparedAreNamed(t *testing.T) {
	good, dir := diffReel(t, 10, 200), t.TempDir()
	text := filepath.Join(dir, "te\x1b[31mxt")
	realtest.Must(t, os.WriteFile(text, []byte("once upon a time"), 0o600))
	for _, k := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"diff", good, filepath.Join(dir, "missing")}, exitFailed, "missing: no such file"},
		{[]string{"diff", filepath.Join(dir, "missing"), good}, exitFailed, "missing: no such file"},
		{[]string{"diff", good, dir}, exitFailed, dir + ": not a regular file"},
		{[]string{"diff", good, text}, exitFailed, `te\x1b[31mxt: not a reel`},
		{[]string{"diff", good}, exitUsage, "give two FILEs"},
		{[]string{"diff", good, good, "--sort", "calls"}, exitUsage, "slower, total, self, p50, p99 or max"},
		{[]string{"diff", good, good, "-f", "none"}, exitUsage, "none"},
		{[]string{"view", "--no-open", good, text}, exitFailed, `te\x1b[31mxt: not a reel`},
		{[]string{"view", "--no-open", good, filepath.Join(dir, "missing")}, exitFailed, "missing: no such file"},
		{[]string{"view", "--no-open", good, good, good}, exitUsage, "give one FILE, or two"},
	} {
		got := callreel("", k.args...)
		if got.code != k.code || got.stdout != "" || !strings.Contains(got.stderr, k.says) || strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("%q: code %d, want %d, stdout %q, stderr %q", k.args, got.code, k.code, got.stdout, got.stderr)
		}
		checkTerminalSafe(t, got.stderr)
	}
}

func TestDiffTellsOfDamageInEither(t *testing.T) {
	good := diffReel(t, 1000, 200)
	cut := cutEvents(t, diffReel(t, 1000, 200))
	for _, args := range [][]string{{cut, good}, {good, cut}} {
		got := callreel("", "diff", args[0], args[1], "--json")
		if d := realtest.DecodeExactly[promisedDiff](t, got.stdout); got.code != exitDone || len(d.Functions) == 0 || !strings.Contains(got.stderr, cut+" is damaged") {
			t.Errorf("code %d, %+v, stderr %q", got.code, d, got.stderr)
		}
	}
}
