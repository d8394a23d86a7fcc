package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
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
