package demangle

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// legacySuffix is how the last part of a name in Rust's first mangling begins: a hash of
// what the name does not say, 'h' and 16 hexadecimal digits.
const legacySuffix = "17h"

// rustLegacyName returns what a name in the first mangling of Rust stands for, without the
// hash at its end. It is that of C++ for nested names, with escapes: ok says whether it is
// one.
func rustLegacyName(s string, short bool) (name string, ok bool) {
	text, isNested := strings.CutPrefix(s, "_ZN")
	if !isNested {
		return "", false
	}
	end := legacyEnd(text)
	if end < 0 {
		return "", false
	}
	suffix := text[end+1:]
	if suffix != "" && suffix[0] != '.' {
		return "", false
	}
	var out strings.Builder
	for text = text[:end]; text != ""; {
		part, rest, ok := legacyPart(text)
		if !ok {
			return "", false
		}
		if rest == "" && legacyHash(part) {
			break
		}
		if out.Len() > 0 {
			out.WriteString("::")
		}
		writeLegacy(&out, part)
		text = rest
	}
	if out.Len() == 0 {
		return "", false
	}
	// Linkers' suffixes of what had to be given a name of its own say nothing.
	if suffix != "" && !short && !strings.HasPrefix(suffix, ".llvm.") {
		out.WriteString(" (" + suffix + ")")
	}
	return out.String(), true
}

// legacyEnd is where the E stands behind a hash, -1 if there is none.
func legacyEnd(text string) int {
	const hash = len(legacySuffix) + 16
	for from := 0; ; {
		at := strings.Index(text[from:], legacySuffix)
		if at < 0 || from+at+hash >= len(text) {
			return -1
		}
		if at += from; text[at+hash] == 'E' && legacyHash(text[at+2:at+hash]) {
			return at + hash
		}
		from = at + 1
	}
}

// legacyHash says whether a part of a name is a hash. C++ may have a name of this form, but
// not one of so many digits that are so different.
func legacyHash(part string) bool {
	if len(part) != 17 || part[0] != 'h' {
		return false
	}
	seen := [16]bool{}
	different := 0
	for _, c := range []byte(part[1:]) {
		digit := 0
		switch {
		case isDigit(c):
			digit = int(c - '0')
		case c >= 'a' && c <= 'f':
			digit = int(c-'a') + 10
		default:
			return false
		}
		if !seen[digit] {
			seen[digit] = true
			different++
		}
	}
	const enough = 5 // as GNU's demangler has it
	return different >= enough
}

// legacyPart cuts off a length and that many bytes.
func legacyPart(text string) (part, rest string, ok bool) {
	k := 0
	for k < len(text) && isDigit(text[k]) {
		k++
	}
	n, err := strconv.Atoi(text[:k])
	if err != nil || n == 0 || n > len(text)-k {
		return "", "", false
	}
	return text[k : k+n], text[k+n:], true
}

// legacyEscapes are the characters that stand between two $, save those given by number.
var legacyEscapes = map[string]string{
	"SP": "@", "BP": "*", "RF": "&", "LT": "<", "GT": ">", "LP": "(", "RP": ")", "C": ",",
}

// writeLegacy writes a part of a name with its escapes undone. From an unknown one on it is
// written as it is.
func writeLegacy(out *strings.Builder, part string) {
	if strings.HasPrefix(part, "_$") {
		part = part[1:] // it begins with an underscore since identifiers don't begin with a $
	}
	for part != "" {
		switch part[0] {
		case '.':
			if strings.HasPrefix(part, "..") {
				out.WriteString("::")
				part = part[2:]
				continue
			}
			out.WriteByte('.')
			part = part[1:]
		case '$':
			name, rest, _ := strings.Cut(part[1:], "$")
			text, ok := legacyEscape(name)
			if !ok || len(name)+1 == len(part) {
				out.WriteString(part)
				return
			}
			out.WriteString(text)
			part = rest
		default:
			end := strings.IndexAny(part, "$.")
			if end < 0 {
				end = len(part)
			}
			out.WriteString(part[:end])
			part = part[end:]
		}
	}
}

// legacyEscape returns what stands between two $ for.
func legacyEscape(name string) (string, bool) {
	if text, ok := legacyEscapes[name]; ok {
		return text, true
	}
	digits, ok := strings.CutPrefix(name, "u")
	if !ok || len(digits) > 6 {
		return "", false
	}
	n, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || !utf8.ValidRune(rune(n)) || n < ' ' || n == 0x7f {
		return "", false
	}
	return string(rune(n)), true
}
