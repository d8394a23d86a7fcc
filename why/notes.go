package why

import (
	"fmt"
	"slices"

	"github.com/callreel/callreel/reel"
)

// notes say what holds for all answers.
func (x *explainer) notes() []string {
	var list []string
	s, told := x.f.Scheduling()
	switch {
	case !x.hasStates && told && s.Reason != "":
		list = append(list, "The reel doesn't say when threads ran, so all times are wall time, waiting among it: "+s.Reason)
	case !x.hasStates:
		list = append(list, "The reel doesn't say when threads ran, so all times are wall time, waiting among it.")
	case !s.WakeUps:
		who := "who woke a thread isn't known"
		if x.endersKnown() {
			who = "who woke a thread is known where the C library's calls tell it"
		}
		list = append(list, "Wake-ups weren't recorded: what is blocked may in part have been ready, and "+who+".")
	}
	if b, ok := x.f.Budget(); ok && b.Sampled() {
		list = append(list, fmt.Sprintf("By the last sample %s of calls and %s of the time of functions were recorded: the time of the others counts as that of their callers.", percent(b.CallsShare), percent(b.TimeShare)))
	}
	if d := x.f.Damage(); len(d) > 0 {
		list = append(list, fmt.Sprintf("The reel is damaged: %v", d[0]))
	}
	return list
}

// doubts say what can't be known of a call.
func (x *explainer) doubts(a *aligned, peers *peerSet) []string {
	var list []string
	r := &a.slow
	if r.flags&reel.Unfinished != 0 {
		list = append(list, "The call hadn't returned when the recording ended: it may have gone on.")
	}
	if r.flags&reel.AcrossLoss != 0 {
		list = append(list, "Events were lost while it ran: calls in it may be missing, and its end may be another call's.")
	}
	if peers.allRoles {
		list = append(list, "Few threads like this one made such calls: it is compared with those of all threads.")
	}
	if n := len(peers.mid); n > 0 && peers.count < fewPeers {
		list = append(list, fmt.Sprintf("There are only %d other calls, too few to tell the ordinary from the slow.", peers.count))
	}
	dropped := uint64(0)
	for _, d := range x.f.Drops() {
		if d.Thread == r.thread && d.Tick >= r.start && d.Tick <= r.end {
			dropped += d.Entries
		}
	}
	if dropped > 0 {
		list = append(list, fmt.Sprintf("%d calls were dropped while it ran: their time counts as that of their callers.", dropped))
	}
	if d, ok := x.f.Dump(); ok {
		for _, m := range d.Missing {
			if (m.Thread == r.thread || m.Thread == 0) && m.From < r.end && m.To > r.start {
				list = append(list, "A part of its thread's calls is missing from the dump: their time counts as that of their callers.")
				break
			}
		}
	}
	list = append(list, x.offDoubts(a)...)
	if a.slow.part > 0 {
		list = append(list, fmt.Sprintf("It made too many calls to read them all: %s of it was read, in even pieces, and counts and times are what that comes to.", percent(a.slow.part)))
	}
	if a.slow.cut {
		list = append(list, "It has too many paths: the deepest count as their callers' own time.")
	}
	return list
}

// endersKnown says whether it is known of any wait which call has ended it.
func (x *explainer) endersKnown() bool {
	return slices.ContainsFunc(x.f.Threads(), func(t reel.Thread) bool {
		return slices.ContainsFunc(x.f.Waits(t.Key), func(w reel.Wait) bool { return w.Ender != 0 })
	})
}
