package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/cmd/callreel/internal/imagetree"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/symbols"
)

// folder compiles the map of every image below a folder.
func (f *buildFlags) folder(ctx context.Context, c *cobra.Command, dir string) error {
	if f.arch != "" {
		return usageError("callreel symbols build: --arch chooses a part of one file; %s is a folder, of whose files all parts are taken", dir)
	}
	out := f.output
	if out == "" {
		var err error
		if out, err = defaultStore(); err != nil {
			return err
		}
	}
	if out == "-" {
		return usageError("callreel symbols build: %s is a folder; give -o a folder, not stdout", dir)
	}
	store, err := symbols.OpenStore(out)
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
		store: store, force: f.force, status: status, bar: newProgress(status), total: len(tree.Groups),
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

// folderBuild compiles maps into a store.
type folderBuild struct {
	store     *symbols.Store
	force     bool
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
	im, err := g.Image.Open()
	if err != nil {
		return err
	}
	defer im.Close()
	var debug *object.Image
	if g.Debug != nil {
		if debug, err = g.Debug.Open(); err != nil {
			return err
		}
		defer debug.Close()
	}
	return b.store.Put(g.ID, func(w io.Writer) error {
		_, err := buildMap(ctx, im, debug, w, b.debugDirs,
			func(int64, int64) { b.bar.items(base(g.Image.Path), int64(k), int64(b.total)) },
			func(err error) { b.bar.clear(); b.status.notice("%s: %v", g.Image.Path, err) })
		return err
	})
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
