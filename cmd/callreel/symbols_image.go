package main

import (
	"fmt"
	"path/filepath"

	"github.com/callreel/callreel/internal/ownfolder"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/symbols"
)

// defaultStore is the folder of the user's store of symbol maps.
func defaultStore() (string, error) {
	cache, err := ownfolder.Cache()
	if err != nil {
		return "", fmt.Errorf("callreel: there is no place for the store of symbol maps; give one, or set XDG_CACHE_HOME: %w", err)
	}
	return filepath.Join(cache, "symbols"), nil
}

// openDefaultStore opens the user's store, nil where there can be none: maps are made in
// memory then.
func openDefaultStore() *symbols.Store {
	dir, err := defaultStore()
	if err != nil {
		return nil
	}
	store, err := symbols.OpenOwnStore(dir)
	if err != nil {
		return nil
	}
	return store
}

// buildOptions are those of the map of an image with what its debug files add. debug is the one that is known already, or nil.
func buildOptions(debug *object.Image, dirs []string, shown func(done, total int64)) symbols.BuildOptions {
	return symbols.BuildOptions{DebugDirs: dirs, Search: true, Debug: debug, Progress: shown}
}

// problems tells what a map was made without, and what damage cost it some of its contents.
func (s *status) problems(stats *symbols.BuildStats) {
	const most = 10
	for _, err := range stats.Missing {
		s.notice("%v", err)
	}
	for k, problem := range stats.Problems {
		if k == most {
			s.notice("%d more problems", len(stats.Problems)-most+stats.Lost)
			break
		}
		s.notice("%v", problem)
	}
}
