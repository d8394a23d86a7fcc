package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/symbols"
)

// defaultStore is the user's store of symbol maps.
func defaultStore() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("callreel: there is no place for the store of symbol maps; give one, or set XDG_CACHE_HOME: %w", err)
	}
	return filepath.Join(cache, "callreel", "symbols"), nil
}

// buildMap compiles the map of an image with what its debug files add. debug is the one that
// is known already, or nil; a debug file that does not fit is told to refused.
func buildMap(ctx context.Context, im, debug *object.Image, w io.Writer, dirs []string, shown func(done, total int64), refused func(error)) (*symbols.BuildStats, error) {
	if debug == nil && im.Section(".debug_info") == nil {
		search := object.DebugSearch{Dirs: dirs}
		found, err := search.Debug(im)
		if err == nil {
			defer found.Close()
			debug = found
		} else if errors.As(err, new(*object.IDError)) {
			refused(err)
		}
	}
	return symbols.Build(ctx, im, w, symbols.BuildOptions{DebugDirs: dirs, Search: true, Debug: debug, Progress: shown})
}

// problems tells what damage cost a map some of its contents.
func (s *status) problems(stats *symbols.BuildStats) {
	const most = 10
	for k, problem := range stats.Problems {
		if k == most {
			s.notice("%d more problems", len(stats.Problems)-most+stats.Lost)
			break
		}
		s.notice("%v", problem)
	}
}
