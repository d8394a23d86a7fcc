package recorder

import "github.com/callreel/callreel/recorder/internal/imports"

// ImportError says that an import can't be recorded as it was asked for: Text is what --imports was given, and Err, which it wraps, says why.
type ImportError = imports.Error

// ImportSlot is a slot of an image, an entry of its global offset table: where it leads, and whether the dynamic linker would have put that
// there.
type ImportSlot struct {
	Module  string // whose slot it is
	Symbol  string
	Version string // of the symbol, "" for none
	Kind    string // "jump" for what a PLT entry jumps by, "data" for what code loads, "word" for a pointer in data
	Address uint64 // of the slot, in the process
	Value   uint64 // what was in it
	// Verdict is one of ImportVerdicts.
	Verdict string
	// To is the module that the value leads into, or what is mapped there, in words; "" for no value. Function is the symbol there, "" where
	// none is known, and Offset how far behind its beginning it leads.
	To       string
	Function string
	Offset   uint64
	// Expected is the module that the linker's rules lead to, "" where nothing defines the symbol. ExpectedAt is the address there, 0 where only
	// a resolver knows (IFUNC).
	Expected   string
	ExpectedAt uint64
}

// ImportVerdicts are what is said of slots: "bound", "interposed" (by a definition that comes before that of the libraries which the image needs),
// "lazy" (not bound yet), "undefined" (nothing defines the weak symbol), "unrelocated", "rebound" (somewhere the linker would not have led
// it) and "unreadable".
func ImportVerdicts() []string { return importVerdicts[:] }

var importVerdicts = [...]string{"bound", "interposed", "lazy", "undefined", "unrelocated", "rebound", "unreadable"}

// ImportQuery says which slots are listed. The globs are as those of Choice; none match any.
type ImportQuery struct {
	Modules  []string // whose slots
	Names    []string // the symbol's, or 'LIB:FUNC' with the module or the library that it leads into
	Verdicts []string
	// Words lists pointers in data, too.
	Words bool
	// Memory bounds what is kept of files, as Choice.Memory.
	Memory int64
}
