package stub

import "github.com/callreel/callreel/recorder/internal/plan"

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
}

// Patched are the sites that are written for it.
func (fn *Probe) Patched() []plan.Site {
	if fn.ID == 0 {
		return fn.HookSites()
	}
	return fn.Sites
}
