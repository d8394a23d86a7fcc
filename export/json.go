package export

import (
	"fmt"
	"unicode/utf8"
)

// appendJSON appends s as a JSON string (RFC 8259 §7). Names come from the traced
// program and may hold any bytes: what is not UTF-8 becomes U+FFFD, and control
// characters and the separators that JavaScript takes for line ends are escaped.
func appendJSON(b []byte, s string) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			i++
			switch {
			case c == '"' || c == '\\':
				b = append(b, '\\', c)
			case c == 0: // trace_processor ends texts there, and confuses those behind
				b = append(b, `\ufffd`...)
			case c < 0x20 || c == 0x7f:
				b = fmt.Appendf(b, `\u%04x`, c)
			default:
				b = append(b, c)
			}
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			b = append(b, `\ufffd`...)
		case r == '\u2028' || r == '\u2029':
			b = fmt.Appendf(b, `\u%04x`, r)
		default:
			b = append(b, s[i:i+size]...)
		}
		i += size
	}
	return append(b, '"')
}
