package sampler

import (
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/callreel/callreel/process"
)

// How a place becomes a thread's usual wait.
const (
	// What may be a worker's wait for work is taken for it when the detector begins; later
	// it has to be returned to.
	learnTime = 3 * time.Second
	// After this long without the usual wait another one may have taken its place, as
	// when a program has loaded its data and begins to serve.
	habitTime = 10 * time.Second
	// Places that are remembered to see whether they are returned to.
	maxPlaces = 16
)

// place is where a thread waits in the kernel: the call, and by whom.
type place struct {
	number, sp, pc uint64 // of the system call
	back           uint64 // return address behind which the C library called on the thread's behalf; 0 if not known
	slot           uint64 // where on the stack that address is
	rest           rest
	inside         bool // what waits was called by the function that waits at the usual place
	visits         int
	blocked        uint64 // Activity.Blocked of the last visit
}

// restartSyscall is how the kernel resumes some calls that were interrupted, sleeping
// and polling among them, where they were.
const restartSyscall = "restart_syscall"

// holds says whether a thread waits there now.
func (p *place) holds(a *process.Activity, f files) bool {
	at := a.Waiting
	if a.State == 'T' || a.State == 't' {
		return false // it cannot leave, whatever comes
	}
	if at == nil || !at.InSyscall || at.SP != p.sp || at.PC != p.pc || at.Number != p.number && at.Syscall() != restartSyscall {
		return false
	}
	if p.slot == 0 {
		return true
	}
	var word [8]byte
	return f.ReadUpTo(word[:], p.slot) == len(word) && binary.LittleEndian.Uint64(word[:]) == p.back
}

// same says whether two are one place.
func (p *place) same(o *place) bool {
	return p.number == o.number && p.sp == o.sp && p.pc == o.pc && p.back == o.back
}

// sameCall says whether both wait by the same call in the code, however deep.
func (p *place) sameCall(o *place) bool {
	return p.back != 0 && p.back == o.back && p.number == o.number && p.pc == o.pc
}

// shallower says that fewer calls are under way there than at another place.
func (p *place) shallower(o *place) bool { return p.slot > o.slot }

// habits is what is known of where a thread waits.
type habits struct {
	usual  *place // where the thread comes to rest; nil until known
	places []place
	begun  time.Time
	last   time.Time // when the thread was last known to be at, or come by, its usual wait
}

// meet counts a visit to a place, and says whether it is, from now on, the usual wait.
func (h *habits) meet(p place, blocked uint64, now time.Time) bool {
	k := slices.IndexFunc(h.places, func(o place) bool { return o.same(&p) })
	if k < 0 {
		if len(h.places) == maxPlaces {
			k = h.leastVisited()
			h.places = slices.Delete(h.places, k, k+1)
		}
		k = len(h.places)
		h.places = append(h.places, p)
	}
	known := &h.places[k]
	known.inside = p.inside
	if known.visits == 0 || known.blocked != blocked {
		known.visits++
		known.blocked = blocked
	}
	if !h.becomesUsual(known, now) {
		return false
	}
	usual := *known
	h.usual, h.places, h.last = &usual, h.places[:0], now
	return true
}

// move tells that the usual wait is now reached by fewer calls: interpreters leave out
// some of their own as they learn.
func (h *habits) move(p place, now time.Time) {
	h.usual, h.places, h.last = &p, h.places[:0], now
}

func (h *habits) leastVisited() int {
	least := 0
	for k := range h.places {
		if h.places[k].visits < h.places[least].visits {
			least = k
		}
	}
	return least
}

// becomesUsual decides. What is made for event loops goes before what may be a wait for
// an answer, and of equals the one that fewer calls lead to: a handler that waits is
// called by the loop.
func (h *habits) becomesUsual(p *place, now time.Time) bool {
	switch {
	case p.rest == neverRest || p.inside && p.sameCall(h.usual): // a turn of the loop in a handler
		return false
	case h.usual == nil:
		return p.rest == eventRest || p.visits >= 2 || now.Sub(h.begun) < learnTime
	case p.rest > h.usual.rest:
		return p.shallower(h.usual) || p.visits >= 3 && !p.inside
	case p.rest == h.usual.rest && p.shallower(h.usual):
		return p.visits >= 2
	}
	return p.visits >= 5 && now.Sub(h.last) > habitTime
}

// callerOf finds the return address that leads out of the C library, and of what else
// many waits have in common, in a stack that was just walked: its PC and its place. Both
// are 0 where it was not walked so far.
func (s *stallStacks) callerOf(complete bool) (back, slot uint64) {
	const near = 8
	if len(s.frames) < 2 {
		return 0, 0
	}
	own := s.space.image(s.frames[0].CodeAddr())
	for k := 1; k < len(s.frames) && k < near; k++ {
		if s.space.image(s.frames[k].CodeAddr()) != own {
			return s.frames[k].PC, s.frames[k].SP - 8
		}
	}
	if !complete && len(s.frames) < near {
		return 0, 0
	}
	// All in one file: a static program, or one that makes its system calls itself.
	for k := 1; k < len(s.frames) && k < near; k++ {
		if !strings.Contains(strings.ToLower(s.name(s.frames[k].CodeAddr())), "syscall") {
			return s.frames[k].PC, s.frames[k].SP - 8
		}
	}
	return s.frames[1].PC, s.frames[1].SP - 8
}

// underWay says whether the function that calls for a wait is at work, in a call other than
// that: its frame has a return address where that of the wait would be.
func (s *stallStacks) underWay(p *place) bool {
	const near = 16 << 10 // where functions have no names
	var word [8]byte
	if s.p.ReadUpTo(word[:], p.slot) != len(word) {
		return false
	}
	to := binary.LittleEndian.Uint64(word[:])
	im := s.space.image(to)
	if im == nil || im != s.space.image(p.back) {
		return false
	}
	if name := s.name(p.back - 1); name != "" {
		return strings.TrimSuffix(name, ".cold") == strings.TrimSuffix(s.name(to-1), ".cold")
	}
	return max(to, p.back)-min(to, p.back) < near
}

// name is that of the function at an address by the symbol tables.
func (s *stallStacks) name(addr uint64) string {
	im := s.space.image(addr)
	if im == nil {
		return ""
	}
	if calls := new(TableNames).Calls(im, addr-im.Slide()); len(calls) > 0 {
		return calls[0].Linkage
	}
	return ""
}
