// Package glob says which names a glob matches, and of one that matches none which names are like it.
package glob

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/callreel/callreel/demangle"
)

// Match says whether a glob is a name, or matches it: globs are those of path.Match, but * and ? also take slashes. A glob that isn't
// well-formed matches itself only.
func Match(pattern, name string) bool {
	if pattern == name {
		return true
	}
	// path.Match stops * at slashes; a byte that no name holds takes their place.
	ok, err := path.Match(strings.ReplaceAll(pattern, "/", "\x01"), strings.ReplaceAll(name, "/", "\x01"))
	return err == nil && ok
}

// MatchAny says whether a glob matches one of the names.
func MatchAny(pattern string, names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return Match(pattern, n) })
}

// Any says whether one of the globs matches one of the names. hit, if not nil, has an element for each glob, and those of the globs that
// match are set.
func Any(globs []string, hit []bool, names []string) bool {
	found := false
	for i, g := range globs {
		if !MatchAny(g, names) {
			continue
		}
		if hit == nil {
			return true
		}
		hit[i], found = true, true
	}
	return found
}

// Spellings are the names of a function in all the ways that a glob may match: as they are, demangled in full, and demangled without
// parameters. names is left as it is.
func Spellings(names []string) []string {
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

// NoMatchError is a glob that matches nothing. Flag is the option that it was given with.
type NoMatchError struct {
	Flag, Glob string
	Near       []string // names that are like it
}

// NoMatch is the error of a glob that matches none of the names.
func NoMatch(flag, pattern string, names []string) *NoMatchError {
	return &NoMatchError{Flag: flag, Glob: pattern, Near: Near(pattern, names)}
}

func (e *NoMatchError) Error() string {
	if len(e.Near) == 0 {
		return fmt.Sprintf("%s %s matches nothing", e.Flag, e.Glob)
	}
	return fmt.Sprintf("%s %s matches nothing; near it are %s", e.Flag, e.Glob, strings.Join(e.Near, ", "))
}
