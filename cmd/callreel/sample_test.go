package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/sampler"
)

func TestWrongUsesOfSampleAreRefusedInWords(t *testing.T) {
	out := filepath.Join(t.TempDir(), "p")
	for _, test := range []struct {
		args []string
		says string
	}{
		{[]string{"-o", out}, "-p PID or -- CMD"},
		{[]string{"-p", "1", "-o", out, "--", "ls"}, "not both"},
		{[]string{"-o", out, "ls"}, "put -- before"},
		{[]string{"-p", "1"}, "give -o"},
		{[]string{"-p", "1", "-o", out, "-r", "0"}, "-r 0"},
		{[]string{"-p", "1", "-o", out, "-r", "1000000"}, "20000"},
		{[]string{"-p", "1", "-o", out, "--wall", "-r", "5000"}, "500"},
		{[]string{"-p", "1", "-o", out, "--stack", "1M"}, "--stack"},
		{[]string{"-p", "1", "-o", out, "--stack", "8"}, "--stack"},
		{[]string{"-p", "1", "-o", out, "-d", "-1s"}, "before it begins"},
		{[]string{"-p", "1", "-o", out, "--format", "xml"}, "folded, pprof"},
		{[]string{"-p", "1", "-o", "-", "--json"}, "stdout"},
	} {
		var stdout, stderr bytes.Buffer
		code := run(append([]string{"sample"}, test.args...), strings.NewReader(""), &stdout, &stderr)
		if code != exitUsage || !strings.Contains(stderr.String(), test.says) || stdout.Len() > 0 {
			t.Errorf("%q: code %d, %q", test.args, code, stderr.String())
		}
	}
}

func TestFolderThatIsNotThereIsToldBeforeTheCommandRuns(t *testing.T) {
	dir := t.TempDir()
	done := filepath.Join(dir, "done")
	a := callreel("", "sample", "-o", filepath.Join(dir, "none", "p"), "--", "touch", done)
	if a.code != exitFailed || !strings.Contains(a.stderr, "none") {
		t.Errorf("code %d, %q", a.code, a.stderr)
	}
	if _, err := os.Stat(done); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the command has run: %v", err)
	}
}

func TestProfileThatStandsForLittleSaysSo(t *testing.T) {
	for _, c := range []struct {
		cpu, unseen time.Duration
		userOnly    bool
		want        string
	}{
		{3 * time.Second, 2 * time.Second, false, "3.000 s of processor time, of which samples stand for 1.000 s: threads that run for less than 10.00 ms"},
		{3 * time.Second, time.Second, false, ""},
		{100 * time.Millisecond, 100 * time.Millisecond, false, ""},
		{3 * time.Second, 3 * time.Second, true, ""},
		{0, 0, false, ""},
	} {
		got := unseen(&sampler.Profile{Rate: 100, CPU: c.cpu, Unseen: c.unseen, UserOnly: c.userOnly})
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%v of %v: %q", c.unseen, c.cpu, got)
		}
	}
}
