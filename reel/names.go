package reel

import (
	"bytes"
	"fmt"
	"slices"
)

// A chunk of names says what functions are called, and where they are, that the recorder didn't know: it is appended to a
// reel that is there already. Its payload is a list of files (a count, and strings), and for each of the chunk's functions
// its ID (the difference to the one before), what there is of it (1: a name, 2: a file and a line), who knew it, and then
// the name, and the file's number in the list and the line. All numbers are varints. The IDs rise.
const (
	hasName = 1 << iota
	hasPlace
)

// minNaming is the fewest bytes that a function takes in a chunk of names.
const minNaming = 3

// attached is what a reel has in chunks of names. Of several chunks the later win.
type attached struct {
	list []Naming // by the function's place among all, see functionTable.index; From, File and Line only count with known
	has  []byte   // likewise, what there is
}

// loadNames reads a chunk of names. Functions that the table doesn't have are passed over.
func (f *File) loadNames(payload []byte, count uint32) error {
	d := fields{b: payload}
	n := d.uvarint()
	if uint64(count)*minNaming > uint64(len(payload)) || n > uint64(count) { // each function has one file at most
		return fmt.Errorf("%d functions and %d files in %d bytes", count, n, len(payload))
	}
	files := make([]string, 0, n)
	for range n {
		files = append(files, d.string())
	}
	if more := f.functions.count - len(f.attached.list); more > 0 && d.err == nil {
		f.attached.list = append(f.attached.list, make([]Naming, more)...)
		f.attached.has = append(f.attached.has, make([]byte, more)...)
	}
	id := uint64(0)
	for i := uint32(0); i < count && d.err == nil; i++ {
		step := d.uvarint()
		if id += step; step == 0 || step > MaxID || id > MaxID {
			d.fail()
			break
		}
		what, from := d.uvarint(), d.uvarint()
		n := Naming{From: NameSource(min(from, uint64(lastNameSource)))}
		if what&hasName != 0 {
			n.Name = d.string()
		}
		if what&hasPlace != 0 {
			file, line := d.uvarint(), d.uint32()
			if file >= uint64(len(files)) {
				d.fail()
				break
			}
			n.File, n.Line = files[file], line
		}
		if at := f.functions.index(uint32(id)); d.err == nil && at >= 0 {
			f.attached.list[at], f.attached.has[at] = n, byte(what&(hasName|hasPlace))
		}
	}
	return d.err
}

// own is what the reel itself knows of a function of its table.
func (f *File) own(id uint32, fn *Function) Naming {
	n := Naming{Name: fn.Name}
	if len(f.attached.list) == 0 {
		return n
	}
	at := f.functions.index(id)
	if at < 0 || at >= len(f.attached.list) {
		return n
	}
	known, has := &f.attached.list[at], f.attached.has[at]
	if has&hasName != 0 {
		n.Name, n.From = known.Name, known.From
	}
	if has&hasPlace != 0 {
		n.File, n.Line = known.File, known.Line
	}
	return n
}

// Appendix returns what is to be appended to the reel's file so that it holds all names, files and lines that are known
// now (see NameBy), and of how many functions. The reel is size bytes long then: what is behind is to be cut off, and isn't
// of use. Events and all else stay as they are; readers that don't know of chunks of names pass them over. There is
// nothing to append if nothing more is known than the reel holds.
func (f *File) Appendix() (b []byte, size int64, named int, err error) {
	entries := allChunks(f.data)
	if n := len(entries); n > 0 {
		size = entries[n-1].end()
	}
	w := namesWriter{files: map[string]int{}}
	offset := size
	put := func(kind ChunkKind, count uint32, payload []byte) {
		chunk := frame{kind: kind, count: count}
		at := len(b)
		b = append(b, make([]byte, frameSize)...)
		b = append(b, payload...)
		chunk.put(b[at:], payload)
		entries = append(entries, indexEntry{frame: chunk, offset: offset})
		offset += int64(len(b) - at)
	}
	entries = slices.Clip(entries)
	f.eachKnown(func(id uint32, fn *Function, known *Naming) bool {
		if f.own(id, fn) == *known {
			return true
		}
		named++
		if w.add(id, fn.Name, known); w.size() >= metaBytes {
			put(KindNames, w.count, w.payload())
			w = namesWriter{files: map[string]int{}}
		}
		return true
	})
	if w.count > 0 {
		put(KindNames, w.count, w.payload())
	}
	if named == 0 {
		return nil, size, 0, nil
	}
	if offset > MaxAppendix+size {
		return nil, size, 0, fmt.Errorf("reel: %s: names of %d bytes are more than a reel takes", f.name, offset-size)
	}
	// One that its recorder has not ended, or that is damaged, stays to be read by scanning.
	if f.closed && len(entries) <= mostIndexed && contiguous(entries) {
		payload := appendTrailer(appendIndexEntries(nil, entries), offset)
		put(KindIndex, uint32(len(entries)), payload)
	}
	return b, size, named, nil
}

// allChunks lists the chunks of a reel, its index, which is no part of itself, among them.
func allChunks(data []byte) []indexEntry {
	entries, ok := indexed(data)
	if !ok {
		return scan(data, &damageLog{})
	}
	own := indexEntry{}
	if n := len(entries); n > 0 {
		own.offset = entries[n-1].end()
	}
	own.frame, _ = parseFrame(data[own.offset:])
	return append(entries, own)
}

// MaxAppendix bounds what is appended, in bytes.
const MaxAppendix = 1 << 30

// contiguous says whether the chunks follow one another from the start of the file on.
func contiguous(entries []indexEntry) bool {
	next := int64(0)
	for i := range entries {
		if entries[i].offset != next {
			return false
		}
		next = entries[i].end()
	}
	return true
}

// namesWriter makes the payload of one chunk of names.
type namesWriter struct {
	files map[string]int
	paths []byte // the list of files
	list  []byte
	last  uint32 // ID
	count uint32
}

func (w *namesWriter) size() int { return len(w.paths) + len(w.list) }

// add adds a function whose name in the table is recorded.
func (w *namesWriter) add(id uint32, recorded string, n *Naming) {
	what := uint64(0)
	if n.Name != recorded || n.From != NamedByRecorder {
		what |= hasName
	}
	if n.File != "" {
		what |= hasPlace
	}
	w.list = appendUvarint(w.list, uint64(id-w.last))
	w.list = appendUvarint(w.list, what)
	w.list = appendUvarint(w.list, uint64(n.From))
	if what&hasName != 0 {
		w.list = appendString(w.list, n.Name)
	}
	if what&hasPlace != 0 {
		file, ok := w.files[n.File]
		if !ok {
			file = len(w.files)
			w.files[n.File] = file
			w.paths = appendString(w.paths, n.File)
		}
		w.list = appendUvarint(w.list, uint64(file))
		w.list = appendUvarint(w.list, uint64(n.Line))
	}
	w.last = id
	w.count++
}

func (w *namesWriter) payload() []byte {
	return bytes.Join([][]byte{appendUvarint(nil, uint64(len(w.files))), w.paths, w.list}, nil)
}
