package recorder

import (
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/recorder/internal/glob"
	"github.com/callreel/callreel/recorder/internal/mapped"
)

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

// wanter asks for functions whatever a Choice says of them. names are all spellings of a function's.
type wanter interface {
	// Wants says whether it asks for a function. Of images that aren't chosen it is asked, too.
	Wants(names []string) bool
	// Take is told under which ID a function is probed that it asks for, Refuse why one isn't.
	Take(id uint32, names []string)
	Refuse(names []string, why string)
}

// chooser applies a Choice and remembers which globs have matched.
type chooser struct {
	c                   *Choice
	inside              []string // see Less
	modHit, fnHit, xHit []bool
	inHit               []bool
	sample              []string // names seen, for suggestions
	modules             []string
	follow              bool // what replaces programs is guarded, too
	images              mapped.Search
	captures            *captures // nil if no arguments are recorded
	wanters             []wanter  // what else asks for functions
}

func newChooser(c *Choice) *chooser {
	ch := &chooser{c: c, modHit: make([]bool, len(c.Modules)), fnHit: make([]bool, len(c.Functions)), xHit: make([]bool, len(c.Exclude))}
	ch.images = mapped.Search{Chosen: ch.module, NoFound: c.NoFound, Memory: object.NewAllowance(c.Memory)}
	return ch
}

// module says whether a module is chosen by one of its names.
func (ch *chooser) module(names ...string) bool {
	ch.modules = append(ch.modules, names...)
	return glob.Any(ch.c.Modules, ch.modHit, names) || len(ch.c.Modules) == 0
}

// function says whether a function of a chosen module is.
func (ch *chooser) function(names []string, size uint64) bool {
	if len(ch.c.Functions) > 0 || len(ch.c.Exclude) > 0 || ch.captures != nil {
		names = glob.Spellings(names)
		ch.sample = append(ch.sample, names...)
	}
	if ch.captures.wants(names) {
		glob.Any(ch.c.Functions, ch.fnHit, names)
		return true
	}
	in := glob.Any(ch.c.Functions, ch.fnHit, names) || len(ch.c.Functions) == 0
	out := glob.Any(ch.c.Exclude, ch.xHit, names)
	return in && !out && size >= ch.c.MinSize
}

// isInside says whether a function of a chosen module is one that calls are to be recorded in.
func (ch *chooser) isInside(names []string) bool {
	if len(ch.inside) == 0 {
		return false
	}
	names = glob.Spellings(names)
	ch.sample = append(ch.sample, names...)
	return glob.Any(ch.inside, ch.inHit, names)
}

// missed is a glob that matched nothing. names are those that it could have matched.
type missed struct {
	flag, glob string
	names      []string
}

// told is the error that says so.
func (m *missed) told() *NoMatchError {
	return glob.NoMatch(m.flag, m.glob, m.names)
}

// unmatched returns an error for the first glob that matched nothing.
func (ch *chooser) unmatched() error {
	if all := ch.missed(); len(all) > 0 {
		return all[0].told()
	}
	return ch.captures.unmatched(ch.sample)
}

// missed are the globs that matched nothing.
func (ch *chooser) missed() (all []missed) {
	for _, k := range []struct {
		flag  string
		globs []string
		hit   []bool
		names []string
	}{
		{"-m", ch.c.Modules, ch.modHit, ch.modules},
		{"-f", ch.c.Functions, ch.fnHit, ch.sample},
		{"-x", ch.c.Exclude, ch.xHit, ch.sample},
		{"--inside", ch.inside, ch.inHit, ch.sample},
	} {
		for i, g := range k.globs {
			if !k.hit[i] {
				all = append(all, missed{k.flag, g, k.names})
			}
		}
	}
	return all
}
