package dwarf

import (
	"errors"
	"fmt"

	"github.com/callreel/callreel/internal/leb128"
	"github.com/callreel/callreel/object"
)

// A reader is the working memory of Data.Read. It lives in a Contents, so that a
// goroutine that reads unit after unit takes no memory for each.
type reader struct {
	data     *Data
	contents *Contents
	unit     *unit
	root     root
	table    *table
	own      table // when no other unit shares the table
	foreign  struct {
		unit  *unit
		table *table
	}
	frames    []frame
	entry     entry
	region    Range // of code, the last one met
	budget    int64 // bytes that what is read of the unit may still take
	rangeWork int64 // bytes of range lists that may still be read
	names     nameCache
	errs      []error
	nested    []Inline
	inner     []uint32 // nested functions whose inlined calls are in nested
	lines     lineReader
	behind    behind
}

// A frame is an entry with children that matters to what is below it.
type frame struct {
	depth    int    // of the entry; its children have one more
	function int32  // in Contents.Functions, -1 where no code is
	inline   int32  // in Contents.Inlines, -1 for a function's own frame
	level    uint32 // inlined calls around the children
	live     bool   // the children stand in a function with code, whether this one or one around it
}

// maxFrames bounds how deep functions and inlined calls can stand in each other.
// Compilers stop at some hundreds.
const maxFrames = 1 << 12

// releaseSize is how many bytes of units are read before their pages are given
// back. Each time interrupts the other cores, so by the unit it cost a sixth of the
// time that building a kernel's symbol map takes.
const releaseSize = 16 << 20

// finished notes that a unit has been read, and gives pages back now and then:
// those of what lies between, too, which other readers have mostly read.
func (r *reader) finished(u *unit) {
	b := &r.behind
	if b.section != u.section || u.offset < b.end {
		*b = behind{u.section, u.offset, u.offset}
	}
	b.end = u.end
	if b.end-b.start >= releaseSize {
		r.data.image.Release(b.section.data[b.start:b.end])
		b.start = b.end
	}
}

// behind is a part of a section that has been read.
type behind struct {
	section    *section
	start, end uint64
}

// Read reads one of the Data's units into c, whose slices are used again. Several
// goroutines may read at once, each into a Contents of its own. Damage costs what
// it hits and what can no longer be found for it: c holds the rest, and the error
// joins a *Problem for each.
func (d *Data) Read(u *Unit, c *Contents) error {
	r := c.reader
	if r == nil {
		r = new(reader)
		c.reader = r
	}
	if r.data != d {
		r.reset(d)
	}
	c.Functions, c.Inlines, c.Ranges = c.Functions[:0], c.Inlines[:0], c.Ranges[:0]
	c.Files, c.Rows = append(c.Files[:0], File{}), c.Rows[:0]
	r.contents, r.errs = c, r.errs[:0]
	r.budget = int64(min(d.image.Allowance().Remaining()/2, 1<<62))
	if u.number >= len(d.main.units) {
		return fmt.Errorf("dwarf: unit %d is of another image", u.Index)
	}
	of := &d.main.units[u.number]
	err := object.CatchFaults(func() error {
		r.read(of)
		return nil
	})
	if err != nil {
		r.errs = append(r.errs, of.problem(0, "%w", err))
	}
	r.finished(of)
	if len(r.errs) == 0 {
		return nil
	}
	return errors.Join(r.errs...)
}

// reset makes the reader forget what it knows of another image.
func (r *reader) reset(d *Data) {
	r.data, r.unit, r.region, r.behind = d, nil, Range{}, behind{}
	r.foreign.unit, r.foreign.table = nil, nil
	r.names = nameCache{}
}

// note keeps an error, of which a crafted unit can have very many.
func (r *reader) note(err error) {
	const most = 8
	if len(r.errs) < most {
		r.errs = append(r.errs, err)
	}
}

// read reads a unit and, for a skeleton unit, its other half.
func (r *reader) read(u *unit) {
	if !r.open(u) || r.root.tag == tagPartialUnit || r.root.tag == tagTypeUnit {
		return
	}
	r.readLines()
	if r.root.isSplit && u.source.role == roleMain {
		split, err := r.data.splitOf(u, &r.root)
		if err != nil {
			r.note(err)
		}
		// Without it there are the functions and inlined calls that some compilers
		// leave in the skeleton.
		if split != nil && !r.openSplit(split) {
			return
		}
	}
	if err := r.walk(); err != nil {
		r.note(err)
	}
}

// open makes a unit the one that is read.
func (r *reader) open(u *unit) bool {
	r.unit = u
	r.table = u.source.table(u, &r.own)
	size := u.end - u.offset
	lists := len(u.source.ranges.data) + len(u.source.rnglists.data)
	r.rangeWork = int64(min(rangeFactor*size+rangeFloor, 2*uint64(lists)))
	if err := u.readRoot(r.table, &r.root); err != nil {
		r.note(err)
		return false
	}
	return true
}

// unknown says why a code has no usable abbreviation.
func (t *table) unknown(u *unit, code uint64) error {
	if t.err != nil {
		return fmt.Errorf("abbreviation %d: %s at %#x: %w", code, u.source.abbrev.name, u.abbrev+t.errAt, t.err)
	}
	if t.lookup(code) == &unknown {
		return fmt.Errorf("no abbreviation %d in the table at %#x of %s", code, u.abbrev, u.source.abbrev.name)
	}
	return fmt.Errorf("abbreviation %d of the table at %#x of %s has a form that is not known", code, u.abbrev, u.source.abbrev.name)
}

// walk goes through all entries of the unit below the first. Nothing is skipped by
// DW_AT_sibling: functions and inlined calls can stand anywhere, and skipping but
// the types of C saved no more than 3 % of a kernel's time.
func (r *reader) walk() error {
	if r.root.children == 0 {
		return nil
	}
	t, b, big := r.table, r.unit.bytes(), r.unit.source.big
	dense := t.dense
	r.frames = append(r.frames[:0], frame{depth: 0, function: -1, inline: -1})
	r.nested, r.inner = r.nested[:0], r.inner[:0]
	depth, closes := 1, 0 // closes is the depth at which the innermost frame ends
	p := r.root.children
	for uint(p) < uint(len(b)) {
		start := p
		code := uint64(b[p])
		p++
		if code >= 0x80 {
			if code, p = leb128.Uint(b, start); p < 0 {
				r.leaveAll()
				return r.unit.problem(start, "code of an entry: %w", errEnd)
			}
		}
		var a *abbrev
		if code < uint64(len(dense)) {
			a = &dense[code]
		} else {
			a = t.lookup(code)
		}
		values := p
		depth += int(a.children)
		if a.kind == kindFixed {
			p += int(a.size)
			if depth == closes {
				if depth == 0 {
					return nil
				}
				closes = r.leave()
			}
			continue
		}
		if a.kind == kindUnknown {
			err := r.unit.problem(start, "entry: %w", t.unknown(r.unit, code))
			r.leaveAll()
			return err
		}
		if p = t.skip(a, b, p, big); p < 0 {
			r.leaveAll()
			return r.unit.problem(start, "entry: %w", errEnd)
		}
		if a.kind == kindVariable {
			continue
		}
		if r.budget < 0 {
			r.leaveAll()
			return r.unit.problem(start, "entry: %w", r.tooMuch())
		}
		if p <= len(b) && r.enter(a, b, start, values, depth) {
			closes = depth - 1
			if len(r.frames) > maxFrames {
				r.leaveAll()
				return r.unit.problem(start, "functions and inlined calls more than %d deep", maxFrames)
			}
		}
	}
	if depth > 0 {
		r.leaveAll()
		return r.unit.problem(len(b), "%d levels of entries have no end", depth)
	}
	return nil
}
