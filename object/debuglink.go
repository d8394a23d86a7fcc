package object

import "bytes"

// GnuDebugLink returns the file name and the CRC-32 of the separate debug file
// that .gnu_debuglink names; false when the image names none. The name comes from
// the file and must not be trusted as a path.
func (i *Image) GnuDebugLink() (name string, crc uint32, ok bool) {
	s := i.Section(".gnu_debuglink")
	if s == nil {
		return "", 0, false
	}
	raw, err := i.SectionData(s)
	if err != nil {
		return "", 0, false
	}
	end := bytes.IndexByte(raw, 0)
	at := (end + 1 + 3) &^ 3
	if end <= 0 || len(raw)-at < 4 {
		return "", 0, false
	}
	return string(raw[:end]), i.ByteOrder.Uint32(raw[at:]), true
}

// GnuDebugAltLink returns the path and the ID of the file that .gnu_debugaltlink
// names: the common part that dwz took out of several debug files; false when the
// image names none. The path comes from the file and must not be trusted. The ID
// aliases the mapping.
func (i *Image) GnuDebugAltLink() (path string, id []byte, ok bool) {
	s := i.Section(".gnu_debugaltlink")
	if s == nil {
		return "", nil, false
	}
	raw, err := i.SectionData(s)
	if err != nil {
		return "", nil, false
	}
	end := bytes.IndexByte(raw, 0)
	if end <= 0 || len(raw)-end-1 > maxBuildID {
		return "", nil, false
	}
	return string(raw[:end]), raw[end+1:], true
}
