package object

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// The layout of archives of object files: a magic, and a header of 60 bytes of text
// before each member (the ar format of System V and BSD).
const (
	archiveMagic      = "!<arch>\n"
	archiveHeaderSize = 60
	archiveHeaderEnd  = "`\n"
)

// member is a file in an archive.
type member struct {
	name    string
	modTime int64 // seconds since 1970
	span
}

// readArchive lists the members of an archive.
func readArchive(path string, data []byte) ([]member, error) {
	if !bytes.HasPrefix(data, []byte(archiveMagic)) {
		return nil, fmt.Errorf("object: %s: not an archive", path)
	}
	var members []member
	var longNames string // GNU's "//" member
	end := uint64(len(data))
	for at := uint64(len(archiveMagic)); end-at >= archiveHeaderSize; {
		h := string(data[at : at+archiveHeaderSize])
		size, err := strconv.ParseUint(strings.TrimRight(h[48:58], " "), 10, 63)
		if err != nil || h[58:] != archiveHeaderEnd || size > end-at-archiveHeaderSize {
			return members, fmt.Errorf("object: %s: archive header at %#x: damaged", path, at)
		}
		m := member{name: strings.TrimRight(h[:16], " "), span: span{at + archiveHeaderSize, size}}
		m.modTime, _ = strconv.ParseInt(strings.TrimRight(h[16:28], " "), 10, 64) // 0 means that it is not told
		body := data[m.off : m.off+size]
		at = m.off + size
		at += min(at&1, end-at) // members start at even offsets
		if m.name == "//" {
			longNames = string(body)
			continue
		}
		if m.resolveName(body, longNames) {
			members = append(members, m)
		}
	}
	return members, nil
}

// resolveName finds the name of a member where it is too long for the header: in
// front of the contents (BSD, "#1/20") or in a member of its own (GNU, "/123"). It
// is false for what is no file: indices.
func (m *member) resolveName(body []byte, longNames string) bool {
	if count, ok := strings.CutPrefix(m.name, "#1/"); ok {
		n, err := strconv.ParseUint(count, 10, 32)
		if err != nil || n > m.size {
			return false
		}
		name, _, _ := bytes.Cut(body[:n], []byte{0})
		m.name, m.off, m.size = string(name), m.off+n, m.size-n
	} else if at, ok := strings.CutPrefix(m.name, "/"); ok {
		n, err := strconv.ParseUint(at, 10, 32)
		if err != nil || n >= uint64(len(longNames)) {
			return false
		}
		m.name, _, _ = strings.Cut(longNames[n:], "/")
	} else {
		m.name = strings.TrimSuffix(m.name, "/")
	}
	return !strings.HasPrefix(m.name, "__.SYMDEF")
}
