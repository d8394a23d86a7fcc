package stub

import "github.com/callreel/callreel/recorder/internal/plan"

// Import is a function of another image that is recorded by a slot of its caller's: an entry of the global offset table. A stub's address is
// put there; the stub writes the entry's event and goes on to where the slot led. The sites of its plan.Function are where calls return to.
type Import struct {
	Slot uint64 // address in the target
	// Was is what is in the slot, Target where the stub goes on: the same, but for a slot that isn't bound yet.
	Was, Target uint64
	// Entry is a link address in the slot's image that threads could be at with their stack as at a function's beginning, for unwinders.
	Entry uint64
}

// Rebinding is a slot that is written, and what is put there.
type Rebinding struct {
	Import
	Stub  uint64 // address of the stub
	ID    uint32 // the function's
	Index uint32 // of the probe, among those that the code was made of
}

// ImportFunction makes what is told of a function that is recorded by a slot, which is at a link address. sites are where calls return to.
func ImportFunction(name string, slot uint64, sites []plan.Site) *plan.Function {
	return &plan.Function{Name: name, Addr: slot, Size: 8, Sites: sites, Tier: plan.TierExitSite}
}
