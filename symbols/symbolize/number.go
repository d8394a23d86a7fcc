package symbolize

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// parseHex reads 1 to 16 hexadecimal digits with nothing around them.
func parseHex(text string) (uint64, bool) {
	if len(text) == 0 || len(text) > 16 {
		return 0, false
	}
	var v uint64
	for k := range len(text) {
		c := text[k]
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		v = v<<4 | uint64(c)
	}
	return v, true
}

// parse0x reads "0x" and hexadecimal digits; zeros may pad them to any width.
func parse0x(text string) (uint64, bool) {
	if len(text) < 3 || text[0] != '0' || text[1]|0x20 != 'x' {
		return 0, false
	}
	digits := text[2:]
	for len(digits) > 16 && digits[0] == '0' {
		digits = digits[1:]
	}
	return parseHex(digits)
}

// parseNumber reads "0x…" or decimal digits.
func parseNumber(text string) (uint64, bool) {
	if v, ok := parse0x(text); ok {
		return v, true
	}
	if text == "" || text[0] < '0' || text[0] > '9' { // no sign
		return 0, false
	}
	v, err := strconv.ParseUint(text, 10, 64)
	return v, err == nil
}

// jsonNumber is an address or a size in JSON: a whole number of decimal digits, or "0x…".
// Fractions and exponents are refused, since numbers that went through floating point
// are no longer the addresses that they were.
type jsonNumber struct {
	value uint64
	given bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *jsonNumber) UnmarshalJSON(raw []byte) error {
	if bytes.Equal(raw, []byte("null")) {
		return nil
	}
	var ok bool
	if raw[0] == '"' {
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return err
		}
		n.value, ok = parse0x(text)
	} else if v, err := strconv.ParseUint(string(raw), 10, 64); err == nil {
		n.value, ok = v, true
	}
	if !ok {
		return fmt.Errorf("%.40q is neither a whole number below 2^64 nor \"0x…\"", raw)
	}
	n.given = true
	return nil
}

// hex is how addresses are written in JSON.
func hex(v uint64) string { return "0x" + strconv.FormatUint(v, 16) }
