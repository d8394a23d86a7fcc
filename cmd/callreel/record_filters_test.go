package main

import (
	"strings"
	"testing"
)

// Filters that can't be are wrong usage, before any process is looked at.
func TestFiltersThatCantBe(t *testing.T) {
	for _, flags := range [][]string{
		{"--min", "-1ms"},
		{"--min", "soon"},
		{"--min", "1ms", "--clock", "exit"},
		{"--threads", "[a"},
		{"--depth", "0"},
		{"--depth", "101"},
		{"--every", "-3"},
		{"--every", "2", "--when", "f > 5ms"},
		{"--depth", "2", "--if", "f: x > 1"},
	} {
		a := callreel("", append([]string{"record", "-p", "1"}, flags...)...)
		if a.code != exitUsage || a.stdout != "" || !strings.HasPrefix(a.stderr, "callreel") {
			t.Errorf("%q: code %d, %q", flags, a.code, a.stderr)
		}
	}
}
