package symbols

import "bytes"

// splitPath joins what DWARF says about a file and cuts it into directory, without
// the last slash, and base name. An absolute part makes those before it void; nothing
// is cleaned, since symbolic links may stand in the path. buf is appended to.
func splitPath(buf, compDir, dir, name []byte) (dirOut, base []byte) {
	for _, part := range [...][]byte{compDir, dir, name} {
		if len(part) == 0 {
			continue
		}
		if absolute(part) {
			buf = buf[:0]
		} else if len(buf) > 0 && buf[len(buf)-1] != '/' {
			buf = append(buf, '/')
		}
		buf = append(buf, part...)
	}
	at := bytes.LastIndexByte(buf, '/')
	switch {
	case at < 0:
		return nil, buf
	case at == 0:
		return buf[:1], buf[1:]
	}
	return buf[:at], buf[at+1:]
}

// absolute says whether a path starts at a root, of Unix or of Windows.
func absolute(path []byte) bool {
	if path[0] == '/' || path[0] == '\\' {
		return true
	}
	letter := path[0] | 0x20
	return len(path) > 2 && letter >= 'a' && letter <= 'z' && path[1] == ':' && (path[2] == '/' || path[2] == '\\')
}
