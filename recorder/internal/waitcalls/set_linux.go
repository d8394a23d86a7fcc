package waitcalls

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// A call that lets another thread go on makes a system call, which takes longer than leastEnding; one that finds nobody waiting doesn't. Who
// waited for leastWait was in its call for longer than leastWaiting.
const (
	leastEnding  = 400 * time.Nanosecond
	leastWaiting = 50 * time.Microsecond
)

// Set is of which functions arguments are kept. Of may be called by any goroutine, the other methods by one at a time.
type Set struct {
	ticksPerSecond uint64
	table          map[uint32]stub.Keep
	next           uint8

	mu    sync.Mutex // guards calls, which grow as libraries are loaded
	calls map[uint32]Call
}

// New returns an empty one. A Set that is nil stays so.
func New(ticksPerSecond uint64) *Set {
	return &Set{ticksPerSecond: ticksPerSecond, table: map[uint32]stub.Keep{}, calls: map[uint32]Call{}}
}

// Table is what stubs are asked for, by the target's function IDs. It doesn't change any more: Plan makes another one.
func (s *Set) Table() map[uint32]stub.Keep {
	if s == nil {
		return nil
	}
	return s.table
}

// Of is what a function does, by the target's ID.
func (s *Set) Of(id uint32) (Call, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.calls[id]
	return c, ok
}

// Plan takes those functions of an image that are recorded, if it is a C library, or a program that has one in it. It must be done before
// they are taken over by an arena. but are functions whose stubs do other things with arguments.
func (s *Set) Plan(im *mapped.Image, but map[uint32]*stub.Captures) {
	if s == nil || len(im.Traced) == 0 || im.Probe.Go != nil || !hasLibrary(im) {
		return
	}
	s.table = maps.Clone(s.table)
	behind := goneOn(im)
	first, second := argumentsOf(im)
	for i := range im.Traced {
		fn := &im.Traced[i]
		call, ok := Of(fn.Names())
		if !ok {
			call, ok = behind[fn.Addr]
		}
		if !ok || but[fn.ID] != nil || slices.ContainsFunc(fn.Sites, func(site plan.Site) bool { return site.Role == plan.RoleEntry && site.Before > 0 }) {
			continue
		}
		changed, _ := im.Probe.ChangedBefore(fn.Function)
		switch {
		case changed>>first&1 != 0:
			continue
		case changed>>second&1 != 0:
			call.Second = false
		}
		s.add(fn.ID, call)
	}
}

// argumentsOf are the registers of the first two arguments.
func argumentsOf(im *mapped.Image) (first, second uint8) {
	if im.Object.Arch == object.ARM64 {
		return 0, 1
	}
	return uint8(amd64.RDI), uint8(amd64.RSI)
}

func (s *Set) add(id uint32, call Call) {
	least := leastWaiting
	if call.Ends {
		least = leastEnding
	}
	s.table[id] = stub.Keep{Second: call.Second, Slot: s.slot(call), Least: uint32(min(ring.TicksOf(least, s.ticksPerSecond), 1<<31))}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[id] = call
}

// slot is where a function's arguments are kept. One that waits for a condition unlocks and locks a mutex, and others call their like.
func (s *Set) slot(call Call) uint8 {
	const share = (ring.KeptSlots - 1) / 3
	s.next++
	switch {
	case call.Second:
		return 0
	case call.Descriptor:
		return 1 + s.next%share
	case call.Ends:
		return 1 + share + s.next%share
	}
	return 1 + 2*share + s.next%share
}

// hasLibrary says whether an image has functions of a C library that deal with threads.
func hasLibrary(im *mapped.Image) bool {
	for i := range im.Plan {
		if isLibrary(im.Plan[i].Names()) {
			return true
		}
	}
	return false
}
