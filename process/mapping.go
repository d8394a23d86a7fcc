package process

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// Perm is what a mapping allows.
type Perm uint8

// The bits of a Perm.
const (
	PermRead Perm = 1 << iota
	PermWrite
	PermExec
	PermShared // changes go to the file and to other processes
)

// String writes p as /proc/PID/maps does: "r-xp".
func (p Perm) String() string {
	out := []byte("---p")
	for i, c := range "rwx" {
		if p&(1<<i) != 0 {
			out[i] = byte(c)
		}
	}
	if p&PermShared != 0 {
		out[3] = 's'
	}
	return string(out)
}

// A Mapping is one line of /proc/PID/maps: the memory [Start, End).
type Mapping struct {
	Start, End uint64 // addresses, multiples of the page size
	Offset     uint64 // in the file, in bytes
	Inode      uint64 // 0 when no file is behind it
	Dev        uint64 // major<<32 | minor
	Path       string // of the file, as the process sees it, without " (deleted)"
	Special    string // "[stack]", "[vdso]", "[heap]", "[anon:…]"; then Path is empty
	Perm       Perm
	Deleted    bool // the file no longer has this name
}

// Size returns the mapping's length in bytes.
func (m Mapping) Size() uint64 { return m.End - m.Start }

// Contains says whether addr lies in the mapping.
func (m Mapping) Contains(addr uint64) bool { return m.Start <= addr && addr < m.End }

var errMapsLine = errors.New("malformed line")

const deletedSuffix = " (deleted)"

// ParseMaps reads the text of a /proc/PID/maps file (proc_pid_maps(5)). The
// result owns its memory.
func ParseMaps(text []byte) ([]Mapping, error) {
	out := make([]Mapping, 0, bytes.Count(text, []byte{'\n'})+1)
	for offset := 0; offset < len(text); {
		line := text[offset:]
		if end := bytes.IndexByte(line, '\n'); end >= 0 {
			line = line[:end]
		}
		m, ok := parseMapsLine(line)
		if !ok {
			return nil, fmt.Errorf("maps: offset %d: %w %q", offset, errMapsLine, clip(line))
		}
		// Neighbours mostly share their file: then they share its name too.
		if n := len(out); n > 0 && out[n-1].Path == m.Path {
			m.Path = out[n-1].Path
		}
		out = append(out, m)
		offset += len(line) + 1
	}
	return out, nil
}

func clip(line []byte) []byte { return line[:min(len(line), 120)] }

func parseMapsLine(line []byte) (m Mapping, ok bool) {
	var major, minor uint64
	rest := line
	if m.Start, rest, ok = hexUntil(rest, '-'); !ok {
		return m, false
	}
	if m.End, rest, ok = hexUntil(rest, ' '); !ok || m.End < m.Start || len(rest) < 5 || rest[4] != ' ' {
		return m, false
	}
	m.Perm, rest = parsePerm(rest[:4]), rest[5:]
	if m.Offset, rest, ok = hexUntil(rest, ' '); !ok {
		return m, false
	}
	if major, rest, ok = hexUntil(rest, ':'); !ok {
		return m, false
	}
	if minor, rest, ok = hexUntil(rest, ' '); !ok || major>>32 != 0 || minor>>32 != 0 {
		return m, false
	}
	m.Dev = major<<32 | minor
	if m.Inode, rest, ok = decimalPrefix(rest); !ok {
		return m, false
	}
	m.setName(string(bytes.TrimLeft(rest, " ")))
	return m, true
}

func parsePerm(text []byte) (p Perm) {
	for i, c := range []byte("rwx") {
		if text[i] == c {
			p |= 1 << i
		}
	}
	if text[3] == 's' {
		p |= PermShared
	}
	return p
}

func (m *Mapping) setName(name string) {
	if m.Inode == 0 && strings.HasPrefix(name, "[") {
		m.Special = name
		return
	}
	if strings.HasSuffix(name, deletedSuffix) {
		m.Deleted = true
		name = name[:len(name)-len(deletedSuffix)]
	}
	// The kernel escapes the newline, and nothing else.
	m.Path = strings.ReplaceAll(name, `\012`, "\n")
}

func hexUntil(text []byte, stop byte) (v uint64, rest []byte, ok bool) {
	for i, c := range text {
		switch {
		case c == stop:
			return v, text[i+1:], i > 0
		case i == 16:
			return 0, nil, false
		case '0' <= c && c <= '9':
			v = v<<4 | uint64(c-'0')
		case 'a' <= c && c <= 'f':
			v = v<<4 | uint64(c-'a'+10)
		default:
			return 0, nil, false
		}
	}
	return 0, nil, false
}

func decimalPrefix(text []byte) (v uint64, rest []byte, ok bool) {
	i := 0
	for ; i < len(text) && '0' <= text[i] && text[i] <= '9'; i++ {
		if i == 20 {
			return 0, nil, false
		}
		v = v*10 + uint64(text[i]-'0')
	}
	if i == 0 || i < len(text) && text[i] != ' ' {
		return 0, nil, false
	}
	return v, text[i:], true
}
