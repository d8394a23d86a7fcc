// Package safejson writes JSON that may go to a terminal.
package safejson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Marshal returns v as JSON on one line, with all characters escaped that a terminal may obey or that change how others are shown:
// encoding/json leaves DEL, those from U+0080 to U+009F, and invisible ones, such as those that turn text around.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // C++ names are full of < and &
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	text := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if bytes.IndexFunc(text, isUnsafe) < 0 {
		return text, nil
	}
	escaped := make([]byte, 0, len(text)+16)
	for len(text) > 0 { // outside strings there are none
		r, n := utf8.DecodeRune(text)
		switch {
		case isUnsafe(r) && r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			escaped = fmt.Appendf(escaped, `\u%04x\u%04x`, high, low)
		case isUnsafe(r):
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		default:
			escaped = append(escaped, text[:n]...)
		}
		text = text[n:]
	}
	return escaped, nil
}

// AppendString appends a text as Marshal writes it.
func AppendString(b []byte, text string) []byte {
	for k := range len(text) {
		if c := text[k]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			escaped, err := Marshal(text)
			if err != nil { // which can't be for a string
				panic(err)
			}
			return append(b, escaped...)
		}
	}
	return append(append(append(b, '"'), text...), '"')
}

func isUnsafe(r rune) bool { return r >= 0x7F && r <= 0x9F || r > 0x9F && unicode.Is(unicode.Cf, r) }
