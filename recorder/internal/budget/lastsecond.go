package budget

import "slices"

// lastSecond is what was spent in the last second.
type lastSecond struct{ list []spending }

// spending is what a stretch has spent, of which processor time, in seconds; at is when it ended, in ticks.
type spending struct {
	at         uint64
	spent, cpu float64
}

// add adds a stretch and returns which share was spent in the second up to its end, of the processor time in it.
func (w *lastSecond) add(s spending, perSecond uint64) float64 {
	w.list = append(w.list, s)
	n := slices.IndexFunc(w.list, func(x spending) bool { return s.at-min(x.at, s.at) < perSecond })
	w.list = slices.Delete(w.list, 0, n)
	var spent, cpu float64
	for _, x := range w.list {
		spent, cpu = spent+x.spent, cpu+x.cpu
	}
	return spent / cpu
}
