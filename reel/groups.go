package reel

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// GroupSummary sums up the calls that had one value of an argument, or of a result. Times are in nanoseconds.
type GroupSummary struct {
	// Text and JSON are the value as [Argument.Text] and [Argument.JSON] give it. Calls of which it isn't known have "?": it could not be
	// read, or was not recorded.
	Text string
	JSON any
	// Calls counts entries; for a result, returns. Total is the time in them, where one is open around another of the same value only the
	// outer one's. P50, P99 and Max are as in a FunctionSummary.
	Calls, Total, P50, P99, Max uint64
	// Complete is how many calls the percentiles are of: with none there are no percentiles.
	Complete uint64
	// UnfinishedTotal is the part of Total that unfinished calls have, and EndedMax the longest of the others, as in a FunctionSummary.
	UnfinishedTotal, EndedMax uint64
	// TotalStates and UnfinishedTotalStates split Total and UnfinishedTotal by what threads did, as in a FunctionSummary.
	TotalStates, UnfinishedTotalStates StateTimes
}

// ErrNoArgument says that nothing of that name is recorded.
var ErrNoArgument = errors.New("not recorded")

// maxGroups bounds how many values are told apart; the calls of others are summed up under "other values".
const maxGroups = 1 << 17

// GroupCalls sums up the calls of functions by the value of an argument, or of a result ("return"), by the Total of those that ended, longest first.
func GroupCalls(f *File, functions []uint32, argument string) ([]GroupSummary, error) {
	g := &grouping{f: f, hasStates: f.HasStates(), by: map[uint32]groupedBy{}, index: map[string]int{}}
	var known []string
	for _, id := range functions {
		for _, atReturn := range []bool{false, true} {
			args := f.Arguments(id, atReturn)
			for i := range args {
				if args[i].Name == argument {
					g.by[id] = groupedBy{i, atReturn, &args[i]}
				} else if !slices.Contains(known, args[i].Name) && len(known) < maxArguments {
					known = append(known, args[i].Name)
				}
			}
		}
	}
	if len(g.by) == 0 {
		if len(known) == 0 {
			return nil, fmt.Errorf("%w: the recording has no arguments of these functions: record --args", ErrNoArgument)
		}
		return nil, fmt.Errorf("%w: %q; recorded are %s", ErrNoArgument, argument, strings.Join(known, ", "))
	}
	g.read()
	return g.list(), nil
}

// grouping sums up.
type grouping struct {
	f      *File
	by     map[uint32]groupedBy // by function
	index  map[string]int       // by what is shown
	groups []group

	hasStates bool // of some thread
}

// groupedBy is which value of a function.
type groupedBy struct {
	at       int
	atReturn bool
	argument *Argument
}

type group struct {
	text  string
	json  any
	tally functionTally
}

// groupWalk pairs the events of a thread, or of a goroutine.
type groupWalk struct {
	*grouping
	pairer Pairer
	values *ValueReader // of the thread whose events come
	base   uint64       // number of the first of the events that are being paired, or UnknownNumber
	open   [][]int      // by stack and depth: the group of each open call, -1 for none
}

func (g *grouping) newWalk() *groupWalk {
	w := &groupWalk{grouping: g}
	w.pairer.OnEntry, w.pairer.OnCall = w.enter, w.leave
	w.pairer.SetTime(g.f.FirstTick())
	return w
}

func (g *grouping) read() {
	if !g.f.header.Goroutines {
		for i := range g.f.threads {
			t := &g.f.threads[i]
			w := g.newWalk()
			g.f.ReadyPairer(&w.pairer, t.Key)
			g.f.PairStates(&w.pairer, t.Key)
			w.values = g.f.Values(t.Key)
			g.f.ReadThread(t.Key, func(events []Event, lost bool) bool {
				if lost {
					w.pairer.Lost()
				}
				w.pairer.Push(events)
				w.base += uint64(len(events))
				return true
			})
			w.pairer.Finish(g.f.EndOf(&t.Thread))
		}
		return
	}
	walks := map[goroutineKey]*groupWalk{}
	values := map[uint32]*ValueReader{}
	states := g.f.GoroutineStates()
	g.f.ReadGoroutines(func(id uint64, thread uint32, events []Event, lost bool) bool {
		key := goroutineKey{id: id}
		if id == 0 {
			key.thread = thread
		}
		w := walks[key]
		if w == nil {
			w = g.newWalk()
			g.f.ReadyPairer(&w.pairer, thread)
			walks[key] = w
		}
		if values[thread] == nil {
			values[thread] = g.f.Values(thread)
		}
		if lost {
			for _, o := range walks {
				o.pairer.Lost()
			}
		}
		w.values = values[thread]
		if states != nil {
			states.Push(&w.pairer, id, thread, events, lost)
		} else {
			w.pairer.Push(events)
		}
		if g.f.Ends(events) {
			w.pairer.Abandon()
			delete(walks, key)
			if states != nil {
				states.Forget(id)
			}
		}
		return true
	})
	for _, w := range walks {
		w.values = nil
		w.pairer.Finish(g.f.LastTick())
	}
}

func (w *groupWalk) enter(c *Call) {
	for len(w.open) <= c.Stack {
		w.open = append(w.open, nil)
	}
	of := -1
	if by, ok := w.by[c.Func]; ok && !by.atReturn {
		of = w.group(by, w.values.Of(c.Func, false, c.Start, c.SP, w.base+uint64(w.pairer.Index())))
		w.groups[of].tally.calls++
	}
	s := w.open[c.Stack]
	if c.Depth <= len(s) {
		s = append(s[:c.Depth], of)
	}
	w.open[c.Stack] = s
}

func (w *groupWalk) leave(c *Call) {
	by, ok := w.by[c.Func]
	if !ok {
		return
	}
	var around []int
	of := -1
	if c.Stack < len(w.open) && c.Depth < len(w.open[c.Stack]) {
		around, of = w.open[c.Stack][:c.Depth], w.open[c.Stack][c.Depth]
	}
	if by.atReturn {
		var v []Value
		if w.values != nil && c.Flags&(Unfinished|Implicit) == 0 {
			v = w.values.Of(c.Func, true, c.End, c.SP, w.base+uint64(w.pairer.Index()))
		}
		of = w.group(by, v)
		w.groups[of].tally.calls++
	}
	if of < 0 {
		return
	}
	st := &w.groups[of].tally
	t := tally{hasStates: w.hasStates, split: w.pairer.states != nil}
	t.end(st, c, by.atReturn || !slices.Contains(around, of))
}

// group is the index of the value's.
func (g *grouping) group(by groupedBy, values []Value) int {
	text, json := "?", any("?")
	if by.at < len(values) {
		text, json = by.argument.Text(values[by.at]), nil
	}
	i, ok := g.index[text]
	if ok {
		return i
	}
	if len(g.groups) >= maxGroups {
		text, json = "other values", "other values"
		if i, ok := g.index[text]; ok {
			return i
		}
	} else if json == nil {
		json = by.argument.JSON(values[by.at])
	}
	i = len(g.groups)
	g.index[text] = i
	g.groups = append(g.groups, group{text: text, json: json})
	return i
}

func (g *grouping) list() []GroupSummary {
	var list []GroupSummary
	ns := g.f.ticks.Nanoseconds
	for i := range g.groups {
		st := &g.groups[i].tally
		s := GroupSummary{Text: g.groups[i].text, JSON: g.groups[i].json, Calls: st.calls, Total: ns(st.total), Max: ns(max(st.max, st.openMax)),
			UnfinishedTotal: ns(st.openTotal), EndedMax: ns(st.max)}
		if g.hasStates {
			var fs FunctionSummary
			fs.Total, fs.UnfinishedTotal = s.Total, s.UnfinishedTotal
			g.f.setStates(&fs, st)
			s.TotalStates, s.UnfinishedTotalStates = fs.TotalStates, fs.UnfinishedTotalStates
		}
		if h := st.durations; h != nil {
			s.Complete = h.total()
			s.P50, s.P99 = min(s.Max, ns(h.percentile(50))), min(s.Max, ns(h.percentile(99)))
		}
		list = append(list, s)
	}
	slices.SortStableFunc(list, func(a, b GroupSummary) int {
		return cmp.Or(cmp.Compare(b.Total-b.UnfinishedTotal, a.Total-a.UnfinishedTotal), cmp.Compare(b.Total, a.Total), cmp.Compare(a.Text, b.Text))
	})
	return list
}
