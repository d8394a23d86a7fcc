package main

import (
	"context"

	"github.com/callreel/callreel/sampler"
	"github.com/callreel/callreel/symbols"
)

// newStackNames names code by the maps of the user's store, and by what debug information
// is on this machine: nobody who asks where a process is wants to wait for the network.
func newStackNames(ctx context.Context) *sampler.MapNames {
	finder := &symbols.Finder{}
	if dir, err := defaultStore(); err == nil {
		// Without a store maps are made in memory.
		finder.Store, _ = symbols.OpenStore(dir)
	}
	return sampler.NewMapNames(ctx, finder)
}
