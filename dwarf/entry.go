package dwarf

import "github.com/callreel/callreel/internal/leb128"

// slot is the place of an attribute in an entry.
type slot uint8

// The slots. The first are for functions and inlined calls, those from
// slotStmtList on for the first entry of a unit.
const (
	slotLowPC slot = iota
	slotHighPC
	slotRanges
	slotName
	slotLinkageName
	slotOrigin
	slotSpecification
	slotDeclFile
	slotDeclLine
	slotCallFile
	slotCallLine
	slotStmtList
	slotCompDir
	slotStrOffsetsBase
	slotAddrBase
	slotRnglistsBase
	slotGNURangesBase
	slotDwoName
	slotDwoID
	slotCount

	slotNone slot = 0xff
)

// slotOf returns the slot of an attribute.
func slotOf(attr uint64) slot {
	switch attr {
	case attrLowPC:
		return slotLowPC
	case attrHighPC:
		return slotHighPC
	case attrRanges:
		return slotRanges
	case attrName:
		return slotName
	case attrLinkageName, attrMIPSLinkageName:
		return slotLinkageName
	case attrAbstractOrigin:
		return slotOrigin
	case attrSpecification:
		return slotSpecification
	case attrDeclFile:
		return slotDeclFile
	case attrDeclLine:
		return slotDeclLine
	case attrCallFile:
		return slotCallFile
	case attrCallLine:
		return slotCallLine
	case attrStmtList:
		return slotStmtList
	case attrCompDir:
		return slotCompDir
	case attrStrOffsetsBase:
		return slotStrOffsetsBase
	case attrAddrBase, attrGNUAddrBase:
		return slotAddrBase
	case attrRnglistsBase:
		return slotRnglistsBase
	case attrGNURangesBase:
		return slotGNURangesBase
	case attrDwoName, attrGNUDwoName:
		return slotDwoName
	case attrGNUDwoID:
		return slotDwoID
	}
	return slotNone
}

// An entry holds the values of one entry's attributes, as they stand there: what
// they mean depends on the form and is worked out by those who want it. A form of
// 0 is an attribute that the entry does not have.
type entry struct {
	form [slotCount]uint8
	val  [slotCount]uint64
}

func (e *entry) has(s slot) bool { return e.form[s] != 0 }

// take reads the attributes of the entry whose values start at b[p]. It returns
// false when they do not fit.
func (t *table) take(a *abbrev, b []byte, p int, big bool, e *entry) bool {
	e.form = [slotCount]uint8{}
	prog := &t.takes[a.take]
	for _, s := range t.steps[prog.first : prog.first+prog.count] {
		if s.encoding == encConst {
			e.form[s.slot], e.val[s.slot] = s.form, t.consts[s.size]
			continue
		}
		p += int(s.size)
		var v uint64
		switch {
		case s.encoding == 4 && !big && uint(p) < uint(len(b)) && len(b)-p >= 4:
			q := b[p : p+4]
			v = uint64(q[0]) | uint64(q[1])<<8 | uint64(q[2])<<16 | uint64(q[3])<<24
			p += 4
		case s.encoding == 1 && uint(p) < uint(len(b)):
			v = uint64(b[p])
			p++
		case s.encoding == encIndirect:
			if p = t.takeIndirect(b, p, big, s.slot, e); p < 0 {
				return false
			}
			continue
		default:
			if v, p = s.encoding.value(b, p, big); p < 0 {
				return false
			}
		}
		if s.slot != slotNone {
			e.form[s.slot], e.val[s.slot] = s.form, v
		}
	}
	return true
}

// takeIndirect reads a value whose form stands before it (DWARF 5 §7.5.3).
func (t *table) takeIndirect(b []byte, p int, big bool, into slot, e *entry) int {
	form, p := leb128.Uint(b, p)
	if p < 0 {
		return -1
	}
	enc, form8 := t.shape.encode(form)
	v, p := enc.value(b, p, big) // -1 for another indirect one, which has no sense
	if p >= 0 && into != slotNone {
		e.form[into], e.val[into] = form8, v
	}
	return p
}

// skip steps over the values of an entry that start at b[p] and returns where they
// end, -1 when they do not fit.
func (t *table) skip(a *abbrev, b []byte, p int, big bool) int {
	p += int(a.size)
	for _, o := range t.ops[a.ops : a.ops+uint32(a.count)] {
		switch o.encoding {
		case encBlock:
			if uint(p) >= uint(len(b)) {
				return -1
			}
			n := uint64(b[p])
			p++
			if n >= 0x80 {
				n, p = leb128.Uint(b, p-1)
			}
			p = skipBlock(b, p, n)
		case encULEB, encSLEB:
			p = leb128.Skip(b, p)
		case encString:
			p = skipString(b, p)
		case encIndirect:
			p = t.skipIndirect(b, p, big)
		default:
			_, p = o.encoding.value(b, p, big)
		}
		if p < 0 {
			return -1
		}
		p += int(o.size)
	}
	return p
}

func (t *table) skipIndirect(b []byte, p int, big bool) int {
	form, p := leb128.Uint(b, p)
	if p < 0 {
		return -1
	}
	enc, _ := t.shape.encode(form)
	_, p = enc.value(b, p, big)
	return p
}
