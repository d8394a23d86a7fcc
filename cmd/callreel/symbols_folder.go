package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/cmd/callreel/internal/imagetree"
	"github.com/callreel/callreel/internal/ownfolder"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/symbols"
)

// folder compiles the map of every image below a folder.
func (f *buildFlags) folder(ctx context.Context, c *cobra.Command, dir string) error {
	if f.arch != "" {
		return usageError("callreel symbols build: --arch chooses a part of one file; %s is a folder, of whose files all parts are taken", dir)
	}
	if f.output == "-" {
		return usageError("callreel symbols build: %s is a folder; give -o a folder, not stdout", dir)
	}
	store, err := f.openStore()
	if err != nil {
		return err
	}
	status := newStatus(c.ErrOrStderr())
	newProgress(status).show("looking for images in "+dir, 0, 0, nil)
	tree, err := imagetree.Read(ctx, dir)
	if err != nil {
		return err
	}
	b := &folderBuild{
		store: store, own: f.output == "", force: f.force, memory: f.memory, status: status, bar: newProgress(status), total: len(tree.Groups),
		debugDirs: append(slices.Clone(f.debugDirs), dir),
	}
	for _, fail := range tree.Failures {
		b.failed(fail.Path, fail.Err)
	}
	for k := range tree.Groups {
		b.one(ctx, k, &tree.Groups[k])
		if ctx.Err() != nil {
			b.bar.clear()
			return context.Cause(ctx)
		}
	}
	b.bar.clear()
	if n := len(tree.WithoutID); n > 0 {
		status.notice("%s without an ID left out, such as %s; a map of one is made by its name", things(uint64(n), "image"), tree.WithoutID[0])
	}
	if err := b.report(c.OutOrStdout(), f.json); err != nil {
		return err
	}
	if b.failures > 0 {
		return &exitError{code: exitFailed}
	}
	return nil
}

// openStore opens the store that was named, or the user's own.
func (f *buildFlags) openStore() (*symbols.Store, error) {
	if f.output != "" {
		return symbols.OpenStoreMode(f.output, fs.FileMode(f.mode))
	}
	dir, err := defaultStore()
	if err != nil {
		return nil, err
	}
	return symbols.OpenOwnStoreMode(dir, fs.FileMode(f.mode))
}

// folderBuild compiles maps into a store.
type folderBuild struct {
	store     *symbols.Store
	own       bool // the store is the user's own, not one that was named
	force     bool
	memory    memoryLimit
	debugDirs []string
	status    *status
	bar       *progress
	total     int

	made, there, failures int
}

// one compiles the map of one image.
func (b *folderBuild) one(ctx context.Context, k int, g *imagetree.Group) {
	b.bar.items(base(g.Image.Path), int64(k), int64(b.total))
	if !b.force && b.store.Has(g.ID) {
		b.there++
		return
	}
	if err := b.build(ctx, k, g); err != nil {
		if ctx.Err() == nil {
			b.failed(g.Image.Path, err)
		}
		return
	}
	b.made++
}

func (b *folderBuild) build(ctx context.Context, k int, g *imagetree.Group) error {
	together := b.memory.opener()
	im, err := g.Image.Open(together)
	if err != nil {
		return err
	}
	defer im.Close()
	var debug *object.Image
	if g.Debug != nil {
		if debug, err = g.Debug.Open(together); err != nil {
			return err
		}
		defer debug.Close()
	}
	return b.store.Put(g.ID, func(w io.Writer) error {
		stats, err := symbols.Build(ctx, im, w, buildOptions(debug, b.debugDirs,
			func(int64, int64) { b.bar.items(base(g.Image.Path), int64(k), int64(b.total)) }))
		if err == nil {
			for _, lack := range stats.Missing {
				b.bar.clear()
				b.status.notice("%s: %v", g.Image.Path, lack)
			}
		}
		if err == nil && b.own {
			err = checkSources(stats)
		}
		return err
	})
}

// checkSources refuses what other users may have written: in the user's own store a map
// serves every image that has the ID, libc's too.
func checkSources(stats *symbols.BuildStats) error {
	for _, info := range stats.Sources {
		if !ownfolder.Trusted(info) {
			return fmt.Errorf("left out: %s can be written by another user, and its map would serve all images that have its ID; name a store with -o", info.Name())
		}
	}
	return nil
}

// report says what was done.
func (b *folderBuild) report(w io.Writer, asJSON bool) error {
	if asJSON {
		return writeJSON(w, builtStore{b.store.Dir(), b.made, b.there, b.failures})
	}
	_, err := fmt.Fprintf(w, "%s: %s made, %d there already, %d failed\n", printable(b.store.Dir()), things(uint64(b.made), "map"), b.there, b.failures)
	return err
}

// builtStore is what symbols build --json says of a folder; the keys are promised.
type builtStore struct {
	Store  string `json:"store"`
	Made   int    `json:"made"`
	There  int    `json:"there"`
	Failed int    `json:"failed"`
}

// failed reports a file by its name.
func (b *folderBuild) failed(path string, err error) {
	b.failures++
	b.bar.clear()
	if strings.Contains(err.Error(), path) {
		b.status.notice("%v", err)
		return
	}
	b.status.notice("%s: %v", path, err)
}
