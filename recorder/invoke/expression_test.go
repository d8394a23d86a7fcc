package invoke

import (
	"errors"
	"math"
	"reflect"
	"testing"
)

func TestLiteralsAreC(t *testing.T) {
	for text, want := range map[string]Literal{
		"0": {}, "42": {Bits: 42}, "-1": {Bits: math.MaxUint64}, "0x1F": {Bits: 31}, "017": {Bits: 15}, "0b101": {Bits: 5}, "7UL": {Bits: 7},
		"18446744073709551615": {Bits: math.MaxUint64}, "-9223372036854775808": {Bits: 1 << 63},
		"'a'": {Bits: 97}, `'\n'`: {Bits: 10}, `'\xff'`: {Bits: math.MaxUint64}, `'\''`: {Bits: 39}, "true": {Bits: 1}, "false": {}, "NULL": {},
		"1.5": {Kind: Double, Bits: math.Float64bits(1.5)}, "-2e3": {Kind: Double, Bits: math.Float64bits(-2000)}, ".5": {Kind: Double, Bits: math.Float64bits(.5)},
		"1.5f": {Kind: Single, Bits: uint64(math.Float32bits(1.5))}, "0x1p3": {Kind: Double, Bits: math.Float64bits(8)},
		`"ab"`: {Kind: Text, Text: []byte("ab")}, `""`: {Kind: Text, Text: []byte{}}, `"a" "b"`: {Kind: Text, Text: []byte("ab")},
		`"\x41\102\0\\,(\")"`: {Kind: Text, Text: []byte("AB\x00\\,(\")")},
		"&environ":            {Kind: Symbol, Name: "environ"}, "&libc.so.6:environ+8": {Kind: Symbol, Image: "libc.so.6", Name: "environ", Add: 8},
		"&x-0x10": {Kind: Symbol, Name: "x", Add: -16}, "libstdc++.so.6+0x10": {Kind: Offset, Image: "libstdc++.so.6", Add: 16},
	} {
		got, err := parseLiteral(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "08", "1_000", "0o17", "18446744073709551616", "-9223372036854775809", "''", "'ab'", `"a`, `"\q"`, `"\x"`, `"\777"`, `"a"b`, "&", "&1", "&a+b", "x", "1e", "0x", "f", "--1", "inf", "nan", "1uuuu"} {
		if got, err := parseLiteral(text); err == nil {
			t.Errorf("%s is %+v", text, got)
		}
	}
}

func TestExpressionsAreCalls(t *testing.T) {
	for text, want := range map[string]Expression{
		"getpid()":             {Function: "getpid"},
		" malloc_trim( 0 ) ; ": {Function: "malloc_trim", Literals: []Literal{{}}},
		"libc.so.6:memcpy@GLIBC_2.14(NULL,NULL,0)": {Image: "libc.so.6", Function: "memcpy", Version: "GLIBC_2.14", Literals: []Literal{{}, {}, {}}},
		`puts("a,b)")`: {Function: "puts", Literals: []Literal{{Kind: Text, Text: []byte("a,b)")}}},
	} {
		got, err := Parse(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "f", "f(", "(1)", "f(1", "f(,)", "f(1,)", "f(1) g", ":f()", "a b()", "1f()", `f("a)`, "f('a)", "f(g(1))"} {
		if got, err := Parse(text); !errors.Is(err, ErrSyntax) {
			t.Errorf("%s is %+v, %v", text, got, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"malloc_trim(0)", `printf("%d\n", -1, 2.5, 1f, 'c', &environ+8, libc.so.6+0x10)`, `f("\x41\0\777", '\\')`, "a:b@c()"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Parse(text)
		if err != nil && !errors.Is(err, ErrSyntax) {
			t.Fatal(err)
		}
		if err == nil && (e.Function == "" || len(e.Literals) > len(text)) {
			t.Fatalf("%q is %+v", text, e)
		}
	})
}
