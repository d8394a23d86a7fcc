package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// printable makes text that came from outside safe for a terminal: control characters, invisible ones that reorder
// what is around them, and bytes that are not UTF-8 are escaped.
func printable(s string) string {
	if plain(s) || utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return s
	}
	q := strconv.Quote(s)
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}

// plain says that all of a text is printable ASCII, as nearly all names are.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// count writes a number with thousands separated.
func count(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// things writes a number and its noun: "1 thread", "2 threads".
func things(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return count(n) + " " + noun + "s"
}

// bytesText writes a size for people.
func bytesText(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 10<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}

// span writes a time in nanoseconds with three or four digits and a unit.
func span(ns uint64) string {
	switch {
	case ns < 1e3:
		return fmt.Sprintf("%d ns", ns)
	case ns < 1e6:
		return fmt.Sprintf("%.2f us", float64(ns)/1e3)
	case ns < 1e9:
		return fmt.Sprintf("%.2f ms", float64(ns)/1e6)
	}
	return fmt.Sprintf("%.3f s", float64(ns)/1e9)
}

// shortSpan writes a time in nanoseconds with three digits and a unit, for tables with many columns.
func shortSpan(ns uint64) string {
	unit, of := "s", 1e9
	switch {
	case ns < 1e3:
		return fmt.Sprintf("%d ns", ns)
	case ns < 999_500:
		unit, of = "us", 1e3
	case ns < 999_500_000:
		unit, of = "ms", 1e6
	}
	v := float64(ns) / of
	switch {
	case v < 9.995:
		return fmt.Sprintf("%.2f %s", v, unit)
	case v < 99.95:
		return fmt.Sprintf("%.1f %s", v, unit)
	}
	return fmt.Sprintf("%.0f %s", v, unit)
}

// milliseconds is how JSON gives the time of stops.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
