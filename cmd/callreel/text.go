package main

import (
	"strconv"
	"strings"
	"unicode"
)

// printable makes a name from a file safe for a terminal: control characters are escaped.
func printable(s string) string {
	for _, r := range s {
		if !unicode.IsPrint(r) {
			q := strconv.QuoteToGraphic(s)
			return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
		}
	}
	return s
}
