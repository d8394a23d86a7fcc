package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"
)

// jsonText is v as JSON on one line, with all control characters escaped: encoding/json leaves DEL and those from
// U+0080 to U+009F, which some terminals obey.
func jsonText(v any) ([]byte, error) {
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

// writeJSON writes v and a newline.
func writeJSON(w io.Writer, v any) error {
	text, err := jsonText(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// jsonList streams a key and its list, an item a line.
func jsonList(w *bufio.Writer, key string, n int, item func(i int) any) error {
	fmt.Fprintf(w, "%q:[", key)
	for i := range n {
		if i > 0 {
			w.WriteByte(',')
		}
		line, err := jsonText(item(i))
		if err != nil {
			return err
		}
		w.WriteByte('\n')
		w.Write(line)
	}
	w.WriteString("]")
	return nil
}
