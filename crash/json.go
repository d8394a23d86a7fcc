package crash

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// number is a whole number of JSON: positive, negative, larger than 63 bits, in a fraction that
// means one, or in text as "0x…".
type number uint64

// UnmarshalJSON implements json.Unmarshaler. What is no number is 0.
func (n *number) UnmarshalJSON(b []byte) error {
	text := string(bytes.Trim(b, `"`))
	*n = 0
	if v, err := strconv.ParseUint(text, 0, 64); err == nil {
		*n = number(v)
	} else if v, err := strconv.ParseInt(text, 0, 64); err == nil {
		*n = number(v)
	} else if v, err := strconv.ParseFloat(text, 64); err == nil && v >= 0 && v < 1<<63 {
		*n = number(v)
	}
	return nil
}

// words is text of JSON; of another value its JSON.
type words string

// UnmarshalJSON implements json.Unmarshaler.
func (t *words) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		*t = words(s)
		return nil
	}
	if text := strings.TrimSpace(string(b)); text != "null" {
		*t = words(text)
	}
	return nil
}

// loose is a value that may have another form in some versions: then it is taken for absent.
type loose[T any] struct{ V T }

// UnmarshalJSON implements json.Unmarshaler.
func (l *loose[T]) UnmarshalJSON(b []byte) error {
	var v T
	if json.Unmarshal(b, &v) == nil {
		l.V = v
	}
	return nil
}
