//go:build !unix

package viewer

import "time"

// cpuTime is not known here: looks are taken to use all processors.
func cpuTime() time.Duration { return 0 }
