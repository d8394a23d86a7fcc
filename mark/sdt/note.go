package sdt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/callreel/callreel/object"
)

// Note is a place in a program's code that says something when it is passed. Several notes may have the same provider and name, as code is
// inlined.
type Note struct {
	Provider, Name string
	// Addr is the link address of the instruction that stands there: a nop, as a rule.
	Addr uint64
	// Semaphore is the link address of a 16-bit number that the program looks at before it makes the arguments ready: it isn't 0 while somebody
	// wants to know. 0 if there is none, which means always.
	Semaphore uint64
	// Text is the arguments as the note has them, such as "-4@%edi 8@-16(%rbp)". Arguments are the same, parsed.
	Text      string
	Arguments []Argument
}

// Section is where notes are, and Base a section that says by how much an image was moved since they were made (prelink(8)).
const (
	Section = ".note.stapsdt"
	Base    = ".stapsdt.base"
)

// noteType is that of the notes, owner of whose they are.
const noteType = 3

var owner = []byte("stapsdt\x00")

// Bounds of what an image may have. JVM builds have some 600 notes, each of at most 200 bytes.
const (
	maxNotes = 1 << 20
	maxText  = 1 << 12 // bytes of a name, or of all arguments
)

// ErrNote is what is wrong with notes that can't be read.
var ErrNote = errors.New("damaged note of a marker")

// ErrUnsupported: the image is of a kind whose markers aren't read: only those of 64-bit ELF are.
var ErrUnsupported = errors.New("markers are read of 64-bit ELF only")

// Read returns the notes of an image, in the order in which they stand there; none for one without the section. With an error, which
// wraps ErrNote, come those before the damage.
func Read(im *object.Image) ([]Note, error) {
	if im.Format != object.ELF {
		return nil, nil
	}
	s := im.Section(Section)
	if s == nil || s.FileSize == 0 {
		return nil, nil
	}
	if im.Class != object.Class64 {
		return nil, fmt.Errorf("callreel: %s: %w", im.Name(), ErrUnsupported)
	}
	data, err := im.SectionData(s)
	if err != nil {
		return nil, err
	}
	base := uint64(0)
	if b := im.Section(Base); b != nil {
		base = b.Addr
	}
	if err := im.Take(uint64(len(data)), "the notes of markers"); err != nil {
		return nil, err
	}
	notes, err := parse(data, im.ByteOrder, base)
	if err != nil {
		err = fmt.Errorf("callreel: %s: section %s: %w", im.Name(), Section, err)
	}
	return notes, err
}

// parse reads notes (ELF gABI, "Note Section"; SystemTap's sdt.h for what is in them). base is where .stapsdt.base is, 0 if it isn't there.
func parse(data []byte, order binary.ByteOrder, base uint64) (notes []Note, err error) {
	const head, align = 12, 4
	for off := 0; len(data)-off >= head; {
		nameSize, descSize := uint64(order.Uint32(data[off:])), uint64(order.Uint32(data[off+4:]))
		kind := order.Uint32(data[off+8:])
		rest := uint64(len(data) - off - head)
		padded := (nameSize + align - 1) &^ (align - 1)
		if padded > rest || descSize > rest-padded {
			return notes, fmt.Errorf("%w at offset %#x: %d bytes of name and %d of description, and %d are left", ErrNote, off, nameSize, descSize, rest)
		}
		name := data[off+head:][:nameSize]
		desc := data[uint64(off)+head+padded:][:descSize]
		at := off
		off += head + int(min(rest, padded+(descSize+align-1)&^(align-1)))
		if kind != noteType || !bytes.Equal(name, owner) {
			continue
		}
		n, err := one(desc, order, base)
		if err != nil {
			return notes, fmt.Errorf("%w at offset %#x", err, at)
		}
		if len(notes) == maxNotes {
			return notes, fmt.Errorf("%w: more than %d", ErrNote, maxNotes)
		}
		notes = append(notes, n)
	}
	return notes, nil
}

// one reads a note's description.
func one(desc []byte, order binary.ByteOrder, base uint64) (n Note, err error) {
	const fixed = 24
	if len(desc) < fixed {
		return n, fmt.Errorf("%w: a description of %d bytes", ErrNote, len(desc))
	}
	n.Addr, n.Semaphore = order.Uint64(desc), order.Uint64(desc[16:])
	if noted := order.Uint64(desc[8:]); base != 0 && noted != 0 {
		n.Addr += base - noted
		if n.Semaphore != 0 {
			n.Semaphore += base - noted
		}
	}
	rest := desc[fixed:]
	for _, to := range []*string{&n.Provider, &n.Name, &n.Text} {
		end := bytes.IndexByte(rest, 0)
		if end < 0 || end > maxText {
			return n, fmt.Errorf("%w: a string without an end", ErrNote)
		}
		*to, rest = string(rest[:end]), rest[end+1:]
	}
	n.Arguments = ParseArguments(n.Text)
	return n, nil
}
