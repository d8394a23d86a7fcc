package main

import (
	"context"

	"github.com/callreel/callreel/symbols"
	"github.com/callreel/callreel/symbols/debuginfod"
	"github.com/callreel/callreel/symbols/symbolize"
)

// shownSource shows on a terminal how far the search for an image's symbols is.
type shownSource struct {
	*symbolize.Files
	status *status
	bar    *progress // of the image that is looked for
	name   string
}

// Module implements symbolize.Source.
func (s *shownSource) Module(ctx context.Context, im *symbolize.Image) (*symbolize.Module, error) {
	s.bar, s.name = newProgress(s.status), im.Name()
	defer s.bar.clear()
	return s.Files.Module(ctx, im)
}

// source finds maps: in the store, beside the files, and on the servers of DEBUGINFOD_URLS.
func (f *symbolizeFlags) source(status *status) (*shownSource, error) {
	finder := &symbols.Finder{DebugDirs: f.debugDirs}
	s := &shownSource{Files: &symbolize.Files{Finder: finder, Given: map[string]string{}}, status: status}
	var err error
	if finder.Store, err = f.openStore(); err != nil {
		return nil, err
	}
	client, err := debuginfod.FromEnvironment()
	if err != nil {
		return nil, usageError("callreel symbolize: %w", err)
	}
	if client != nil {
		client.Progress = func(url string, done, total int64) { s.bar.bytes("fetching "+s.name+" from "+url, done, total) }
		finder.Fetcher = client
	}
	finder.Progress = func(done, total int64) { s.bar.bytes("reading "+s.name, done, total) }
	for _, text := range f.images {
		path, _ := splitImage(text)
		s.Given[base(path)] = path
	}
	return s, nil
}

// openStore opens the store that was asked for, or the user's where there can be one.
func (f *symbolizeFlags) openStore() (*symbols.Store, error) {
	if f.store != "" {
		return symbols.OpenStore(f.store)
	}
	dir, err := defaultStore()
	if err != nil {
		return nil, nil // no home: maps are made in memory
	}
	store, err := symbols.OpenStore(dir)
	if err != nil {
		return nil, nil // a home that can't be written to
	}
	return store, nil
}
