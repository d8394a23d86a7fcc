package needed

import (
	"bytes"
	"encoding/binary"
	"os"
	"slices"
)

// cacheFile is glibc's list of libraries, which ldconfig(8) makes.
const cacheFile = "/etc/ld.so.cache"

// cache is the paths of libraries, by name, as they stand in glibc's cache.
type cache map[string][]string

// The cache's form (sysdeps/generic/dl-cache.h of glibc): a magic text, the number of entries and the size of the strings, each in 4 bytes,
// up to 48 bytes in all; then entries of flags, the offsets of name and path, and what they are good for.
const (
	cacheMagic  = "glibc-ld.so.cache1.1"
	cacheHeader = 48
	cacheEntry  = 24
	maxCache    = 64 << 20 // bytes
	maxSameName = 8
)

// readCache reads the cache; it is nil where there is none that is understood.
func readCache(path string) cache {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxCache {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return parseCache(data)
}

func parseCache(data []byte) cache {
	if at := bytes.Index(data, []byte(cacheMagic)); at > 0 { // behind one of the older form
		data = data[at:]
	}
	if len(data) < cacheHeader || !bytes.HasPrefix(data, []byte(cacheMagic)) {
		return nil
	}
	order := binary.LittleEndian
	count := min(uint64(order.Uint32(data[len(cacheMagic):])), uint64(len(data)-cacheHeader)/cacheEntry)
	c := cache{}
	for e := data[cacheHeader : cacheHeader+count*cacheEntry]; len(e) > 0; e = e[cacheEntry:] {
		name, path := textAt(data, order.Uint32(e[4:])), textAt(data, order.Uint32(e[8:]))
		if name != "" && path != "" && len(c[name]) < maxSameName && !slices.Contains(c[name], path) {
			c[name] = append(c[name], path)
		}
	}
	return c
}

// textAt is the text at an offset, "" if there is none.
func textAt(data []byte, at uint32) string {
	const maxText = 4096 // PATH_MAX
	if uint64(at) >= uint64(len(data)) {
		return ""
	}
	rest := data[at:]
	text, _, ok := bytes.Cut(rest[:min(len(rest), maxText)], []byte{0})
	if !ok {
		return ""
	}
	return string(text)
}
