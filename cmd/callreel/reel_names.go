package main

import (
	"context"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/symbols"
	"github.com/callreel/callreel/symbols/reelnames"
)

// reelNaming is what --help says of it.
const reelNaming = `Functions that had no symbol where they were recorded get names from the symbols of their images, by ID: from the store,
the image's file and its debug files, --debug-dir, and DEBUGINFOD_URLS if that is set.`

// newReelNames names the functions of reels: by the maps of the user's store, what is on this machine, and the servers of
// DEBUGINFOD_URLS.
func newReelNames(ctx context.Context, c *cobra.Command, status *status, debugDirs []string) (*reelnames.Names, error) {
	finder := &symbols.Finder{Store: openDefaultStore(), DebugDirs: debugDirs}
	bar := newProgress(status)
	client, err := newDebuginfod(c.CommandPath())
	if err != nil {
		return nil, err
	}
	if client != nil {
		client.Progress = func(url string, done, total int64) { bar.bytes("fetching from "+url, done, total) }
		finder.Fetcher = client
	}
	finder.Progress = func(done, total int64) { bar.bytes("reading debug information", done, total) }
	names := reelnames.New(ctx, finder)
	names.Looked = func(*reel.Image) { bar.clear() }
	return names, nil
}

// tellNotFound says of which images there are no symbols though functions of theirs have no names, and why.
func tellNotFound(status *status, names *reelnames.Names) {
	const most = 3
	errs, all := names.NotFound(most)
	for _, err := range errs {
		status.notice("%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if all > most {
		status.notice("nor for %s", things(uint64(all-most), "other image"))
	}
}

// toldWhereToLook says whether the user has said where symbols are: then it is told if they aren't there.
func toldWhereToLook(debugDirs []string) bool {
	return len(debugDirs) > 0 || os.Getenv("DEBUGINFOD_URLS") != ""
}
