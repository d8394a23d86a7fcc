package lint

import (
	"encoding/binary"
	"sort"

	"github.com/callreel/callreel/isa/amd64"
)

// callSite is a range of code whose calls may be left by an exception, and where that goes on.
type callSite struct{ start, end, pad uint64 }

// Pointer encodings of language-specific data (LSB Core 5.0 §10.5.1) that are told apart here.
const (
	encOmit     = 0xff
	encFormat   = 0x0f
	encRelation = 0x70
	encPCRel    = 0x10
	encULEB     = 0x01
)

// maxLSDA bounds the bytes of one function's data.
const maxLSDA = 1 << 20

// callSites reads the call-site table of a function's language-specific data (Itanium C++ ABI, Exception Handling
// Tables). What cannot be read gives none. It takes the bytes that it reads off left, and reads no more.
func callSites(lsda, function uint64, read func(addr, n uint64) ([]byte, error), left *int) []callSite {
	r := lsdaReader{read: read, at: lsda, left: min(maxLSDA, *left)}
	whole := r.left
	defer func() { *left -= whole - max(r.left, 0) }()
	base := function
	if enc := r.byte(); enc != encOmit {
		base = r.pointer(enc)
	}
	if enc := r.byte(); enc != encOmit {
		r.uleb() // where the types end
	}
	enc := r.byte()
	size := r.uleb()
	if r.failed || size > maxLSDA {
		return nil
	}
	var list []callSite
	for end := r.at + size; r.at < end; {
		start := r.pointer(enc & encFormat)
		length := r.pointer(enc & encFormat)
		pad := r.pointer(enc & encFormat)
		r.uleb() // the action
		if r.failed {
			return nil
		}
		if pad != 0 {
			list = append(list, callSite{function + start, function + start + length, base + pad})
		}
	}
	sort.SliceStable(list, func(a, b int) bool { return list[a].start < list[b].start })
	return list
}

// lsdaReader reads on through memory; after a failure it gives zeros.
type lsdaReader struct {
	read   func(addr, n uint64) ([]byte, error)
	at     uint64
	left   int
	buffer []byte
	failed bool
}

func (r *lsdaReader) bytes(n uint64) []byte {
	var none [8]byte
	if uint64(len(r.buffer)) < n {
		for size := uint64(4096); ; size /= 2 { // what is mapped may end soon
			b, err := r.read(r.at, size)
			if err == nil {
				r.buffer = b
				break
			}
			if size <= n {
				break
			}
		}
	}
	if r.left -= int(n); r.failed || uint64(len(r.buffer)) < n || r.left < 0 {
		r.failed = true
		return none[:n]
	}
	b := r.buffer[:n]
	r.buffer = r.buffer[n:]
	r.at += n
	return b
}

func (r *lsdaReader) byte() byte { return r.bytes(1)[0] }

func (r *lsdaReader) uleb() (v uint64) {
	for shift := uint(0); shift < 64; shift += 7 {
		b := r.byte()
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v
		}
	}
	r.failed = true
	return 0
}

// pointer reads a value of the encodings that compilers use here.
func (r *lsdaReader) pointer(enc byte) (v uint64) {
	at := r.at
	switch enc & encFormat {
	case encULEB:
		v = r.uleb()
	case 0x02:
		v = uint64(binary.LittleEndian.Uint16(r.bytes(2)))
	case 0x03:
		v = uint64(binary.LittleEndian.Uint32(r.bytes(4)))
	case 0x0b:
		v = uint64(int64(int32(binary.LittleEndian.Uint32(r.bytes(4)))))
	case 0x00, 0x04, 0x0c:
		v = binary.LittleEndian.Uint64(r.bytes(8))
	default:
		r.failed = true
	}
	switch enc & encRelation {
	case 0:
	case encPCRel:
		v += at
	default:
		r.failed = true
	}
	return v
}

// pads ties the calls of a function to where exceptions that they throw go on.
func (f *function) pads() {
	for k := range f.parts {
		for _, site := range f.parts[k].sites {
			f.explore(site.pad)
		}
	}
	f.link(0)
	for id := range f.nodes {
		n := &f.nodes[id]
		n.pad = -1
		sites := f.parts[n.part].sites
		if n.inst.Kind != amd64.Call && n.inst.Kind != amd64.IndirectCall || len(sites) == 0 {
			continue
		}
		k := sort.Search(len(sites), func(k int) bool { return sites[k].end > n.addr })
		if k < len(sites) && n.addr >= sites[k].start {
			if n.pad = f.nodeAt(sites[k].pad); n.pad >= 0 {
				f.nodes[n.pad].leader = true
			}
		}
	}
}
