package probe

// Selected is a planned function that is to be probed, with its ID in the reel. ID 0 is for a function that is only
// guarded, see Guard: it writes no events.
type Selected struct {
	*Function
	Image *Image
	ID    uint32
	Slide uint64 // load address minus link address
	// Inside is for functions whose calls, and what is called from them, are recorded with Config.Inside.
	Inside bool
	Watch  Watched
}

// Patched are the sites that are written for it.
func (fn *Selected) Patched() []Site {
	if fn.ID == 0 {
		return fn.GuardSites()
	}
	return fn.Sites
}
