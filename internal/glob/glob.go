// Package glob says which names a glob matches, and of one that matches none which names are like it.
package glob

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/callreel/callreel/demangle"
)

// Match says whether a glob is a name, or matches it as a whole: * takes any characters, ? one, [abc] one of these. As C++ has names such
// as operator[] and f[abi:cxx11], brackets match themselves, too. It takes no longer than the name's length times the glob's.
func Match(pattern, name string) bool {
	switch {
	case pattern == name:
		return true
	case !strings.ContainsAny(pattern, `[\`):
		return matchWildcards(pattern, name)
	}
	// path.Match stops * at slashes; a byte that no name holds takes their place.
	pattern, name = strings.ReplaceAll(pattern, "/", "\x01"), strings.ReplaceAll(name, "/", "\x01")
	if ok, err := path.Match(pattern, name); err == nil && ok {
		return true
	}
	if !strings.Contains(pattern, "[") {
		return false
	}
	ok, err := path.Match(strings.ReplaceAll(pattern, "[", `\[`), name)
	return err == nil && ok
}

// matchWildcards is Match for globs without brackets, of which very many names may be asked. It goes back to the last * only.
func matchWildcards(pattern, name string) bool {
	p, n := 0, 0
	star, from := -1, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, n
			p++
		case p < len(pattern) && pattern[p] == '?':
			_, size := utf8.DecodeRuneInString(name[n:])
			p, n = p+1, n+size
		case p < len(pattern) && pattern[p] == name[n]:
			p, n = p+1, n+1
		case star >= 0:
			from++
			p, n = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
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
