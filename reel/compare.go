package reel

import (
	"cmp"
	"math"
	"slices"
)

// FunctionChange compares a function of one recording with the same in another.
type FunctionChange struct {
	Name   string
	Module string
	// A and B are what the recordings say of it; nil in one where it was not called.
	A, B *FunctionSummary
	// Slower is what its own code took longer in B than as many calls of it took in A, in nanoseconds: neither the recordings'
	// lengths nor how often it was called count in it. Of a function that A doesn't have it is all its own time, of one that B
	// doesn't have 0. Here and below only calls count that ended: how long others were seen goes by the recording's length.
	Slower int64
	// OffA and OffB say that its calls were not recorded for some time, or ever, in A or B: see TellOffs.
	OffA, OffB bool
}

// DeltaTotal is how much more time B has in the function than A, in nanoseconds.
func (c *FunctionChange) DeltaTotal() int64 {
	return c.delta((*FunctionSummary).EndedTotal)
}

// DeltaSelf is how much more time of its own it has in B than in A, in nanoseconds.
func (c *FunctionChange) DeltaSelf() int64 {
	return c.delta((*FunctionSummary).EndedSelf)
}

// ChangeParts splits how much more time of its own B has in a function than A, in nanoseconds. They add up to DeltaSelf; each may be below 0.
type ChangeParts struct {
	// MoreCalls is what the calls that B has beyond A's would have taken in A, Slower what as many calls take longer.
	MoreCalls, Slower int64
	// New is of a function that A doesn't have, Gone of one that B doesn't have.
	New, Gone int64
	// Off is of a function that was off in one of them for some time: it isn't known whether that had more calls, or any.
	Off int64
}

// Parts splits DeltaSelf.
func (c *FunctionChange) Parts() ChangeParts {
	delta := c.DeltaSelf()
	switch {
	case (c.OffA || c.OffB) && (c.A == nil || c.A.Ended() == 0 || c.B == nil || c.B.Ended() == 0):
		return ChangeParts{Off: delta}
	case c.OffA || c.OffB:
		return ChangeParts{Slower: c.Slower, Off: delta - c.Slower}
	case c.A == nil || c.A.Ended() == 0:
		return ChangeParts{New: delta}
	case c.B == nil || c.B.Ended() == 0:
		return ChangeParts{Gone: delta}
	}
	return ChangeParts{MoreCalls: delta - c.Slower, Slower: c.Slower}
}

// DeltaStates splits DeltaSelf by what threads did, in nanoseconds; what is missing to the whole isn't known.
func (c *FunctionChange) DeltaStates() (cpu, ready, blocked int64) {
	var a, b StateTimes
	if c.A != nil {
		a = c.A.EndedSelfStates()
	}
	if c.B != nil {
		b = c.B.EndedSelfStates()
	}
	return clampNS(b.Running) - clampNS(a.Running), clampNS(b.Ready) - clampNS(a.Ready), clampNS(b.Blocked) - clampNS(a.Blocked)
}

// Slowdown is how much slower B is than A, as a share: by how much longer the calls that B made of functions that both have took in their own
// code than as many did in A, against what those took in A. onCPU compares time on processors only, which waiting isn't in; it is for
// reels that both have states. Functions with fewer than 20 calls in either don't count.
func Slowdown(changes []FunctionChange, onCPU bool) (share float64, functions int) {
	const least = 20
	var before, after float64
	for i := range changes {
		c := &changes[i]
		if c.A == nil || c.B == nil || c.A.Ended() < least || c.B.Ended() < least {
			continue
		}
		a, b := float64(c.A.EndedSelf()), float64(c.B.EndedSelf())
		if onCPU {
			a, b = float64(c.A.EndedSelfStates().Running), float64(c.B.EndedSelfStates().Running)
		}
		functions++
		before += a / float64(c.A.Ended()) * float64(c.B.Ended())
		after += b
	}
	if before == 0 {
		return 0, functions
	}
	return after/before - 1, functions
}

func (c *FunctionChange) delta(of func(*FunctionSummary) uint64) int64 {
	var a, b uint64
	if c.A != nil {
		a = of(c.A)
	}
	if c.B != nil {
		b = of(c.B)
	}
	return clampNS(b) - clampNS(a)
}

// functionName is what functions of two recordings are matched by: addresses and IDs are each recording's own. Functions of one
// name in one module (static ones of several files) are taken in the order of their IDs, which is that of their addresses.
type functionName struct {
	name, module string
	nth          int
}

// Compare matches the functions of two recordings by their names and modules, what became slowest first.
func Compare(a, b []FunctionSummary) []FunctionChange {
	changes := make([]FunctionChange, 0, max(len(a), len(b)))
	index := make(map[functionName]int, len(a))
	eachNamed(a, func(name functionName, f *FunctionSummary) {
		index[name] = len(changes)
		changes = append(changes, FunctionChange{Name: f.Name, Module: f.Module, A: f})
	})
	eachNamed(b, func(name functionName, f *FunctionSummary) {
		i, known := index[name]
		if !known {
			i = len(changes)
			changes = append(changes, FunctionChange{Name: f.Name, Module: f.Module})
		}
		changes[i].B = f
	})
	for i := range changes {
		changes[i].Slower = slower(changes[i].A, changes[i].B)
	}
	sortChanges(changes)
	return changes
}

func eachNamed(list []FunctionSummary, yield func(functionName, *FunctionSummary)) {
	order := make([]*FunctionSummary, len(list))
	for i := range list {
		order[i] = &list[i]
	}
	slices.SortFunc(order, func(a, b *FunctionSummary) int { return cmp.Compare(a.ID, b.ID) })
	seen := make(map[functionName]int, len(list))
	for _, f := range order {
		name := functionName{name: f.Name, module: f.Module}
		nth := seen[name]
		seen[name]++
		name.nth = nth
		yield(name, f)
	}
}

func slower(a, b *FunctionSummary) int64 {
	switch {
	case b == nil || b.Ended() == 0:
		return 0
	case a == nil || a.Ended() == 0:
		return clampNS(b.EndedSelf())
	}
	before := float64(a.EndedSelf()) / float64(a.Ended()) * float64(b.Ended())
	return int64(min(max(math.Round(float64(b.EndedSelf())-before), -1<<62), 1<<62))
}
