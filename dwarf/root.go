package dwarf

import "github.com/callreel/callreel/internal/leb128"

// A root is what a unit's first entry says that others need.
type root struct {
	tag      uint16
	children int // offset of the first child in the unit, 0 when there is none

	lowPC    uint64 // base of range lists
	hasLow   bool
	stmtList uint64 // offset in .debug_line
	hasLines bool
	compDir  String

	strOffsetsBase, addrBase, rnglistsBase uint64
	gnuRangesBase                          uint64

	isSplit bool   // code is described in another file
	dwoName String // of that file
	dwoID   uint64
}

// readRoot reads the first entry of a unit.
func (u *unit) readRoot(t *table, root *root) error {
	*root = root.defaults(u)
	b := u.bytes()
	code, p := leb128.Uint(b, int(u.first))
	if p < 0 {
		return u.problem(int(u.first), "unit without an entry")
	}
	a := t.lookup(code)
	if code == 0 || a.kind == kindUnknown || a.take < 0 {
		return u.problem(int(u.first), "first entry: %w", t.unknown(u, code))
	}
	var e entry
	if !t.take(a, b, p, u.source.big, &e) {
		return u.problem(int(u.first), "first entry: %w", errEnd)
	}
	end := t.skip(a, b, p, u.source.big)
	if end < 0 || end > len(b) {
		return u.problem(int(u.first), "first entry: %w", errEnd)
	}
	root.tag = t.takes[a.take].tag
	if a.children > 0 {
		root.children = end
	}
	root.interpret(u, &e)
	return nil
}

// defaults gives the bases that hold where no attribute says otherwise: behind the
// header of the unit's contribution (DWARF 5 §7.26 to §7.28), which is the only
// one in a split file. The GNU forms of version 4 count from the section's start.
func (*root) defaults(u *unit) root {
	var r root
	if u.version < 5 {
		r.addrBase, r.gnuRangesBase = u.source.addrBase, u.source.rangesBase
		return r
	}
	r.strOffsetsBase, r.addrBase, r.rnglistsBase = 8, 8, 12
	if u.shape.offset == 8 {
		r.strOffsetsBase, r.addrBase, r.rnglistsBase = 16, 16, 20
	}
	if u.source.role == roleSplit {
		r.addrBase = u.source.addrBase
	}
	return r
}

// interpret turns the attributes into values: the bases first, as the others need
// them.
func (r *root) interpret(u *unit, e *entry) {
	if e.has(slotStrOffsetsBase) {
		r.strOffsetsBase = e.val[slotStrOffsetsBase]
	}
	if e.has(slotAddrBase) {
		r.addrBase = e.val[slotAddrBase]
	}
	if e.has(slotRnglistsBase) {
		r.rnglistsBase = e.val[slotRnglistsBase]
	}
	if e.has(slotGNURangesBase) {
		r.gnuRangesBase = e.val[slotGNURangesBase]
	}
	if e.has(slotLowPC) {
		r.lowPC, r.hasLow = u.address(r, e.form[slotLowPC], e.val[slotLowPC])
	}
	if e.has(slotStmtList) {
		r.stmtList, r.hasLines = e.val[slotStmtList], true
	}
	if e.has(slotCompDir) {
		r.compDir = u.string(r, e.form[slotCompDir], e.val[slotCompDir])
	}
	if e.has(slotDwoName) {
		r.dwoName = u.string(r, e.form[slotDwoName], e.val[slotDwoName])
		// Clang refers to precompiled modules in the same way; they have no code.
		r.isSplit = r.dwoName != 0 && (e.has(slotLowPC) || e.has(slotRanges) || e.has(slotAddrBase))
	}
	if r.dwoID = u.id; e.has(slotDwoID) {
		r.dwoID = e.val[slotDwoID]
	}
}

// kept returns the unit's first entry for references from other units.
func (u *unit) kept() *root {
	u.base.once.Do(func() {
		// When it is damaged the defaults serve: what they lead to is checked.
		_ = u.readRoot(u.source.table(u, nil), &u.base.root)
	})
	return &u.base.root
}
