package symbolize

import "strings"

// mapping is one line of /proc/PID/maps (proc_pid_maps(5)).
type mapping struct {
	start, end, offset uint64
	file               string // device, inode and path: what makes two lines one file's
	path               string // "" for memory without a file
	gone               bool
}

// parseMapping reads a line such as
//
//	7f5d0c400000-7f5d0c428000 r-xp 00026000 08:01 3146 /usr/lib/libc.so.6
func parseMapping(line string) (m mapping, ok bool) {
	span, rest, ok1 := strings.Cut(line, " ")
	start, end, ok2 := strings.Cut(span, "-")
	perm, rest, ok3 := strings.Cut(rest, " ")
	offset, rest, ok4 := strings.Cut(rest, " ")
	if !ok1 || !ok2 || !ok3 || !ok4 || len(perm) != 4 || strings.Trim(perm, "rwxps-") != "" {
		return m, false
	}
	m.start, ok1 = parseHex(start)
	m.end, ok2 = parseHex(end)
	m.offset, ok3 = parseHex(offset)
	device, rest, _ := strings.Cut(rest, " ")
	inode, path, _ := strings.Cut(rest, " ")
	if !ok1 || !ok2 || !ok3 || m.end <= m.start || !strings.Contains(device, ":") || strings.Trim(inode, "0123456789") != "" {
		return m, false
	}
	m.path = strings.TrimLeft(path, " ")
	m.file = device + " " + inode + " " + m.path
	m.path, m.gone = strings.CutSuffix(m.path, " (deleted)")
	return m, true
}

// joiner makes images of mappings: a loader maps one file in several pieces, one after
// the other, with rising offsets.
type joiner struct {
	image  *Image
	file   string
	offset uint64 // of the last piece
}

// line takes the next line, a mapping or not, and returns the image that it ends, if any.
func (j *joiner) line(l *line) (done *Image) {
	if l.kind == mappingLine {
		return j.add(l.mapping)
	}
	return j.flush()
}

// add takes the next mapping and returns the image that it ends, if any.
func (j *joiner) add(m mapping) (done *Image) {
	if m.path == "" {
		return nil // .bss, or a gap: the image may go on behind it
	}
	// The page between two segments may be mapped with both: then offsets are equal.
	if j.image != nil && m.file == j.file && m.offset > 0 && m.offset >= j.offset && m.start >= j.image.end() {
		j.image.Size = m.end - j.image.Load
		j.offset = m.offset
		return nil
	}
	done = j.flush()
	j.image = &Image{Path: m.path, Load: m.start, Size: m.end - m.start, Offset: m.offset, Gone: m.gone}
	j.file, j.offset = m.file, m.offset
	return done
}

// flush returns the image that was being joined, if any.
func (j *joiner) flush() *Image {
	done := j.image
	j.image = nil
	return done
}
