package symbolize

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxName bounds a name in text, in bytes; C++ can make them of 256 KiB.
	maxName = 2 << 10
	// maxNote bounds the calls at one address in text.
	maxNote = 64
)

// note says in a line what is at an address, or why that is not known.
func note(n *Named) string {
	if len(n.Calls) == 0 {
		return printable(n.Reason)
	}
	var b strings.Builder
	for k := range n.Calls {
		if k == maxNote {
			b.WriteString(", …")
			break
		}
		if k > 0 {
			b.WriteString(", inlined by ")
		}
		b.WriteString(callText(&n.Calls[k]))
	}
	return b.String()
}

// callText is "main at /src/a.c:7".
func callText(c *Call) string {
	name := c.Function
	if name == "" {
		name = "??"
	}
	text := printable(name)
	if c.File != "" {
		text += " at " + printable(c.File)
		if c.Line != 0 {
			text += ":" + strconv.FormatUint(uint64(c.Line), 10)
		}
	}
	return text
}

// printable makes a name that came from outside safe for a terminal and for the line it
// stands in: control characters, invisible ones that reorder what is around them, and bytes
// that are not UTF-8 are escaped, and what is too long is cut.
func printable(s string) string {
	if len(s) > maxName {
		s = s[:maxName] + "…"
	}
	if utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return s
	}
	q := strconv.Quote(s)
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}
