package main

import (
	"context"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/sampler"
	"github.com/callreel/callreel/symbols"
	"github.com/callreel/callreel/symbols/debugfiles"
)

// liveNaming is what --help says of the names of a process's functions.
const liveNaming = `Programs and libraries that were stripped get their functions' names from what has their build ID: a debug file, also in
--debug-dir, a map in the store, and what the servers of DEBUGINFOD_URLS have, if that is set. It is fetched before the
process is touched.`

// searched are the folders of debug files for a process: those that were given, and where it sees other files than we do its own.
func searched(pid int, dirs []string) []string {
	if pid == 0 {
		return dirs
	}
	root, ok := process.OtherRoot(pid)
	if !ok {
		return dirs
	}
	return append(slices.Clip(dirs), filepath.Join(root, object.SystemDebugDir), root)
}

// newDebugFiles finds the debug files of what a process has mapped: on this machine, and on the servers of DEBUGINFOD_URLS.
func newDebugFiles(verb string, status *status, dirs []string) (*debugfiles.Files, error) {
	files := &debugfiles.Files{Dirs: dirs, Store: openDefaultStore()}
	client, err := newDebuginfod(verb)
	if err != nil || client == nil {
		return files, err
	}
	var bar atomic.Pointer[progress] // a library that is loaded while recording may be fetched for in the background
	bar.Store(newProgress(status))
	files.Fetching = func(*object.Image) { bar.Store(newProgress(status)) }
	files.Failed = func(err error) { status.notice("names and types may be missing: %v", err) }
	client.Progress = func(url string, done, total int64) {
		bar.Load().bytes("fetching debug information from "+url, done, total)
	}
	files.Fetcher = client
	return files, nil
}

// newStackNames names code by the maps of the user's store, by debug information on this machine, and by what the servers of
// DEBUGINFOD_URLS have of it: that is fetched when sampler says that it is time.
func newStackNames(ctx context.Context, verb string, status *status, memory memoryLimit, dirs []string) (*sampler.MapNames, error) {
	finder := &symbols.Finder{Store: openDefaultStore(), Memory: memory.limit(), DebugDirs: dirs}
	client, err := newDebuginfod(verb)
	if err != nil {
		return nil, err
	}
	if client != nil {
		bar := newProgress(status)
		client.Progress = func(url string, done, total int64) { bar.bytes("fetching debug information from "+url, done, total) }
		finder.Fetcher = client
	}
	names := sampler.NewMapNames(ctx, finder)
	names.FetchFailed = func(err error) { status.notice("names may be missing: %v", err) }
	return names, nil
}
