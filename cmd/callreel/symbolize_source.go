package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/callreel/callreel/internal/ownfolder"
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

// source finds maps for a verb: in the store, beside the files, and on the servers of DEBUGINFOD_URLS.
func (f *symbolizeFlags) source(verb string, status *status) (*shownSource, error) {
	finder := &symbols.Finder{DebugDirs: f.debugDirs, Memory: f.memory.limit()}
	s := &shownSource{Files: &symbolize.Files{Finder: finder, Given: map[string]string{}}, status: status}
	var err error
	if finder.Store, err = f.openStore(); err != nil {
		return nil, err
	}
	client, err := newDebuginfod(verb)
	if err != nil {
		return nil, err
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
	return openDefaultStore(), nil
}

// newDebuginfod makes a client of the servers in DEBUGINFOD_URLS for a verb, nil if there are none.
func newDebuginfod(verb string) (*debuginfod.Client, error) {
	cache, cacheErr := ownfolder.Cache()
	client, err := debuginfod.FromEnvironment(filepath.Join(cache, "debuginfod"))
	if err != nil {
		return nil, usageError("%s: %w", verb, err)
	}
	if client != nil && cacheErr != nil {
		return nil, fmt.Errorf("%s: there is no place for what debuginfod servers send; set XDG_CACHE_HOME: %w", verb, cacheErr)
	}
	return client, nil
}
