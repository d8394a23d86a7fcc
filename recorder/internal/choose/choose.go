// Package choose says which functions of which images are to be recorded, and which globs have matched none of them.
package choose

import (
	"github.com/callreel/callreel/internal/glob"
)

// Rules say which functions are chosen: those of a module that Modules matches, if Functions matches them, Exclude doesn't, and they have
// at least MinSize bytes. Inside, of a chosen module too, are taken besides. All of them are globs; no Modules and no Functions match any.
type Rules struct {
	Modules, Functions, Exclude []string
	MinSize                     uint64 // bytes
	// Inside are functions that calls are to be recorded in.
	Inside []string
	// None says that no functions are chosen by the other rules: only those that are asked for otherwise.
	None bool
	// Exec says that functions that replace programs get their hooks, too.
	Exec bool
}

// Wanter asks for functions whatever the rules say of them. names are all spellings of a function's.
type Wanter interface {
	// Wants says whether it asks for a function. It is asked of functions of other modules, too, but doesn't get them.
	Wants(names []string) bool
	// Take is told under which ID a function is recorded that it asks for, Refuse why one isn't.
	Take(id uint32, names []string)
	Refuse(names []string, why string)
}

// Chooser goes by rules, and remembers what has matched. It is for one goroutine.
type Chooser struct {
	rules                               Rules
	wanters                             []Wanter
	modules, functions, exclude, inside list
	moduleNames, names                  []string // that were seen
}

// list is the globs of an option, and which of them have matched.
type list struct {
	globs []string
	hit   []bool
}

func newList(globs []string) list { return list{globs, make([]bool, len(globs))} }

func (l *list) match(names []string) bool { return glob.Any(l.globs, l.hit, names) }

// New returns a chooser. wanters ask for functions besides.
func New(r Rules, wanters ...Wanter) *Chooser {
	return &Chooser{rules: r, wanters: wanters,
		modules: newList(r.Modules), functions: newList(r.Functions), exclude: newList(r.Exclude), inside: newList(r.Inside)}
}

// Module says whether a module is chosen by one of its names.
func (c *Chooser) Module(names ...string) bool {
	c.moduleNames = append(c.moduleNames, names...)
	return c.modules.match(names) || len(c.modules.globs) == 0
}

// Function says whether a function of a chosen module is, by its names and its size in bytes.
func (c *Chooser) Function(names []string, size uint64) bool {
	return c.function(c.spellings(names), size)
}

// spellings are all names of a function that globs may match; none if nobody asks for names.
func (c *Chooser) spellings(names []string) []string {
	if len(c.functions.globs)+len(c.exclude.globs)+len(c.inside.globs)+len(c.wanters) == 0 {
		return nil
	}
	return glob.Spellings(names)
}

func (c *Chooser) function(names []string, size uint64) bool {
	c.names = append(c.names, names...)
	in := c.functions.match(names) || len(c.functions.globs) == 0
	out := c.exclude.match(names)
	return in && !out && size >= c.rules.MinSize && !c.rules.None
}

// asking are the wanters that ask for a function.
func (c *Chooser) asking(names []string) (list []Wanter) {
	for _, w := range c.wanters {
		if w.Wants(names) {
			list = append(list, w)
		}
	}
	return list
}

// Names are the names of functions that were seen, for messages of what is near them.
func (c *Chooser) Names() []string { return c.names }

// Forget forgets the names that were seen: nothing is to be said of them any more.
func (c *Chooser) Forget() { c.names, c.moduleNames = nil, nil }

// Missed is a glob that has matched nothing.
type Missed struct {
	Flag, Glob string
	names      []string // that it could have matched
}

// Err is the error that says so.
func (m *Missed) Err() *glob.NoMatchError { return glob.NoMatch(m.Flag, m.Glob, m.names) }

// Misspelt says whether it is likely meant to be one of the names that were seen.
func (m *Missed) Misspelt() bool { return glob.Misspelt(m.Glob, m.names) }

// Missed are the globs that have matched nothing.
func (c *Chooser) Missed() (all []Missed) {
	for _, k := range []struct {
		flag  string
		globs *list
		names []string
	}{
		{"-m", &c.modules, c.moduleNames},
		{"-f", &c.functions, c.names},
		{"-x", &c.exclude, c.names},
		{"--inside", &c.inside, c.names},
	} {
		for i, g := range k.globs.globs {
			if !k.globs.hit[i] {
				all = append(all, Missed{k.flag, g, k.names})
			}
		}
	}
	return all
}

// Check returns an error for the first glob that has matched nothing.
func (c *Chooser) Check() error {
	if all := c.Missed(); len(all) > 0 {
		return all[0].Err()
	}
	return nil
}
