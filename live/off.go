package live

import (
	"cmp"
	"slices"
	"time"

	"github.com/callreel/callreel/recorder"
	"github.com/callreel/callreel/reel"
)

var _ recorder.BudgetTaker = (*Meter)(nil)

// OffFunction is a function whose calls are not recorded now, for what that costs.
type OffFunction struct {
	ID                  uint32
	Name, Module, Short string // as Function has them
	// PerSecond is how many calls it had in a second when it was last on.
	PerSecond float64
	// For is how long it has been off.
	For time.Duration
}

// FunctionsOff implements recorder.BudgetTaker.
func (m *Meter) FunctionsOff(list []recorder.FunctionOff) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, o := range list {
		if o.To == 0 {
			m.off[o.Function] = o
		} else {
			delete(m.off, o.Function)
		}
	}
	return nil
}

// Budget implements recorder.BudgetTaker.
func (m *Meter) Budget(b reel.Budget) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.budget = &b
	return nil
}

// isOff is called with the meter locked.
func (m *Meter) isOff(id uint32) bool {
	_, off := m.off[id]
	return off
}

// offs adds to a snapshot, which ends at a tick, what is off and how the budget is kept, with the meter locked.
func (w *Recent) offs(snap *Snapshot, end uint64, ns func(ticks uint64) uint64) {
	if w.meter.budget != nil {
		b := *w.meter.budget
		snap.Budget = &b
	}
	for id, o := range w.meter.off {
		n := w.naming(id)
		snap.Off = append(snap.Off, OffFunction{id, n.name, n.module, n.short, o.PerSecond, time.Duration(ns(end - min(o.From, end)))})
	}
	slices.SortFunc(snap.Off, func(a, b OffFunction) int {
		return cmp.Or(cmp.Compare(b.PerSecond, a.PerSecond), cmp.Compare(a.ID, b.ID))
	})
}
