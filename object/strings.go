package object

import "strings"

// stringTable is a table of NUL-terminated names. It is one copy of the section,
// so that the names stay valid after Close and cost no allocation each.
type stringTable struct {
	text   string
	budget int // how many more bytes of names may be handed out
}

// newStrings copies a string table. Linkers let names share their ends, so the
// names together may be longer than the table, yet by a small factor only; a table
// made so that each of a million symbols is named by most of it would otherwise
// cost hours.
func newStrings(section []byte) *stringTable {
	return newStringTable(string(section))
}

func newStringTable(text string) *stringTable {
	return &stringTable{text: text, budget: 16*len(text) + 1<<20}
}

// at returns the name at an offset; false when it is outside or has no end.
func (t *stringTable) at(off uint32) (string, bool) {
	if uint64(off) >= uint64(len(t.text)) {
		// Many linkers leave the table out when every name is empty.
		return "", off == 0
	}
	s := t.text[off:]
	if len(s) > t.budget {
		s = s[:max(t.budget, 0)]
	}
	end := strings.IndexByte(s, 0)
	if end < 0 {
		t.budget -= len(s)
		return "", false
	}
	t.budget -= end
	return s[:end], true
}
