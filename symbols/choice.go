package symbols

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"sort"
)

// Behind the strings of a map may be its choices, if flagChoices is set: for each address that symbols give several
// functions' names the best of them, as what isn't asked where code is but what a function is called has it. It is a
// count and a zero of 32 bits each, and records sorted by address: the address (64 bits), where the name is in strings,
// and a zero (32 bits each). Readers that don't know them pass them over.
const (
	choicesHead = 8
	choiceSize  = 16
)

// choice is one of them.
type choice struct {
	addr uint64
	name uint32 // where symbolNames finds it; later where it is in strings
}

// choose returns the best name of candidates at one address, and whether several functions' names are there.
func (n *symbolNames) choose(list []candidate) (best uint32, several bool) {
	var name []byte
	local := false
	for k := range list {
		c := &list[k]
		text := withoutVersion(n.at(c.name))
		if !c.function || len(text) == 0 {
			continue
		}
		switch {
		case name == nil:
		case bytes.Equal(text, name):
			if c.local == local || !local {
				continue
			}
		default:
			several = true
			if compareNames(text, c.local, name, local) > 0 {
				continue
			}
		}
		best, name, local = c.name, text, c.local
	}
	return best, several
}

// compareNames orders the names of one address as a recorder does: first those with fewer leading underscores, then
// global ones, then the shorter.
func compareNames(a []byte, aLocal bool, b []byte, bLocal bool) int {
	rank := func(name []byte, local bool) int {
		r := 2 * Underscores(string(name))
		if local {
			r++
		}
		return r
	}
	return cmp.Or(cmp.Compare(rank(a, aLocal), rank(b, bLocal)), cmp.Compare(len(a), len(b)), bytes.Compare(a, b))
}

// Underscores is how many underscores a name begins with.
func Underscores(name string) int {
	n := 0
	for n < len(name) && name[n] == '_' {
		n++
	}
	return n
}

// withoutVersion takes the version off a symbol's name ("f@@V1").
func withoutVersion(name []byte) []byte {
	if at := bytes.IndexByte(name, '@'); at > 0 {
		return name[:at]
	}
	return name
}

// addChoices gives the names of the choices their places in strings.
func (w *writer) addChoices() {
	if w.symbols == nil {
		return
	}
	for _, c := range w.symbols.choices {
		if at := w.text(withoutVersion(w.symbols.names.at(c.name))); at != 0 {
			w.choices = append(w.choices, choice{c.addr, at})
		}
	}
	if len(w.choices) > 0 {
		w.head.flags |= flagChoices
	}
}

// choicesSize is how many bytes they take.
func (w *writer) choicesSize() uint64 {
	if len(w.choices) == 0 {
		return 0
	}
	return choicesHead + choiceSize*uint64(len(w.choices))
}

func (w *writer) putChoices(put func([]byte)) {
	if len(w.choices) == 0 {
		return
	}
	le := binary.LittleEndian
	b := le.AppendUint64(make([]byte, 0, w.choicesSize()), uint64(len(w.choices)))
	for _, c := range w.choices {
		b = le.AppendUint64(b, c.addr)
		b = le.AppendUint64(b, uint64(c.name))
	}
	put(b)
}

// findChoices finds them in a map that is opened. What doesn't fit is left out: they are of use, and not needed.
func (m *Map) findChoices() {
	last := m.head.sections[sectionStrings]
	at := last.off + last.size
	at = (at + sectionAlign - 1) &^ (sectionAlign - 1)
	if m.head.flags&flagChoices == 0 || at > m.head.total || m.head.total-at < choicesHead {
		return
	}
	rest := m.data[at:]
	n := uint64(binary.LittleEndian.Uint32(rest))
	if n <= uint64(len(rest)-choicesHead)/choiceSize {
		m.choices = rest[choicesHead:][:n*choiceSize]
	}
}

// Choice returns the best of the names that symbols give the function at a link address, and false if there are less
// than two: Lookup then has the only one. The name aliases the map.
func (m *Map) Choice(addr uint64) (name string, ok bool) {
	le := binary.LittleEndian
	n := len(m.choices) / choiceSize
	k := sort.Search(n, func(k int) bool { return le.Uint64(m.choices[k*choiceSize:]) >= addr })
	if k >= n || le.Uint64(m.choices[k*choiceSize:]) != addr {
		return "", false
	}
	name = m.text(uint64(le.Uint32(m.choices[k*choiceSize+8:])))
	return name, name != ""
}
