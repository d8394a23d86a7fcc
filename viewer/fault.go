package viewer

import "github.com/callreel/callreel/reel"

// catchFaults calls do so that a reel that is cut short while it is read is an error: see [reel.CatchFaults].
func catchFaults(do func() error) error { return reel.CatchFaults(do) }
