package dwarf

import (
	"errors"

	"github.com/callreel/callreel/internal/leb128"
)

// kind is what an entry is to the walk over a unit.
type kind uint8

const (
	kindFixed    kind = iota // to be stepped over, of a known size; also the null entry
	kindVariable             // to be stepped over with a skip program
	kindFunction             // a subprogram with code
	kindInline               // an inlined subroutine
	kindUnknown              // the abbreviation is missing or cannot be used
)

// An abbrev is an abbreviation, compiled. A skip program adds size, and then for
// each op does what it says; so runs of forms of fixed size cost one addition.
type abbrev struct {
	size     uint32 // bytes before the first op, or of the whole entry
	ops      uint32 // first op in table.ops
	count    uint16 // of ops
	kind     kind
	children int8  // what the entry adds to the depth: 1, 0, or -1 for the null entry
	take     int32 // index in table.takes, -1 for none
}

// An op steps over one value of variable size, and then over size bytes.
type op struct {
	size     uint32
	encoding encoding
}

// takes is the program that takes the attributes out of an entry.
type takes struct {
	first, count uint32 // in table.steps
	tag          uint16
}

// A step adds size and then reads a value into a slot, or steps over it when the
// slot is slotNone. With encConst it adds nothing and size is an index in consts.
type step struct {
	size     uint32
	encoding encoding
	slot     slot
	form     uint8
}

// A table is one abbreviation table, compiled for units of one shape.
type table struct {
	shape  shape
	dense  []abbrev         // by code; entry 0 is the null entry
	sparse map[uint64]int32 // codes too far from their number of order: index in others
	others []abbrev
	takes  []takes
	ops    []op
	steps  []step
	consts []uint64
	err    error // why the table ends too early
	errAt  uint64
}

var errAbbrevEnd = errors.New("abbreviation table ends too early")

// maxEntry bounds the bytes of an entry's numbers, far above what any has, so that
// their sums fit into every int.
const maxEntry = 1 << 20

// unknown is what codes without an abbreviation lead to.
var unknown = abbrev{kind: kindUnknown, take: -1}

// reset empties the table and keeps its memory.
func (t *table) reset(s shape) {
	t.shape = s
	t.dense = append(t.dense[:0], abbrev{children: -1, take: -1})
	if len(t.sparse) > 0 {
		t.sparse = nil // clearing a large one costs as much as making it
	}
	t.others, t.takes, t.ops = t.others[:0], t.takes[:0], t.ops[:0]
	t.steps, t.consts = t.steps[:0], t.consts[:0]
	t.err, t.errAt = nil, 0
}

// compile reads a table that starts data (DWARF 5 §7.5.3). What comes before
// damage is kept.
func (t *table) compile(data []byte, s shape) {
	t.reset(s)
	at := 0
	for {
		code, next := leb128.Uint(data, at)
		if next < 0 {
			t.fail(errAbbrevEnd, at)
			return
		}
		if code == 0 {
			return
		}
		tag, p := leb128.Uint(data, next)
		if p < 0 || p >= len(data) {
			t.fail(errAbbrevEnd, at)
			return
		}
		a := abbrev{kind: kindFixed, take: -1, ops: uint32(len(t.ops))}
		if data[p] != 0 {
			a.children = 1
		}
		if p = t.compileOne(&a, tag, data, p+1); p < 0 {
			t.fail(errAbbrevEnd, at)
			return
		}
		t.add(code, &a, p)
		at = p
	}
}

func (t *table) fail(err error, at int) { t.err, t.errAt = err, uint64(at) }

// add puts the abbreviation where lookup finds it. Producers number from 1 without
// gaps; a code far above what that many bytes can hold goes into a map.
func (t *table) add(code uint64, a *abbrev, parsed int) {
	switch {
	case code == uint64(len(t.dense)):
		t.dense = append(t.dense, *a)
	case code < uint64(len(t.dense)):
		t.dense[code] = *a
	case code < 64+uint64(parsed)/4:
		for uint64(len(t.dense)) < code {
			t.dense = append(t.dense, unknown)
		}
		t.dense = append(t.dense, *a)
	default:
		if t.sparse == nil {
			t.sparse = make(map[uint64]int32)
		}
		t.sparse[code] = int32(len(t.others))
		t.others = append(t.others, *a)
	}
}

// lookup returns the abbreviation of a code.
func (t *table) lookup(code uint64) *abbrev {
	if code < uint64(len(t.dense)) {
		return &t.dense[code]
	}
	if k, ok := t.sparse[code]; ok {
		return &t.others[k]
	}
	return &unknown
}

// compileOne compiles the attributes at data[p:] and returns where they end.
func (t *table) compileOne(a *abbrev, tag uint64, data []byte, p int) int {
	first := len(t.steps)
	wanted := wantedTag(tag)
	skipped, taken := uint32(0), uint32(0) // bytes that no op, no step has yet
	total := uint64(0)
	usable, code := true, false
	for {
		var attr, form, value uint64
		if attr, p = leb128.Uint(data, p); p < 0 {
			return p
		}
		if form, p = leb128.Uint(data, p); p < 0 {
			return p
		}
		if attr == 0 && form == 0 {
			break
		}
		enc, form8 := t.shape.encode(form)
		if enc == encConst {
			var s int64
			if s, p = leb128.Int(data, p); p < 0 {
				return p
			}
			value = uint64(s)
		}
		switch {
		case enc <= encFixedMax:
			skipped += uint32(enc)
			total += uint64(enc)
		case enc == encConst:
		case enc == encUnknown:
			usable = false
		default:
			t.flush(a, skipped)
			skipped = 0
			t.ops = append(t.ops, op{encoding: enc})
		}
		if !wanted {
			continue
		}
		into := slotOf(attr)
		code = code || into == slotLowPC || into == slotRanges
		switch {
		case into == slotNone && enc <= encFixedMax:
			taken += uint32(enc)
		case enc == encConst:
			if into != slotNone {
				t.steps = append(t.steps, step{uint32(len(t.consts)), enc, into, form8})
				t.consts = append(t.consts, value)
			}
		default:
			t.steps = append(t.steps, step{taken, enc, into, form8})
			taken = 0
		}
	}
	t.flush(a, skipped)
	a.count = uint16(len(t.ops) - int(a.ops))
	if len(t.ops)-int(a.ops) > 0xffff || total > maxEntry {
		usable = false
	}
	if a.count > 0 {
		a.kind = kindVariable
	}
	if wanted {
		a.take = int32(len(t.takes))
		// What follows the last value that is read need not be stepped over:
		// size, ops and the depth come from the skip program.
		t.takes = append(t.takes, takes{uint32(first), uint32(len(t.steps) - first), uint16(tag)})
		switch {
		case tag == tagSubprogram && code:
			a.kind = kindFunction
		case tag == tagInlinedSubroutine:
			a.kind = kindInline
		}
	}
	if !usable {
		a.kind = kindUnknown
	}
	return p
}

// flush adds size to the last op of the abbreviation, or to what comes before the
// first one.
func (t *table) flush(a *abbrev, size uint32) {
	if n := len(t.ops); n > int(a.ops) {
		t.ops[n-1].size += size
	} else {
		a.size += size
	}
}

// wantedTag says whether attributes are taken out of entries with this tag.
func wantedTag(tag uint64) bool {
	switch tag {
	case tagSubprogram, tagInlinedSubroutine, tagCompileUnit, tagPartialUnit, tagTypeUnit, tagSkeletonUnit:
		return true
	}
	return false
}
