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

// maxMemberName bounds a name that stands before a member's contents.
const maxMemberName = 4096

// member is a file in an archive.
type member struct {
	name    string
	modTime int64 // seconds since 1970
	span
}

// readArchive lists the members of an archive.
func readArchive(path string, c *contents) ([]member, error) {
	end := uint64(len(c.data))
	magic, err := c.slice(0, min(end, uint64(len(archiveMagic))))
	if err != nil {
		return nil, fmt.Errorf("object: %s: magic %w", path, err)
	}
	if string(magic) != archiveMagic {
		return nil, fmt.Errorf("object: %s: not an archive", path)
	}
	var members []member
	var longNames string // GNU's "//" member
	for at := uint64(len(archiveMagic)); end-at >= archiveHeaderSize; {
		raw, err := c.slice(at, archiveHeaderSize)
		if err != nil {
			return members, fmt.Errorf("object: %s: archive header at %#x: %w", path, at, err)
		}
		h := string(raw)
		size, err := strconv.ParseUint(strings.TrimRight(h[48:58], " "), 10, 63)
		if err != nil || h[58:] != archiveHeaderEnd || size > end-at-archiveHeaderSize {
			return members, fmt.Errorf("object: %s: archive header at %#x: damaged", path, at)
		}
		m := member{name: strings.TrimRight(h[:16], " "), span: span{at + archiveHeaderSize, size}}
		m.modTime, _ = strconv.ParseInt(strings.TrimRight(h[16:28], " "), 10, 64) // 0 means that it is not told
		// What names may stand in: all of the member of long names, which comes first, and
		// else what may be before the contents.
		named := size
		if m.name != "//" {
			named = min(size, maxMemberName)
		}
		body, err := c.slice(m.off, named)
		if err != nil {
			return members, fmt.Errorf("object: %s: archive member at %#x: %d bytes %w", path, m.off, named, err)
		}
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
		if err != nil || n > uint64(len(body)) {
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

// member parses the image that an archive has in a span of its contents.
func (c *contents) member(name string, at span, arch string) (*Image, error) {
	data, err := c.slice(at.off, at.size)
	if err != nil {
		return nil, fmt.Errorf("object: %s: %d bytes %w", name, at.size, err)
	}
	return ParseArch(name, data, arch)
}
