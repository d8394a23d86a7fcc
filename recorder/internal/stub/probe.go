package stub

import (
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// Probe is a planned function that is to be probed, with its ID in the reel. ID 0 is for a function that only
// has a hook, see plan.Hook: it writes no events.
type Probe struct {
	*plan.Function
	Image *plan.Image
	ID    uint32
	Slide uint64 // load address minus link address
	// Inside is for functions whose calls, and what is called from them, are recorded with Config.Inside.
	Inside     bool
	Predicates Predicates
	// Import is set if it is recorded by a slot of its callers' image, and not by sites of its own.
	Import *Import
	// Marks are markers whose instructions its sites move: their events are written there.
	Marks []Joined
}

// Joined is a marker whose event a function's stub writes.
type Joined struct {
	Addr uint64 // link address of the instruction before which it does
	ID   uint32 // the marker's, see ring.MarkID
}

// IsMark says whether it is a marker, which has one event and no calls.
func (fn *Probe) IsMark() bool { return ring.IsMarkID(fn.ID) }

// Patched are the sites that are written for it.
func (fn *Probe) Patched() []plan.Site {
	if fn.ID == 0 {
		return fn.HookSites()
	}
	return fn.Sites
}
