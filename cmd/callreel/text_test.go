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

func TestGlobsMatchWholeNames(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"main", "main", true},
		{"main", "main2", false},
		{"*", "", true},
		{"*Command", "getCommand", true},
		{"get?ommand", "getCommand", true},
		{"*", "std::map<int, std::string>::find(int const&)", true},
		{"std::*::find(*", "std::map<int, std::string>::find(int const&)", true},
		{"net/http.*", "net/http.(*Server).Serve", true},
		{"net*Serve", "net/http.(*Server).Serve", true},
		{"net/http.(*Server).Serve", "net/http.(*Server).Serve", true},
		{"[fg]oo", "goo", true},
		{"[fg]oo", "hoo", false},
		{"*::operator[]", "vector<int>::operator[]", true},
		{"*::operator[]*", "vector<int>::operator[](unsigned long)", true},
		{"operator delete[]", "operator delete[]", true},
		{"name[abi:cxx11]*", "name[abi:cxx11]()", true},
		{"operator[]*", "operatorx", false},
		{`a\*b`, "a*b", true},
		{`a\*b`, "axb", false},
		{"[", "[", true},
		{"[", "x", false},
		{"\x1b*", "\x1b[31m", true},
	} {
		if got := glob(c.pattern, c.name); got != c.want {
			t.Errorf("glob(%q, %q) = %v", c.pattern, c.name, got)
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
