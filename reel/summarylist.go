package reel

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"sync"
	"sync/atomic"
)

// listed is a function of a summary on its way there.
type listed struct {
	FunctionSummary
	stats  *functionTally
	fn     *Function // nil if the reel doesn't describe it
	symbol string    // its name before SummaryOptions.Name
}

// listFunctions lists the functions that were called, as SummaryOptions say, and says how many more there are than the
// Limit. Names and percentiles are made on several goroutines, and only for those that are listed unless Match needs all
// names.
func listFunctions(f *File, t *tally, opt *SummaryOptions) (out []FunctionSummary, unlisted int) {
	list := called(f, t)
	limit := len(list)
	if opt.Limit > 0 {
		limit = min(opt.Limit, limit)
	}
	if opt.Match == nil && limit < len(list) {
		sortListed(list, opt.Order)
		unlisted = len(list) - limit
		list = list[:limit]
		slices.SortFunc(list, func(a, b *listed) int { return cmp.Compare(a.ID, b.ID) }) // neighbours are named quicker
	}
	f.complete(list, opt.Name, opt.workers())
	if opt.Match != nil {
		list = slices.DeleteFunc(list, func(l *listed) bool { return !opt.Match(l.Name) && !opt.Match(l.symbol) })
	}
	sortListed(list, opt.Order)
	if limit < len(list) {
		unlisted = len(list) - limit
		list = list[:limit]
	}
	out = make([]FunctionSummary, len(list))
	for i, l := range list {
		out[i] = l.FunctionSummary
	}
	return out, unlisted
}

// called returns the functions that were called, in the order of the table, with their numbers.
func called(f *File, t *tally) []*listed {
	n := 0
	for i := range t.stats {
		if !t.stats[i].empty() {
			n++
		}
	}
	all, list := make([]listed, 0, n), make([]*listed, 0, n)
	for i := range t.stats {
		st := &t.stats[i]
		if st.empty() {
			continue
		}
		id := t.id(i)
		l := listed{FunctionSummary: sumOf(f, id, st), stats: st}
		if t.hasStates {
			f.setStates(&l.FunctionSummary, st)
		}
		if fn, known := f.recorded(id); known {
			l.fn = fn
		}
		all = append(all, l)
		list = append(list, &all[len(all)-1])
	}
	return list
}

// sumOf are the numbers of a function, without the percentiles.
func sumOf(f *File, id uint32, st *functionTally) FunctionSummary {
	fs := FunctionSummary{
		ID: id, Calls: st.calls, Unfinished: st.unfinished, Implicit: st.implicit,
		Total: f.ticks.Nanoseconds(st.total), Self: f.ticks.Nanoseconds(st.self), Max: f.ticks.Nanoseconds(max(st.max, st.openMax)),
		UnfinishedTotal: f.ticks.Nanoseconds(st.openTotal), UnfinishedSelf: f.ticks.Nanoseconds(st.openSelf), EndedMax: f.ticks.Nanoseconds(st.max),
	}
	fs.Made, _ = f.Made(id)
	return fs
}

// sortListed puts functions in the order of a summary, equal ones by their IDs.
func sortListed(list []*listed, order func(*FunctionSummary) uint64) {
	slices.SortFunc(list, func(a, b *listed) int {
		if order != nil {
			if c := cmp.Compare(order(&b.FunctionSummary), order(&a.FunctionSummary)); c != 0 {
				return c
			}
		}
		return cmp.Or(cmp.Compare(b.EndedTotal(), a.EndedTotal()), cmp.Compare(b.Total, a.Total), cmp.Compare(a.ID, b.ID))
	})
}

// complete gives functions names, places and percentiles.
func (f *File) complete(list []*listed, rename func(string) string, workers int) {
	var next atomic.Int64
	var wg sync.WaitGroup
	parts := (len(list) + namedAtOnce - 1) / namedAtOnce
	for range min(workers, parts) {
		wg.Go(func() {
			n := &namings{f: f}
			for {
				from := int(next.Add(namedAtOnce)) - namedAtOnce
				if from >= len(list) {
					return
				}
				n.complete(list[from:min(from+namedAtOnce, len(list))], rename)
			}
		})
	}
	wg.Wait()
}

// complete is File.complete for at most namedAtOnce functions.
func (n *namings) complete(list []*listed, rename func(string) string) {
	for _, l := range list {
		if l.fn != nil {
			n.add(l.ID, l.fn)
		}
	}
	known := n.ask()
	for _, l := range list {
		if l.fn == nil {
			l.symbol = fmt.Sprintf("function #%d", l.ID)
		} else {
			l.symbol, l.NamedFrom, l.File, l.Line = known[0].Name, known[0].From, known[0].File, known[0].Line
			known = known[1:]
			if m, ok := n.f.Image(l.fn.Image); ok {
				l.Module = path.Base(m.Path)
			}
		}
		l.Name = l.symbol
		if rename != nil {
			l.Name = rename(l.symbol)
		}
		if h := l.stats.durations; h != nil {
			l.Complete = h.total()
			l.P50 = min(l.Max, n.f.ticks.Nanoseconds(h.percentile(50)))
			l.P99 = min(l.Max, n.f.ticks.Nanoseconds(h.percentile(99)))
		}
	}
}
