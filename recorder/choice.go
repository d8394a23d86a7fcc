package recorder

import "github.com/callreel/callreel/recorder/internal/choose"

// Choice says which functions to take. The globs are those of path.Match, where * also takes slashes and colons; names match as
// the symbol table has them, demangled in full, and demangled without parameters.
type Choice struct {
	Modules   []string // base names of files; empty for all
	Functions []string // empty for all
	Exclude   []string
	MinSize   uint64 // bytes
	// NoFound leaves out functions that neither symbols nor call frame information tell of, and that were found in the code.
	NoFound bool
	// Memory bounds what the files of one process, or one file, may make us keep of them, in bytes: see object.Allowance. 0 is
	// object.DefaultMemory.
	Memory int64
}

// rules are what it says of modules and functions.
func (c *Choice) rules() choose.Rules {
	return choose.Rules{Modules: c.Modules, Functions: c.Functions, Exclude: c.Exclude, MinSize: c.MinSize}
}
