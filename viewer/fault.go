package viewer

import "github.com/callreel/callreel/reel"

// guarded calls do so that a reel that is cut short while it is read is an error: see [reel.GuardFaults].
func guarded(do func() error) error { return reel.GuardFaults(do) }
