package budget

import "slices"

// recent is what was called lately, so that a load that goes through many short pieces of work is held to the budget as a whole.
type recent struct {
	lists [][]Function
	loads []load
	cpu   float64 // of all
}

const (
	// recentCPU is for how much processor time that is, in seconds, recentMost how many stretches at most.
	recentCPU  = 0.4
	recentMost = 64
)

// add adds a stretch.
func (r *recent) add(list []Function, l load) {
	n := 0
	for n < len(r.lists) && (r.cpu+l.cpu-r.loads[n].cpu > recentCPU || len(r.lists)-n >= recentMost) {
		r.cpu -= r.loads[n].cpu
		n++
	}
	r.lists, r.loads = append(slices.Delete(r.lists, 0, n), list), append(slices.Delete(r.loads, 0, n), l)
	r.cpu += l.cpu
}

// sum is what was called of the functions for which is says so.
func (r *recent) sum(is func(id uint32) bool) (all []Function, l load) {
	at := map[uint32]int{}
	for i, list := range r.lists {
		for k := range list {
			f := &list[k]
			if !is(f.ID) {
				continue
			}
			a, met := at[f.ID]
			if !met {
				at[f.ID] = len(all)
				all = append(all, *f)
				continue
			}
			s := &all[a]
			s.Calls, s.Self = s.Calls+f.Calls, s.Self+f.Self
			s.P99, s.Max, s.Half, s.Kept = max(s.P99, f.P99), max(s.Max, f.Max), max(s.Half, f.Half), f.Kept
		}
		l.cpu, l.ticks = l.cpu+r.loads[i].cpu, l.ticks+r.loads[i].ticks
	}
	for i := range all {
		l.all += float64(all[i].Calls)
	}
	return all, l
}
