package reel

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"slices"
)

// indexed returns the chunks of a reel that was closed, from its index, and
// whether there is one that fits the file.
func indexed(data []byte) (entries []indexEntry, ok bool) {
	size := int64(len(data))
	if size < frameSize+trailerSize || string(data[size-8:]) != trailerMagic {
		return nil, false
	}
	d := fields{b: data[size-trailerSize:]}
	offset := int64(value(d.b[:8]).number())
	if offset < 0 || offset > size-frameSize-trailerSize {
		return nil, false
	}
	f, whole := parseFrame(data[offset:])
	if !whole || f.kind != KindIndex || offset+frameSize+int64(f.length) != size {
		return nil, false
	}
	payload := data[offset+frameSize:]
	if crc32.Checksum(payload, castagnoli) != f.sum {
		return nil, false
	}
	entries, err := parseIndex(payload, f.count, offset)
	return entries, err == nil
}

// ended says whether a recorder has ended the reel whose chunks a scan has found: an index stands among them, and what was
// appended behind it is cut short or damaged.
func ended(data []byte, entries []indexEntry) bool {
	for i := len(entries) - 1; i >= 0; i-- {
		e := &entries[i]
		if e.kind != KindIndex {
			continue
		}
		payload := data[e.offset+frameSize : e.end()]
		if crc32.Checksum(payload, castagnoli) != e.sum {
			continue
		}
		before, err := parseIndex(payload, e.count, e.offset)
		return err == nil && slices.EqualFunc(before, entries[:i], func(a, b indexEntry) bool { return a.offset == b.offset })
	}
	return false
}

// scan finds the chunks of a reel by walking their frames. What is damaged is
// skipped up to the next frame that is whole.
func scan(data []byte, log *damageLog) []indexEntry {
	var entries []indexEntry
	size := int64(len(data))
	for pos := int64(0); pos < size; {
		f, whole := parseFrame(data[pos:])
		end := pos + frameSize + int64(f.length)
		if whole && end <= size {
			entries = append(entries, indexEntry{frame: f, offset: pos})
			pos = end
			continue
		}
		next := nextFrame(data, pos+1)
		d := Damage{Offset: pos, Len: next - pos, What: "not a chunk"}
		switch {
		case whole:
			d.What = fmt.Sprintf("a chunk (%v) that is cut short: %d of %d bytes are there", f.kind, next-pos, end-pos)
			if f.kind == KindEvents {
				d.Events = uint64(f.count)
				d.What += fmt.Sprintf(", %d events of thread %d are lost", f.count, f.thread)
			}
		case next == size && size-pos < frameSize:
			d.What = "the frame of a chunk that is cut short"
		case bytes.Count(data[pos:next], []byte{0}) == int(next-pos):
			d.What = "zeros where a chunk should be: the file was not written out before the machine stopped"
		}
		log.add(d)
		pos = next
	}
	return entries
}

// nextFrame returns the offset of the first whole frame at or after pos, or the
// size of the file.
func nextFrame(data []byte, pos int64) int64 {
	for {
		i := bytes.Index(data[pos:], []byte(frameMagic))
		if i < 0 {
			return int64(len(data))
		}
		pos += int64(i)
		if _, whole := parseFrame(data[pos:]); whole {
			return pos
		}
		pos++
	}
}
