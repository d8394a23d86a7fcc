package recorder

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/callreel/callreel/demangle"
	"github.com/callreel/callreel/object"
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

// glob matches a name, * taking any characters.
func glob(pattern, name string) bool {
	// path.Match stops * at slashes; a byte that no name holds stands in for them.
	ok, err := path.Match(strings.ReplaceAll(pattern, "/", "\x01"), strings.ReplaceAll(name, "/", "\x01"))
	return err == nil && ok
}

// namesOf are all the spellings a glob may match.
func namesOf(names []string) []string {
	all := slices.Clone(names)
	for _, n := range names {
		if d := demangle.Name(n); d != n {
			all = append(all, d)
			if s := demangle.Short(n); s != d {
				all = append(all, s)
			}
		}
	}
	return all
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
	watching            *watching // nil if nothing is
}

func newChooser(c *Choice) *chooser {
	ch := &chooser{c: c, modHit: make([]bool, len(c.Modules)), fnHit: make([]bool, len(c.Functions)), xHit: make([]bool, len(c.Exclude))}
	ch.images = mapped.Search{Chosen: ch.module, NoFound: c.NoFound, Memory: object.NewAllowance(c.Memory)}
	return ch
}

// module says whether a module is chosen by one of its names.
func (ch *chooser) module(names ...string) bool {
	ch.modules = append(ch.modules, names...)
	return anyGlob(ch.c.Modules, ch.modHit, names) || len(ch.c.Modules) == 0
}

// function says whether a function of a chosen module is.
func (ch *chooser) function(names []string, size uint64) bool {
	if len(ch.c.Functions) > 0 || len(ch.c.Exclude) > 0 || ch.captures != nil {
		names = namesOf(names)
		ch.sample = append(ch.sample, names...)
	}
	if ch.captures.wants(names) {
		anyGlob(ch.c.Functions, ch.fnHit, names)
		return true
	}
	in := anyGlob(ch.c.Functions, ch.fnHit, names) || len(ch.c.Functions) == 0
	out := anyGlob(ch.c.Exclude, ch.xHit, names)
	return in && !out && size >= ch.c.MinSize
}

// isInside says whether a function of a chosen module is one that calls are to be recorded in.
func (ch *chooser) isInside(names []string) bool {
	if len(ch.inside) == 0 {
		return false
	}
	names = namesOf(names)
	ch.sample = append(ch.sample, names...)
	return anyGlob(ch.inside, ch.inHit, names)
}

func anyGlob(globs []string, hit []bool, names []string) bool {
	found := false
	for i, g := range globs {
		for _, n := range names {
			if n == g || glob(g, n) {
				hit[i], found = true, true
				break
			}
		}
	}
	return found
}

// missed is a glob that matched nothing. names are those that it could have matched.
type missed struct {
	flag, glob string
	names      []string
}

// told is the error that says so.
func (m *missed) told() *NoMatchError {
	return &NoMatchError{Flag: m.flag, Glob: m.glob, Near: near(m.glob, m.names)}
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

// misspelt says whether a glob without wildcards is likely meant to be one of the names: it is part of one, or all but one.
func misspelt(pattern string, names []string) bool {
	if strings.ContainsAny(pattern, "*?[") {
		return false
	}
	want := strings.ToLower(pattern)
	limit := 1 + len(want)/6
	return slices.ContainsFunc(names, func(n string) bool {
		l := strings.ToLower(n)
		return strings.Contains(l, want) || editDistance(want, l, limit) <= limit
	})
}

// near returns up to five names that are like the glob: that hold its letters as a part, then those with the least
// edit distance.
func near(pattern string, names []string) []string {
	want := strings.ToLower(strings.Trim(pattern, "*?"))
	type scored struct {
		name string
		cost int
	}
	best := map[string]int{}
	for _, n := range names {
		l := strings.ToLower(n)
		var cost int
		switch {
		case want != "" && strings.Contains(l, want):
			cost = len(l) - len(want)
		default:
			limit := 1 + len(want)/3
			d := editDistance(want, l, limit)
			if d > limit {
				continue
			}
			cost = 1000 + d
		}
		best[n] = cost
	}
	var list []scored
	for n, c := range best {
		list = append(list, scored{n, c})
	}
	slices.SortFunc(list, func(a, b scored) int { return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.name, b.name)) })
	var out []string
	for _, s := range list[:min(5, len(list))] {
		out = append(out, s.name)
	}
	return out
}

// editDistance is Levenshtein's, or limit+1 once it is sure to be more than limit.
func editDistance(a, b string, limit int) int {
	if d := len(a) - len(b); d > limit || -d > limit {
		return limit + 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diag := row[0]
		row[0] = i
		least := row[0]
		for j := 1; j <= len(b); j++ {
			next := min(row[j]+1, row[j-1]+1)
			if a[i-1] == b[j-1] {
				next = min(next, diag)
			} else {
				next = min(next, diag+1)
			}
			diag, row[j] = row[j], next
			least = min(least, next)
		}
		if least > limit {
			return limit + 1
		}
	}
	return row[len(b)]
}
