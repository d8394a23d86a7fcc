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
	wanters             []wanter // what else asks for functions
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

// spellings are all names of a function that globs may match; none if nobody asks for names.
func (ch *chooser) spellings(names []string) []string {
	if len(ch.c.Functions)+len(ch.c.Exclude)+len(ch.inside)+len(ch.wanters) == 0 {
		return nil
	}
	return glob.Spellings(names)
}

// function says whether a function of a chosen module is, by its spellings.
func (ch *chooser) function(names []string, size uint64) bool {
	ch.sample = append(ch.sample, names...)
	in := glob.Any(ch.c.Functions, ch.fnHit, names) || len(ch.c.Functions) == 0
	out := glob.Any(ch.c.Exclude, ch.xHit, names)
	return in && !out && size >= ch.c.MinSize
}

// asking are the wanters that ask for a function.
func (ch *chooser) asking(names []string) (list []wanter) {
	for _, w := range ch.wanters {
		if w.Wants(names) {
			list = append(list, w)
		}
	}
	return list
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
	return nil
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
