package isa

import "strconv"

// Names are the names of an architecture's registers by their DWARF numbers. Those of several architectures have the
// same form, so each package below only gives the table.
type Names struct {
	Count   int // one more than the highest number with a name
	Banks   []Bank
	Aliases []Alias
}

// A Bank is a run of DWARF numbers whose names are a word and a counter from 0; the word alone where it is one register.
type Bank struct {
	First, Last int
	Name        string
}

// An Alias is another name of a register.
type Alias struct {
	Name   string
	Number int
}

// Name returns the lower-case name of DWARF register n. A number that the ABI leaves open gives "dwarf" and the number,
// so that the name is never empty.
func (t *Names) Name(n int) string {
	for _, b := range t.Banks {
		if n < b.First || n > b.Last {
			continue
		}
		if b.First == b.Last {
			return b.Name
		}
		return b.Name + strconv.Itoa(n-b.First)
	}
	return "dwarf" + strconv.Itoa(n)
}

// Number returns the DWARF number of a register by its lower-case name: one that Name gives, or another that is in use
// for it.
func (t *Names) Number(name string) (int, bool) {
	for _, a := range t.Aliases {
		if a.Name == name {
			return a.Number, true
		}
	}
	for n := range t.Count {
		if t.Name(n) == name {
			return n, true
		}
	}
	return 0, false
}
