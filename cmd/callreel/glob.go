package main

import (
	"github.com/callreel/callreel/internal/glob"
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
		if glob.Match(p, name) {
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
			return glob.NoMatch(flag, p, g.missed)
		}
	}
	return nil
}
