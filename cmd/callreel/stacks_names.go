package main

import (
	"context"

	"github.com/callreel/callreel/sampler"
	"github.com/callreel/callreel/symbols"
)

// newStackNames names code by the maps of the user's store, and by what debug information
// is on this machine: nobody who asks where a process is wants to wait for the network.
func newStackNames(ctx context.Context, memory memoryLimit) *sampler.MapNames {
	return sampler.NewMapNames(ctx, &symbols.Finder{Store: openDefaultStore(), Memory: memory.limit()})
}
