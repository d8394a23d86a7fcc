package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/callreel/callreel/recorder"
)

// choiceFlags choose functions.
type choiceFlags struct {
	modules, functions, exclude []string
	minSize                     size
}

func (f *choiceFlags) add(fl *pflag.FlagSet) {
	fl.StringArrayVarP(&f.modules, "module", "m", nil, "only this module: base name of its file, a glob (repeatable)")
	fl.StringArrayVarP(&f.functions, "function", "f", nil, "only functions of this name, a glob (repeatable)")
	fl.StringArrayVarP(&f.exclude, "exclude", "x", nil, "no functions of this name, a glob (repeatable)")
	fl.Var(&f.minSize, "min-size", "no functions smaller than this many bytes")
}

func (f *choiceFlags) choice() recorder.Choice {
	return recorder.Choice{Modules: f.modules, Functions: f.functions, Exclude: f.exclude, MinSize: uint64(f.minSize)}
}

// size is a flag in bytes that takes K, M and G.
type size uint64

func (s *size) String() string {
	if *s == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(*s), 10)
}

func (s *size) Type() string { return "SIZE" }

func (s *size) Set(text string) error {
	digits := strings.TrimRight(text, "bBiI")
	shift := 0
	if n := len(digits); n > 0 {
		switch digits[n-1] {
		case 'k', 'K':
			shift = 10
		case 'm', 'M':
			shift = 20
		case 'g', 'G':
			shift = 30
		}
		if shift > 0 {
			digits = digits[:n-1]
		}
	}
	v, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || v > math.MaxInt64>>shift {
		return fmt.Errorf("%q is not a size: a number, with K, M or G behind it", text)
	}
	*s = size(v << shift)
	return nil
}

// count writes a number with thousands separated.
func count(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// bytesText writes a size for people.
func bytesText(n int64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 10<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 10<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}
