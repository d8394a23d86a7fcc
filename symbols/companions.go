package symbols

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/callreel/callreel/object"
)

// companions are the files that a search found, to be closed after the build.
type companions []io.Closer

// Close closes them.
func (c companions) Close() error {
	var errs []error
	for _, f := range c {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// searchCompanions fills in the options that are not given. What the image names and what
// is there, but isn't used, is told in missing; that there is no debug file is no news.
func searchCompanions(ctx context.Context, im *object.Image, opts *BuildOptions) (found companions, missing []error) {
	search := &object.DebugSearch{Dirs: opts.DebugDirs}
	holder := im
	if opts.Debug == nil && im.Section(".debug_info") == nil {
		if debug, err := search.Debug(im); err == nil {
			opts.Debug = debug
			found = append(found, debug)
		} else if none := (*object.NoDebugError)(nil); errors.As(err, &none) {
			missing = append(missing, none.Refused...)
		}
	}
	if opts.Debug != nil {
		holder = opts.Debug
	}
	if opts.Alt == nil {
		alt, err := search.Alt(holder)
		if _, id, ok := holder.GnuDebugAltLink(); err != nil && ok && len(id) > 0 && opts.FetchAlt != nil {
			if fetched, fetchErr := opts.FetchAlt(ctx, hex.EncodeToString(id)); fetchErr == nil {
				alt, err = fetched, nil
			} else {
				err = errors.Join(err, fetchErr)
			}
		}
		if err == nil && alt != nil {
			opts.Alt = alt
			found = append(found, alt)
		} else if err != nil {
			path, _, _ := holder.GnuDebugAltLink()
			missing = append(missing, fmt.Errorf("the file that dwz has made, %q, of which parts of the debug information are: %w", path, err))
		}
	}
	if opts.Split == nil && im.Format == object.ELF {
		split := search.Split(im, holder)
		opts.Split = split.Open
		found = append(found, split)
	}
	return found, missing
}

// debugPaths lists where debug folders have the debug file of an image, whose own file need not be at hand: by its ID and,
// in those that were given, by its name.
func debugPaths(dirs []string, w *Wanted) []string {
	id := w.ID
	if len(id) <= 2 || len(id) > maxIDSize || strings.Trim(id, "0123456789abcdef") != "" {
		return nil
	}
	var paths []string
	for _, dir := range append(slices.Clip(dirs), object.SystemDebugDir) {
		paths = append(paths, filepath.Join(dir, ".build-id", id[:2], id[2:]+".debug"))
	}
	if w.Path == "" {
		return paths
	}
	for _, dir := range dirs {
		named := filepath.Join(dir, filepath.Base(w.Path))
		paths = append(paths, named+".debug", named)
	}
	return paths
}
