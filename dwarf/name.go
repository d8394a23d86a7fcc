package dwarf

import "github.com/callreel/callreel/internal/leb128"

// A target is an entry that is referred to.
type target struct {
	unit *unit // nil for none
	at   int   // offset in the unit
}

// naming is what an entry says about names, the entries that it refers to
// included.
type naming struct {
	linkage, name String
	declFile      uint64 // in the line table of declUnit
	declLine      uint64
	declUnit      *unit
}

// best returns the linkage name, or else the plain one.
func (n *naming) best() String {
	if n.linkage != 0 {
		return n.linkage
	}
	return n.name
}

// maxHops bounds a chain of references from entry to entry. Compilers make three:
// inlined call, out-of-line instance, definition, declaration.
const maxHops = 8

// nameCacheSize is the number of targets whose names a reader remembers. Most
// inlined functions are inlined several times near each other.
const nameCacheSize = 1024

// nameCache remembers the naming of targets.
type nameCache [nameCacheSize]struct {
	target
	naming
}

// named returns what the entry e of the unit says about names. What an entry says
// itself counts more than what it refers to (DWARF 5 §2.13.2, §3.3.8.2).
func (r *reader) named(u *unit, base *root, e *entry) naming {
	return r.namedAt(u, base, e, 0)
}

func (r *reader) namedAt(u *unit, base *root, e *entry, hops int) naming {
	var n naming
	for _, s := range [2]slot{slotOrigin, slotSpecification} {
		if !e.has(s) || n.best() != 0 {
			continue
		}
		if to := r.refer(u, e.form[s], e.val[s]); to.unit != nil {
			n = r.nameOf(to, hops)
		}
	}
	if e.has(slotLinkageName) {
		n.linkage = u.string(base, e.form[slotLinkageName], e.val[slotLinkageName])
	}
	if e.has(slotName) {
		n.name = u.string(base, e.form[slotName], e.val[slotName])
	}
	if e.has(slotDeclLine) {
		n.declLine = e.val[slotDeclLine]
	}
	if e.has(slotDeclFile) {
		n.declFile, n.declUnit = e.val[slotDeclFile], u
	}
	return n
}

// nameOf returns what the target says about names.
func (r *reader) nameOf(to target, hops int) naming {
	if hops >= maxHops {
		return naming{}
	}
	c := &r.names[(uint64(to.at)+to.unit.offset*31)%nameCacheSize]
	if c.target == to {
		return c.naming
	}
	var n naming
	var e entry
	if t, base := r.contextOf(to.unit); takeAt(t, to, &e) {
		n = r.namedAt(to.unit, base, &e, hops+1)
	}
	c.target, c.naming = to, n
	return n
}

// contextOf returns what is needed to read an entry of the unit.
func (r *reader) contextOf(u *unit) (*table, *root) {
	if u == r.unit {
		return r.table, &r.root
	}
	if u != r.foreign.unit {
		r.foreign.unit, r.foreign.table = u, u.source.table(u, nil)
	}
	return r.foreign.table, u.kept()
}

// takeAt reads the attributes of a target, false when there is no entry of a kind
// that has names.
func takeAt(t *table, to target, e *entry) bool {
	b := to.unit.bytes()
	code, p := leb128.Uint(b, to.at)
	if p < 0 || code == 0 {
		return false
	}
	a := t.lookup(code)
	return a.kind != kindUnknown && a.take >= 0 && t.take(a, b, p, to.unit.source.big, e)
}

// refer returns the entry that the value of an attribute of class reference names
// (DWARF 5 §7.5.5), with a nil unit when there is none.
func (r *reader) refer(u *unit, form uint8, v uint64) target {
	switch form {
	case formRef1, formRef2, formRef4, formRef8, formRefUdata:
		if v >= uint64(u.first) && v < u.end-u.offset {
			return target{u, int(v)}
		}
	case formRefAddr:
		return u.source.entryAt(u, v)
	case formRefSup4, formRefSup8:
		if alt := r.data.alt; alt != nil {
			return alt.entryAt(r.foreign.unit, v)
		}
	case formRefSig8:
		return u.source.typeEntry(v)
	}
	return target{}
}

// entryAt returns the entry at an offset in .debug_info. near is a unit that is
// likely to hold it.
func (s *source) entryAt(near *unit, offset uint64) target {
	u := near
	if u == nil || u.section != &s.info || offset < u.offset || offset >= u.end {
		if u = s.unitAt(offset); u == nil {
			return target{}
		}
	}
	if at := offset - u.offset; at >= uint64(u.first) {
		return target{u, int(at)}
	}
	return target{}
}

// typeEntry returns the entry that a type's signature stands for (DWARF 5 §7.32).
func (s *source) typeEntry(signature uint64) target {
	s.signatures.once.Do(s.findTypes)
	u := s.signatures.units[signature]
	if u == nil || u.typeAt < uint64(u.first) || u.typeAt >= u.end-u.offset {
		return target{}
	}
	return target{u, int(u.typeAt)}
}

// findTypes collects the type units. Only references by signature need them, and
// those are rare where code is.
func (s *source) findTypes() {
	s.signatures.units = make(map[uint64]*unit)
	for _, list := range [][]unit{s.units, s.typeUnits} {
		for k := range list {
			if list[k].kind == unitType {
				s.signatures.units[list[k].id] = &list[k]
			}
		}
	}
}
