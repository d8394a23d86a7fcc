package symbols

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/bits"

	"github.com/callreel/callreel/dwarf"
)

// A writer makes the map of merged blocks. Callees, files and strings get their
// numbers in the order of the addresses that need them first, so that the file is the
// same however the units were spread over workers, and neighbours lie together.
type writer struct {
	head    header
	id      string
	image   string // base name of its file
	regions []region
	blocks  []placed
	workers []*worker
	symbols *symbolTable
	strings func(dwarf.String) []byte

	texts   *texts
	callees numbering[callee] // name: offset in texts
	final   [][]uint32        // per worker: of its callees, the number in callees + 1
	files   numbering[fileText]
	fileOf  [][]uint32 // per worker: of its files, the number in files + 1
	path    []byte

	choices []choice

	index, buckets []uint32 // index: start and place of each block
	blockBytes     uint64
}

// fileText is a file: the offsets of its directory and its base name in texts.
type fileText struct{ dir, base uint32 }

func (f fileText) hash(seed uint64) uint64 {
	return mix(uint64(f.dir)<<32 ^ uint64(f.base) ^ seed)
}

// number gives all callees their numbers.
func (w *writer) number() error {
	count := 0
	for _, k := range w.workers {
		count = max(count, len(k.callees.list))
	}
	w.texts = newTexts(count)
	w.callees.reserve(count)
	w.files.number(fileText{})
	for _, k := range w.workers {
		w.final = append(w.final, make([]uint32, len(k.callees.list)))
		w.fileOf = append(w.fileOf, make([]uint32, len(k.files.list)))
	}
	for k := range w.blocks {
		r := w.blocks[k].record
		from := w.workers[r.worker]
		final := w.final[r.worker]
		for _, ref := range r.callees {
			if final[ref] == 0 {
				final[ref] = w.callee(int(r.worker), from.callees.list[ref]) + 1
			}
		}
	}
	w.addChoices()
	if w.texts.full() || len(w.files.list) > 1<<24 {
		return fmt.Errorf("symbols: %s: %d files and %#x bytes of names are more than a symbol map holds",
			w.image, len(w.files.list), len(w.texts.out))
	}
	w.head.nameBits = uint8(bits.Len(uint(len(w.texts.out))))
	w.head.fileBits = uint8(bits.Len(uint(len(w.files.list) - 1)))
	w.head.lengthBits = min(maxLengthBits, maxField-w.head.nameBits-w.head.fileBits)
	w.head.calleeBits = uint8(bits.Len(uint(max(len(w.callees.list), 1) - 1)))
	return nil
}

// callee returns the final number of a worker's callee.
func (w *writer) callee(worker int, c callee) uint32 {
	var name uint32
	switch {
	case c.name == 0, c.name == nameless:
		name = uint32(c.name)
	default:
		if name = w.text(w.name(dwarf.String(c.name))); name == 0 {
			name = uint32(nameless) // damaged
		}
	}
	return w.callees.number(callee{nameRef(name), w.file(worker, c.file)})
}

// name returns the bytes of one of DWARF's strings or of the symbol table's.
func (w *writer) name(s dwarf.String) []byte {
	if nameRef(s)&symbolName == symbolName {
		return w.symbols.text(nameRef(s))
	}
	return w.strings(s)
}

func (w *writer) text(s []byte) uint32 {
	return w.texts.add(s[:min(len(s), maxText)])
}

// file returns the final number of a worker's file.
func (w *writer) file(worker int, file uint32) uint32 {
	if file == 0 {
		return 0
	}
	slot := &w.fileOf[worker][file]
	if *slot == 0 {
		f := w.workers[worker].files.list[file]
		dir, base := splitPath(w.path[:0], w.name(f.CompDir), w.name(f.Dir), w.name(f.Name))
		w.path = dir[:0:cap(dir)]
		*slot = w.files.number(fileText{w.text(dir), w.text(base)}) + 1
	}
	return *slot - 1
}

// lay decides where each block goes.
func (w *writer) lay() error {
	w.index = make([]uint32, 0, 2*len(w.blocks))
	r := -1
	for k := range w.blocks {
		b := &w.blocks[k]
		for r < 0 || b.start-w.regions[r].base >= w.regions[r].size {
			r++
			w.regions[r].first = uint32(k)
		}
		w.regions[r].count++
		w.index = append(w.index, uint32(b.start-w.regions[r].base), uint32(w.blockBytes))
		w.blockBytes += w.blockSize(b)
		if w.blockBytes > math.MaxUint32 {
			return fmt.Errorf("symbols: %s: more than %#x bytes of blocks", w.image, uint32(math.MaxUint32))
		}
		if b.start == b.record.function {
			w.head.functions++
		}
	}
	for k := range w.regions {
		w.fillBuckets(&w.regions[k])
	}
	return nil
}

// fillBuckets makes a region's buckets.
func (w *writer) fillBuckets(r *region) {
	r.chooseShift()
	r.buckets = uint32(len(w.buckets))
	next, end := r.first, r.first+r.count
	for k := range r.bucketCount() {
		for next < end && uint64(w.index[2*next]) < k<<r.shift {
			next++
		}
		w.buckets = append(w.buckets, next)
	}
}

// appendHead appends what comes before a block's fields.
func (b *placed) appendHead(out []byte) []byte {
	r := b.record
	word := r.word
	if b.start != r.function {
		word |= backBit
	}
	if b.start != r.start {
		word |= biasBit
	}
	out = binary.LittleEndian.AppendUint32(out, word)
	out = binary.AppendUvarint(out, b.end-b.start)
	if word&backBit != 0 {
		out = binary.AppendUvarint(out, b.start-r.function)
	}
	if word&biasBit != 0 {
		out = binary.AppendUvarint(out, b.start-r.start)
	}
	return out
}

func (w *writer) blockSize(b *placed) uint64 {
	var buf [64]byte
	head := uint64(len(b.appendHead(buf[:0])))
	return head + uint64(len(b.record.fields)) + bitBytes(uint64(len(b.record.callees))*uint64(w.head.calleeBits))
}

// layout sets the section table.
func (w *writer) layout() {
	calleeBits := uint64(w.head.calleeSize()) * uint64(len(w.callees.list))
	sizes := [sectionCount]uint64{
		sectionID: uint64(len(w.id)), sectionName: uint64(len(w.image)),
		sectionRegions: uint64(len(w.regions)) * regionSize,
		sectionBuckets: uint64(len(w.buckets)) * 4,
		sectionIndex:   uint64(len(w.index)) * 4,
		sectionBlocks:  w.blockBytes + slack, sectionCallees: bitBytes(calleeBits) + slack,
		sectionFiles: uint64(len(w.files.list)) * fileSize, sectionStrings: uint64(len(w.texts.out)),
	}
	at := uint64(headerSize)
	for k, size := range sizes {
		w.head.sections[k] = extent{at, size}
		at = (at + size + sectionAlign - 1) &^ (sectionAlign - 1)
	}
	w.head.total = (at + w.choicesSize() + sectionAlign - 1) &^ (sectionAlign - 1)
}

// write writes the map and returns its size.
func (w *writer) write(to io.Writer) (int64, error) {
	w.layout()
	out := bufio.NewWriterSize(to, 1<<16)
	at := uint64(0)
	put := func(b []byte) {
		_, _ = out.Write(b) // Flush reports the first error
		at += uint64(len(b))
	}
	put(w.head.append(nil))
	for k := range w.head.sections {
		var pad [sectionAlign]byte
		put(pad[:w.head.sections[k].off-at])
		w.putSection(k, put)
	}
	var pad [sectionAlign]byte
	put(pad[:(sectionAlign-at%sectionAlign)%sectionAlign])
	w.putChoices(put)
	put(pad[:w.head.total-at])
	if err := out.Flush(); err != nil {
		return int64(at), fmt.Errorf("symbols: %s: writing the symbol map: %w", w.image, err)
	}
	return int64(at), nil
}

func (w *writer) putSection(k int, put func([]byte)) {
	switch k {
	case sectionID:
		put([]byte(w.id))
	case sectionName:
		put([]byte(w.image))
	case sectionRegions:
		for k := range w.regions {
			put(w.regions[k].append(nil))
		}
	case sectionBuckets:
		putWords(w.buckets, put)
	case sectionIndex:
		putWords(w.index, put)
	case sectionBlocks:
		w.putBlocks(put)
	case sectionCallees:
		w.putCallees(put)
	case sectionFiles:
		for _, f := range w.files.list {
			lengths := uint32(w.shortLength(f.dir)) | uint32(w.shortLength(f.base))<<16
			putWords([]uint32{f.dir, f.base, lengths}, put)
		}
	case sectionStrings:
		put(w.texts.out)
	}
}

// shortLength is the length of a string for the record of a file.
func (w *writer) shortLength(off uint32) uint16 {
	return uint16(min(w.texts.length(off), longText))
}

func putWords(words []uint32, put func([]byte)) {
	var buf [1024]byte
	for len(words) > 0 {
		n := min(len(words), len(buf)/4)
		for k, v := range words[:n] {
			binary.LittleEndian.PutUint32(buf[4*k:], v)
		}
		put(buf[:4*n])
		words = words[n:]
	}
}

func (w *writer) putBlocks(put func([]byte)) {
	var head [64]byte
	var callees [maxNodes*32/8 + slack + 1]byte
	for k := range w.blocks {
		p := &w.blocks[k]
		final := w.final[p.record.worker]
		put(p.appendHead(head[:0]))
		put(p.record.fields)
		size := bitBytes(uint64(len(p.record.callees)) * uint64(w.head.calleeBits))
		var b bitWriter
		for _, ref := range p.record.callees {
			b = b.put(callees[:], uint64(final[ref]-1), uint(w.head.calleeBits))
		}
		b.end(callees[:])
		put(callees[:size])
	}
	put(make([]byte, slack))
}

func (w *writer) putCallees(put func([]byte)) {
	h := &w.head
	const atOnce = 8 // callees of any width end at a byte then
	for list := w.callees.list; len(list) > 0; {
		var buf [atOnce*8 + slack]byte
		n := min(atOnce, len(list))
		var b bitWriter
		for _, c := range list[:n] {
			length := min(w.texts.length(uint32(c.name)), 1<<h.lengthBits-1)
			b = b.put(buf[:], uint64(c.name)|length<<h.nameBits|uint64(c.file)<<(h.nameBits+h.lengthBits), h.calleeSize())
		}
		b.end(buf[:])
		put(buf[:bitBytes(uint64(n)*uint64(h.calleeSize()))])
		list = list[n:]
	}
	put(make([]byte, slack))
}
