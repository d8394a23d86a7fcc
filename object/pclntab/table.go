package pclntab

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sort"

	"github.com/callreel/callreel/object"
)

// Magic numbers of the header (internal/abi/symtab.go).
const (
	magic118 = 0xfffffff0 // Go 1.18 and 1.19
	magic120 = 0xfffffff1 // Go 1.20 and later
)

// ErrDamaged is in the chain of errors about a table that contradicts itself.
var ErrDamaged = errors.New("damaged table of Go functions")

// ErrFormat is in the chain of errors about a table of another version.
var ErrFormat = errors.New("the table's format isn't that of Go 1.18 and later")

// A Table is the table of one image. Its methods may be used by several goroutines at once, as long as the image is open.
type Table struct {
	image  *object.Image
	name   string // of the section
	order  binary.ByteOrder
	data   []byte // the whole table
	ptr    uint64 // bytes of a pointer
	step   uint64 // least size of an instruction
	n      int
	old    bool   // before Go 1.20
	text   uint64 // address that offsets are from
	names  []byte
	units  []byte // for each unit its files' offsets in files
	files  []byte
	values []byte // tables of values by PC
	funcs  []byte // functab, and what its entries refer to

	data0 uint64 // address of what funcdata's offsets are from; 0 if it isn't known
}

// sectionNames are those that linkers give to the table.
var sectionNames = []string{".gopclntab", ".data.rel.ro.gopclntab", "__gopclntab"}

// Section returns the section that holds the table, nil if the image has none.
func Section(im *object.Image) *object.Section {
	for _, name := range sectionNames {
		if s := im.Section(name); s != nil {
			return s
		}
	}
	return nil
}

// Open returns the table of an image, nil and no error if it has none. Functions are looked at when they are asked for.
func Open(im *object.Image) (*Table, error) {
	s := Section(im)
	if s == nil {
		return nil, nil
	}
	data, err := im.ReadAddr(s.Addr, s.Size)
	if err != nil {
		return nil, err
	}
	t := &Table{image: im, name: s.Name, order: im.ByteOrder, data: data}
	if err := t.readHeader(); err != nil {
		return nil, fmt.Errorf("%s: section %s: %w", im.Name(), s.Name, err)
	}
	t.findModule(s.Addr)
	return t, nil
}

// readHeader reads runtime.pcHeader.
func (t *Table) readHeader() error {
	d := t.data
	if len(d) < 8 {
		return ErrDamaged
	}
	switch t.order.Uint32(d) {
	case magic118:
		t.old = true
	case magic120:
	default:
		return ErrFormat
	}
	t.step, t.ptr = uint64(d[6]), uint64(d[7])
	if t.ptr != 4 && t.ptr != 8 || t.step != 1 && t.step != 2 && t.step != 4 {
		return ErrDamaged
	}
	if uint64(len(d)) < 8+8*t.ptr {
		return ErrDamaged
	}
	size := uint64(len(d))
	var at [5]uint64 // functions' names, units, files, values by PC, functions
	for k := range at {
		if at[k] = t.word(8 + (3+uint64(k))*t.ptr); at[k] > size {
			return ErrDamaged
		}
	}
	t.names, t.units, t.files, t.values, t.funcs = d[at[0]:], d[at[1]:], d[at[2]:], d[at[3]:], d[at[4]:]
	n := t.word(8)
	if n > uint64(len(t.funcs))/8 || uint64(len(t.funcs)) < 8*n+4 {
		return fmt.Errorf("%d functions: %w", n, ErrDamaged)
	}
	t.n = int(n)
	// Since Go 1.26, and in position-independent programs, the field is 0.
	if t.text = t.word(8 + 2*t.ptr); t.text == 0 {
		if s := t.image.Section(".text"); s != nil {
			t.text = s.Addr
		}
	}
	return nil
}

// word reads a pointer or a number of that size; the caller has checked that it is there.
func (t *Table) word(at uint64) uint64 {
	if t.ptr == 4 {
		return uint64(t.order.Uint32(t.data[at:]))
	}
	return t.order.Uint64(t.data[at:])
}

// Len returns how many functions there are.
func (t *Table) Len() int { return t.n }

// Text returns the link address of the first code that the table is about.
func (t *Table) Text() uint64 { return t.text }

// Flags are what the runtime knows of a function (internal/abi, FuncFlag).
type Flags uint8

// What flags say.
const (
	TopFrame Flags = 1 << iota // it has no caller: a goroutine or a thread begins with it
	SPWrite                    // it sets the stack pointer to what the table doesn't tell
	Assembly                   // it was written in assembly
)

// A NameRef is where the table has a name.
type NameRef uint32

// A Func is one function. Start and End are link addresses; End may include padding.
type Func struct {
	Start, End uint64
	Flags      Flags
	Name       NameRef
	Line       uint32 // of its declaration, 0 before Go 1.20
	// DeferReturn is the address at which the function goes on that has recovered from a panic, 0 if it doesn't.
	DeferReturn uint64

	at uint64 // of its record, in Table.funcs
}

// Offsets in runtime._func (runtime/runtime2.go).
const (
	offEntry       = 0
	offName        = 4
	offDeferReturn = 12
	offPCSP        = 16
	offPCFile      = 20
	offPCLine      = 24
	offPCDatas     = 28
	offUnit        = 32
	offStartLine   = 36 // since Go 1.20
)

// fixed is the size of runtime._func, whose last four bytes are ID, flags, padding and the number of funcdata.
func (t *Table) fixed() uint64 {
	if t.old {
		return 40
	}
	return 44
}

// Func returns the function with that number, from 0 on, in the order of addresses.
func (t *Table) Func(k int) (Func, error) {
	if k < 0 || k >= t.n {
		return Func{}, fmt.Errorf("%s: function %d of %d", t.image.Name(), k, t.n)
	}
	start, end := t.offset(k), t.offset(k+1)
	at, fixed, size := uint64(t.order.Uint32(t.funcs[8*k+4:])), t.fixed(), uint64(len(t.funcs))
	if start > end || at > size || size-at < fixed || t.order.Uint32(t.funcs[at+offEntry:]) != uint32(start) {
		return Func{}, t.damaged(k)
	}
	f := Func{Start: t.text + start, End: t.text + end, at: at, Flags: Flags(t.funcs[at+fixed-3]),
		Name: NameRef(t.order.Uint32(t.funcs[at+offName:]))}
	if !t.old {
		f.Line = t.order.Uint32(t.funcs[at+offStartLine:])
	}
	if r := t.order.Uint32(t.funcs[at+offDeferReturn:]); r != 0 {
		f.DeferReturn = f.Start + uint64(r)
	}
	return f, nil
}

// offset is where function k begins, from the text on; where the last one ends for k = Len.
func (t *Table) offset(k int) uint64 { return uint64(t.order.Uint32(t.funcs[8*k:])) }

func (t *Table) damaged(k int) error {
	return fmt.Errorf("%s: section %s: function %d: %w", t.image.Name(), t.name, k, ErrDamaged)
}

// Find returns the function that a link address is in.
func (t *Table) Find(pc uint64) (Func, bool) {
	off := pc - t.text
	if pc < t.text || t.n == 0 || off >= t.offset(t.n) {
		return Func{}, false
	}
	k := sort.Search(t.n, func(k int) bool { return t.offset(k) > off }) - 1
	if k < 0 {
		return Func{}, false
	}
	f, err := t.Func(k)
	return f, err == nil && pc >= f.Start && pc < f.End
}

// maxName bounds the length of a name or of a path.
const maxName = 1 << 16

// Name returns a function's name, as the linker writes it: "main.(*server).serve", "main.max[...]". It is empty where it is damaged.
// The bytes are the image's.
func (t *Table) Name(at NameRef) []byte { return text(t.names, uint32(at)) }

// field reads a field of a function's record.
func (t *Table) field(f Func, off uint64) uint32 {
	if f.at > uint64(len(t.funcs)) || uint64(len(t.funcs))-f.at < t.fixed() {
		return 0
	}
	return t.order.Uint32(t.funcs[f.at+off:])
}

// text returns the string at an offset, which a NUL ends.
func text(b []byte, at uint32) []byte {
	if uint64(at) >= uint64(len(b)) {
		return nil
	}
	b = b[at:min(uint64(len(b)), uint64(at)+maxName)]
	end := bytes.IndexByte(b, 0)
	return b[:max(end, 0)]
}
