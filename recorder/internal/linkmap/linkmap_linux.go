package linkmap

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/callreel/callreel/process"
)

// List follows the list of libraries that the dynamic loader keeps for debuggers (struct r_debug and link_map of <link.h>,
// which glibc and musl have), from outside and without a stop: its end is read in one system call, and compared with
// what it was. It is the target's memory, so it is only taken as a hint to look at the mappings.
//
// Loaders add at the end, so the last entries tell of everything that has come. What has gone is not looked for here: see marks.
type List struct {
	p     *process.Process
	debug uint64        // address of r_debug
	vecs  []process.Vec // r_debug and the last link_maps, to read into
	was   [][]byte      // what they were
}

// Parts of struct r_debug: version, map, brk, state; of struct link_map: addr, name, ld, next, prev.
const (
	DebugSize  = 32
	debugMap   = 8
	DebugState = 24
	linkSize   = 40
	linkNext   = 24
	// lastLinks are how many of them are compared.
	lastLinks = 4
	// maxLinks bounds a list that may be damaged.
	maxLinks = 1 << 14
)

// Find finds the list; nil if the program has none (a static one).
func Find(p *process.Process) *List {
	debug, err := FindDebug(p)
	if err != nil || debug == 0 {
		return nil
	}
	return &List{p: p, debug: debug}
}

// FindDebug follows the program headers to the dynamic section's DT_DEBUG.
func FindDebug(p *process.Process) (uint64, error) {
	const (
		phdrSize  = 56
		ptDynamic = 2
		ptPhdr    = 6
		dtDebug   = 21
		mostPhdrs = 1 << 10
	)
	auxv, err := p.Auxv()
	if err != nil || auxv.Phdr == 0 || auxv.Phnum == 0 || auxv.Phnum > mostPhdrs {
		return 0, err
	}
	le := binary.LittleEndian
	headers := make([]byte, auxv.Phnum*phdrSize)
	if _, err := p.ReadAt(headers, auxv.Phdr); err != nil {
		return 0, err
	}
	slide, dynamic, size, found := uint64(0), uint64(0), uint64(0), false
	for h := headers; len(h) > 0; h = h[phdrSize:] {
		switch le.Uint32(h) {
		case ptPhdr:
			slide = auxv.Phdr - le.Uint64(h[16:])
		case ptDynamic:
			dynamic, size, found = le.Uint64(h[16:]), le.Uint64(h[40:]), true
		}
	}
	if !found {
		return 0, nil
	}
	entries := make([]byte, min(size, 1<<16)&^15)
	if _, err := p.ReadAt(entries, dynamic+slide); err != nil {
		return 0, err
	}
	for e := entries; len(e) > 0; e = e[16:] {
		if le.Uint64(e) == dtDebug {
			return le.Uint64(e[8:]), nil
		}
	}
	return 0, nil
}

// Changed says whether the list is not what it was when Follow was last called. While the loader is changing it, it is not
// looked at.
func (l *List) Changed() bool {
	if len(l.vecs) == 0 {
		return true
	}
	n, err := l.p.ReadVec(l.vecs)
	if n > 0 && l.Busy() {
		return false
	}
	if err != nil {
		return !errors.Is(err, process.ErrNoProcess)
	}
	for i, v := range l.vecs {
		if !bytes.Equal(v.Buf, l.was[i]) {
			return true
		}
	}
	return false
}

// Busy says whether the loader is adding to the list or taking away from it.
func (l *List) Busy() bool { return binary.LittleEndian.Uint32(l.vecs[0].Buf[DebugState:]) != 0 }

// Follow reads the list anew. It is to be called before the mappings are looked at: what changes then is found by Changed.
func (l *List) Follow() {
	l.vecs, l.was = l.vecs[:0], l.was[:0]
	read := func(addr uint64, size int) []byte {
		buf := make([]byte, size)
		if _, err := l.p.ReadAt(buf, addr); err != nil {
			return nil
		}
		l.vecs = append(l.vecs, process.Vec{Addr: addr, Buf: make([]byte, size)})
		l.was = append(l.was, buf)
		return buf
	}
	le := binary.LittleEndian
	head := read(l.debug, DebugSize)
	if head == nil {
		return
	}
	n := 0
	for at := le.Uint64(head[debugMap:]); at != 0 && n < maxLinks; n++ {
		node := read(at, linkSize)
		if node == nil {
			break
		}
		at = le.Uint64(node[linkNext:])
		if len(l.vecs) > 1+lastLinks {
			l.vecs, l.was = slices.Delete(l.vecs, 1, 2), slices.Delete(l.was, 1, 2)
		}
	}
}
