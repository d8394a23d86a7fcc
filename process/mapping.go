package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sort"
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

// DefaultMemory is how many bytes may be kept of what one process makes the kernel tell
// of it, unless LimitMemory says otherwise.
const DefaultMemory = 256 << 20

// Size returns the mapping's length in bytes.
func (m Mapping) Size() uint64 { return m.End - m.Start }

// Contains says whether addr lies in the mapping.
func (m Mapping) Contains(addr uint64) bool { return m.Start <= addr && addr < m.End }

// FindMapping returns the mapping at addr of maps that are in the order of their addresses, nil if there is none.
func FindMapping(maps []Mapping, addr uint64) *Mapping {
	i := sort.Search(len(maps), func(i int) bool { return maps[i].End > addr })
	if i == len(maps) || !maps[i].Contains(addr) {
		return nil
	}
	return &maps[i]
}

// SameMapping says whether the same place of the same file is mapped at addr in both, which are in the order of their addresses.
func SameMapping(before, now []Mapping, addr uint64) bool {
	a, b := FindMapping(before, addr), FindMapping(now, addr)
	return a != nil && b != nil && a.Dev == b.Dev && a.Inode == b.Inode && a.Path == b.Path && a.Special == b.Special &&
		a.Offset-a.Start == b.Offset-b.Start
}

var errMapsLine = errors.New("malformed line")

const deletedSuffix = " (deleted)"

// ParseMaps reads the text of a /proc/PID/maps file (proc_pid_maps(5)). The
// result owns its memory.
func ParseMaps(text []byte) ([]Mapping, error) {
	out := make([]Mapping, 0, bytes.Count(text, []byte{'\n'})+1)
	r := mapsReader{r: bytes.NewReader(text), most: int64(len(text))}
	err := r.each(func(m *Mapping) bool {
		out = append(out, *m)
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("maps: %w", err)
	}
	return out, nil
}

// A mapsReader reads the text of a maps file as it comes. A process decides how long
// that is: it may have as many mappings as the system allows (vm.max_map_count) of
// files whose paths take 16 KiB each, since newlines are escaped.
type mapsReader struct {
	r    io.Reader
	most int64 // bytes that may be read
	read int64
}

const (
	// maxMapsLine is above a line's length: PATH_MAX bytes, each escaped as four.
	maxMapsLine = 4*4096 + 256
	// mapsChunk is how much is read at a time, at most.
	mapsChunk = 64 << 10
)

// each calls visit with each mapping, all in the same variable, until it returns false.
func (r *mapsReader) each(visit func(*Mapping) bool) error {
	buf := make([]byte, 0, mapsChunk)
	var m Mapping
	var name []byte // m's, as it stands in the file
	for end := false; !end; {
		n, err := r.r.Read(buf[len(buf):cap(buf)])
		if end = errors.Is(err, io.EOF); err != nil && !end {
			return err
		}
		buf = buf[:len(buf)+n]
		rest := buf
		for {
			line, after, whole := bytes.Cut(rest, []byte{'\n'})
			if !whole && !(end && len(line) > 0) {
				break
			}
			var more bool
			if more, name, err = m.next(line, name, visit); err != nil {
				return fmt.Errorf("offset %d: %w", r.read, err)
			}
			if !more {
				return nil
			}
			if r.read += int64(len(line) + 1); r.read > r.most+1 {
				return fmt.Errorf("%w: more than %d MiB of text", ErrTooMuch, r.most>>20)
			}
			rest = after
			if !whole {
				break
			}
		}
		if len(rest) > maxMapsLine {
			return fmt.Errorf("offset %d: %w %q", r.read, errMapsLine, clip(rest))
		}
		buf = buf[:copy(buf, rest)]
	}
	return nil
}

// IsRecorders says whether it is a memfd with a name that recorders give theirs: stubs, rings, or what is to be restored. Anybody may name one so.
func (m *Mapping) IsRecorders() bool { return strings.HasPrefix(m.Path, "/memfd:callreel") }

// next makes the mapping of a line and has it visited. name is the one before's as it
// stood in the file, and is returned as this one's: neighbours mostly share their file,
// and then they share its name too.
func (m *Mapping) next(line, name []byte, visit func(*Mapping) bool) (more bool, own []byte, err error) {
	was := *m
	text, ok := m.parse(line)
	if !ok {
		return false, nil, fmt.Errorf("%w %q", errMapsLine, clip(line))
	}
	if bytes.Equal(text, name) && (was.Inode == 0) == (m.Inode == 0) {
		m.Path, m.Special, m.Deleted = was.Path, was.Special, was.Deleted
	} else {
		m.setName(string(text))
		name = append(name[:0], text...)
	}
	return visit(m), name, nil
}

func clip(line []byte) []byte { return line[:min(len(line), 120)] }

// parse makes m of a line, but for the name, which it returns.
func (m *Mapping) parse(line []byte) (name []byte, ok bool) {
	*m = Mapping{}
	var major, minor uint64
	rest := line
	if m.Start, rest, ok = hexUntil(rest, '-'); !ok {
		return nil, false
	}
	if m.End, rest, ok = hexUntil(rest, ' '); !ok || m.End < m.Start || len(rest) < 5 || rest[4] != ' ' {
		return nil, false
	}
	m.Perm, rest = parsePerm(rest[:4]), rest[5:]
	if m.Offset, rest, ok = hexUntil(rest, ' '); !ok {
		return nil, false
	}
	if major, rest, ok = hexUntil(rest, ':'); !ok {
		return nil, false
	}
	if minor, rest, ok = hexUntil(rest, ' '); !ok || major>>32 != 0 || minor>>32 != 0 {
		return nil, false
	}
	m.Dev = major<<32 | minor
	if m.Inode, rest, ok = decimalPrefix(rest); !ok {
		return nil, false
	}
	return bytes.TrimLeft(rest, " "), true
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
