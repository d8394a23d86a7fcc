package main

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/callreel/callreel/internal/safejson"
)

func TestSizesTakeLetters(t *testing.T) {
	for text, want := range map[string]uint64{
		"0": 0, "1": 1, "4096": 4096, "7b": 7, "1K": 1 << 10, "3k": 3 << 10, "64M": 64 << 20, "64MiB": 64 << 20, "64mb": 64 << 20, "2G": 2 << 30,
		"8589934591G": 8589934591 << 30,
	} {
		var s size
		if err := s.Set(text); err != nil || uint64(s) != want {
			t.Errorf("%q is %d (%v), want %d", text, s, err, want)
		}
	}
	for _, text := range []string{"", "K", "-1", "1T", "1.5M", "1 K", "KM", "1KM", "1Gi", "0x10", "8589934592G", "18446744073709551616"} {
		var s size
		if err := s.Set(text); err == nil || s != 0 {
			t.Errorf("%q was taken for %d", text, s)
		}
	}
}

func TestPrintableKeepsTextAndEscapesTheRest(t *testing.T) {
	for in, want := range map[string]string{
		"":                        "",
		"std::map<int>::f(\"x\")": "std::map<int>::f(\"x\")",
		`back\slash`:              `back\slash`,
		"ünïcödé":                 "ünïcödé",
		"\x1b[31m":                `\x1b[31m`,
		"a\nb":                    `a\nb`,
		"\x9b":                    `\x9b`,
		"\u009b":                  `\u009b`,
		"\u202e":                  `\u202e`,
		"say \"\a\"":              `say "\a"`,
	} {
		if got := printable(in); got != want {
			t.Errorf("printable(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzPrintableIsSafe(f *testing.F) {
	for _, name := range hostileNames {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, s string) {
		checkTerminalSafe(t, strings.ReplaceAll(printable(s), "\n", "\x00"))
	})
}

func FuzzJSONTextIsValidAndSafe(f *testing.F) {
	for _, name := range hostileNames {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, s string) {
		text, err := safejson.Marshal(struct{ Name string }{s})
		if err != nil {
			t.Fatal(err)
		}
		var back struct{ Name string }
		if err := json.Unmarshal(text, &back); err != nil || back.Name != strings.ToValidUTF8(s, "\uFFFD") && utf8.ValidString(s) {
			t.Fatalf("%q became %s, which is %q (%v)", s, text, back.Name, err)
		}
		for _, r := range string(text) {
			if r < ' ' || r >= 0x7F && r <= 0x9F {
				t.Fatalf("character %U in %q", r, text)
			}
		}
	})
}

func TestNumbersAreWrittenForPeople(t *testing.T) {
	for n, want := range map[uint64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", 18446744073709551615: "18,446,744,073,709,551,615"} {
		if got := count(n); got != want {
			t.Errorf("count(%d) = %q", n, got)
		}
	}
	for n, want := range map[uint64]string{0: "0 ns", 999: "999 ns", 1500: "1.50 us", 2_500_000: "2.50 ms", 61_000_000_000: "61.000 s", 1 << 63: "9223372036.855 s"} {
		if got := span(n); got != want {
			t.Errorf("span(%d) = %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 bytes", 10239: "10239 bytes", 10240: "10.0 KiB", 1 << 20: "1.0 MiB", 3 << 30: "3.0 GiB"} {
		if got := bytesText(n); got != want {
			t.Errorf("bytesText(%d) = %q, want %q", n, got, want)
		}
	}
	for n, want := range map[uint64]string{0: "0 threads", 1: "1 thread", 1000: "1,000 threads"} {
		if got := things(n, "thread"); got != want {
			t.Errorf("things(%d) = %q", n, got)
		}
	}
}
