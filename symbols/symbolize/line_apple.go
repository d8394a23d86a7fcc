package symbolize

import (
	"strconv"
	"strings"
)

// apple reads the two kinds of lines of Apple's crash reports that hold addresses: frames,
// which its backtrace_symbols prints too, and images.
func (l *line) apple(body string, lead int) bool {
	if strings.HasPrefix(body, "0x") {
		return l.appleImage(body)
	}
	return l.appleFrame(body, lead)
}

// appleFrame reads "3   prog   0x0000000100003f4c 0x100000000 + 16204". Names may have blanks.
func (l *line) appleFrame(body string, lead int) bool {
	digits := leadingDigits(body)
	if digits == 0 || digits > 4 || digits == len(body) || body[digits] != ' ' && body[digits] != '\t' {
		return false
	}
	at := strings.Index(body, "0x")
	if at < digits+3 || strings.TrimSpace(body[digits:at]) == "" || body[at-1] != ' ' && body[at-1] != '\t' {
		return false
	}
	word := body[at : at+wordEnd(body[at:])]
	v, ok := parse0x(word)
	const leastDigits = 10 // "0x" and 8: Apple pads to 16, or 8 where addresses have 32 bits
	if !ok || len(word) < leastDigits {
		return false
	}
	l.index, _ = strconv.Atoi(body[:digits])
	l.kind, l.after = frameLine, lead+at+len(word)
	l.frame = Frame{Address: v}
	if l.index > 0 {
		l.frame.Kind = Return
	}
	return true
}

// appleImage reads "0x100000000 - 0x100003fff +prog arm64 (1.0) <4C4C44…> /path/prog". The
// last address belongs to the image; it is "???" where it is not known.
func (l *line) appleImage(body string) bool {
	first, rest, ok := strings.Cut(body, "-")
	load, ok1 := parse0x(strings.TrimSpace(first))
	if !ok || !ok1 {
		return false
	}
	rest = strings.TrimLeft(rest, " ")
	last, rest, ok := strings.Cut(rest, " ")
	l.image = Image{Load: load}
	if end, known := parse0x(last); known && end >= load {
		l.image.Size = end - load + 1
	} else if strings.Trim(last, "?") != "" {
		return false
	}
	open := strings.Index(rest, "<")
	if !ok || open < 0 {
		return false
	}
	id, path, ok := strings.Cut(rest[open+1:], ">")
	if !ok {
		return false
	}
	if l.image.ID, ok = parseID(id); !ok {
		return false
	}
	l.image.Path = strings.Trim(path, " \t\r")
	for word := range strings.FieldsSeq(rest[:open]) {
		if isAppleArch(word) {
			l.image.Arch = word
		}
	}
	if l.image.Path == "" {
		name, _, _ := strings.Cut(strings.TrimLeft(rest[:open], " +"), " ")
		l.image.Path = name
	}
	l.kind = imageLine
	return true
}

// isAppleArch says whether a word of a report names an architecture.
func isAppleArch(word string) bool {
	switch word {
	case "x86_64", "x86_64h", "i386", "arm64", "arm64e", "armv7", "armv7s", "armv7k", "ppc", "ppc64":
		return true
	}
	return false
}
