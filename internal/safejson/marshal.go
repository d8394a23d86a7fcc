// Package safejson writes JSON that may go to a terminal.
package safejson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Marshal returns v as JSON on one line, with all control characters escaped: encoding/json leaves DEL and those from
// U+0080 to U+009F, which some terminals obey.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // C++ names are full of < and &
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	text := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	isControl := func(r rune) bool { return r >= 0x7F && r <= 0x9F }
	if bytes.IndexFunc(text, isControl) < 0 {
		return text, nil
	}
	escaped := make([]byte, 0, len(text)+16)
	for len(text) > 0 { // outside strings there are none
		r, n := utf8.DecodeRune(text)
		if isControl(r) {
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		} else {
			escaped = append(escaped, text[:n]...)
		}
		text = text[n:]
	}
	return escaped, nil
}
