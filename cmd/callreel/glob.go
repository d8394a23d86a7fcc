package main

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/callreel/callreel/recorder"
)

// globs match names and remember which of them have matched any.
type globs struct {
	patterns []string
	hit      []bool
	missed   []string // some names that none has matched, for suggestions
}

// maxMissed bounds what is kept for suggestions: names come from files.
const maxMissed = 1 << 16

func newGlobs(patterns []string) *globs {
	return &globs{patterns: patterns, hit: make([]bool, len(patterns))}
}

// match says whether any pattern matches.
func (g *globs) match(name string) bool {
	found := false
	for i, p := range g.patterns {
		if glob(p, name) {
			g.hit[i], found = true, true
		}
	}
	if !found && len(g.missed) < maxMissed {
		g.missed = append(g.missed, name)
	}
	return found
}

// unmatched is an error for the first pattern that has matched nothing; flag is how it was given.
func (g *globs) unmatched(flag string) error {
	for i, p := range g.patterns {
		if !g.hit[i] {
			return &recorder.NoMatchError{Flag: flag, Glob: p, Near: near(p, g.missed)}
		}
	}
	return nil
}

// near returns up to five of the names that hold the pattern's letters, or as many of its first letters as any does.
func near(pattern string, names []string) []string {
	const most, fewest = 5, 3
	letters := strings.ToLower(strings.Trim(pattern, "*?"))
	for n := len(letters); n >= fewest; n-- {
		var list []string
		for _, name := range names {
			if strings.Contains(strings.ToLower(name), letters[:n]) {
				list = append(list, name)
			}
		}
		if len(list) > 0 {
			slices.SortFunc(list, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
			list = slices.Compact(list)
			return list[:min(most, len(list))]
		}
	}
	return nil
}

// glob matches a whole name: * takes any characters, ? one, [abc] one of these. As C++ has names such as operator[] and
// f[abi:cxx11], brackets match themselves, too.
func glob(pattern, name string) bool {
	if pattern == name {
		return true
	}
	// path.Match stops * at slashes; a byte that no name holds stands in for them.
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
