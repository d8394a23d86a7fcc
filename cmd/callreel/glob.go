package main

import (
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
	const most = 5
	for i, p := range g.patterns {
		if g.hit[i] {
			continue
		}
		letters := strings.ToLower(strings.Trim(p, "*?"))
		var near []string
		for _, name := range g.missed {
			if letters != "" && strings.Contains(strings.ToLower(name), letters) {
				near = append(near, name)
			}
		}
		slices.SortFunc(near, func(a, b string) int { return len(a) - len(b) })
		near = slices.Compact(near)
		return &recorder.NoMatchError{Flag: flag, Glob: p, Near: near[:min(most, len(near))]}
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
