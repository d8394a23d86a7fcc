package probes

import (
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/recorder/internal/target"
)

// Unswitched is what Switches is to a budget, for a program whose probes can't be switched: sites are taken out of the text at
// once. Of calls that are open then, one or two of each thread, the end isn't seen; they end with their callers. It is used by one goroutine.
type Unswitched struct {
	t     *target.Target
	keeps func(fn *stub.Probe) bool
	known map[uint32]bool // what Kept has found
	fns   map[uint32]*stub.Probe
}

// NewUnswitched is for a target that is recorded. keeps says which functions are never to be rejected; nil for none.
func NewUnswitched(t *target.Target, keeps func(fn *stub.Probe) bool) *Unswitched {
	return &Unswitched{t: t, keeps: keeps, known: map[uint32]bool{}}
}

// Reject does nothing: that their sites are taken out is all that can be done.
func (e *Unswitched) Reject(off, _ []uint32) ([]uint32, error) { return off, nil }

// Closed are all of them.
func (e *Unswitched) Closed(ids []uint32) []uint32 { return ids }

// Kept says whether a function is never to be rejected.
func (e *Unswitched) Kept(id uint32) bool {
	keep, known := e.known[id]
	if !known {
		if e.fns[id] == nil {
			e.fns = map[uint32]*stub.Probe{}
			e.t.Mu.Lock()
			for _, a := range e.t.Arenas {
				for i := range a.Fns {
					e.fns[a.Fns[i].ID] = &a.Fns[i]
				}
			}
			e.t.Mu.Unlock()
		}
		keep = neverRejected(e.fns[id], e.keeps) || !target.CanTakeOut(e.fns[id])
		e.known[id] = keep
	}
	return keep
}
