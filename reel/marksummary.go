package reel

import (
	"cmp"
	"math"
	"slices"
)

// MarkSummaryOptions say what of marks is summed up.
type MarkSummaryOptions struct {
	// By is the name of an argument by whose values spans are told apart, "" for none.
	By string
	// Threads chooses threads by their keys; nil takes all.
	Threads map[uint32]bool
}

// MarkSummary is what markers came to. Times are in nanoseconds.
type MarkSummary struct {
	Spans    []SpanSummary    // by Total, the longest first
	Counters []CounterSummary // by name
	Instants []InstantSummary // by Count, the most first
	Flows    []FlowSummary    // by Count
	// Lost counts marks that were left out because too much was open.
	Lost uint64
}

// SpanSummary sums up the spans of one title. Count has all that began or ended in the reel; Total also has the time of those of which only
// one end is in it, the percentiles and Max are of the Complete ones.
type SpanSummary struct {
	Name, Provider, Category string
	Async                    bool
	// Value is that of MarkSummaryOptions.By, as it is shown; "" if none was asked for.
	Value                  string
	Count, Complete, Total uint64
	P50, P99, Max          uint64
}

// CounterSummary sums up a counter. Mean is that of the values that were told, TimeMean that over time: each holds until the next.
type CounterSummary struct {
	Name, Provider, Category       string
	Count                          uint64
	Min, Mean, TimeMean, Max, Last float64
}

// InstantSummary says how often something was told.
type InstantSummary struct {
	Name, Provider, Category string
	Count                    uint64
}

// FlowSummary sums up flows: how many left and arrived, and how long those took that did.
type FlowSummary struct {
	Name, Provider, Category string
	Out, In                  uint64
	P50, P99, Max            uint64
}

// maxTitles bounds how many titles, and values, are told apart: titles may be known at run time only. Others count as "(others)".
const maxTitles = 1 << 16

// OtherTitles is what marks count as that are of more titles than are told apart.
const OtherTitles = "(others)"

type titleKey struct {
	provider, title, value string
	async                  bool
}

type spanTally struct {
	SpanSummary
	times histogram
}

type counterTally struct {
	CounterSummary
	since, first uint64
	sum, area    float64
}

type flowTally struct {
	FlowSummary
	times histogram
}

type markSummarizer struct {
	f        *File
	o        MarkSummaryOptions
	spans    map[titleKey]*spanTally
	counters map[titleKey]*counterTally
	instants map[titleKey]*InstantSummary
	flows    map[titleKey]*flowTally
}

// SummarizeMarks sums up the marks of the reel.
func (f *File) SummarizeMarks(o MarkSummaryOptions) *MarkSummary {
	s := &markSummarizer{f: f, o: o, spans: map[titleKey]*spanTally{}, counters: map[titleKey]*counterTally{}, instants: map[titleKey]*InstantSummary{}, flows: map[titleKey]*flowTally{}}
	p := NewSpanPairer(f)
	p.OnSpan, p.OnFlow = s.span, s.flow
	f.AllMarks(func(thread uint32, x *Mark) bool {
		if o.Threads != nil && !o.Threads[thread] {
			return true
		}
		m, _ := f.Marker(x.Marker)
		switch m.Kind {
		case MarkInstant:
			k := titleKey{provider: m.Provider, title: m.TitleOf(x)}
			t := among(s.instants, &k)
			t.Name, t.Provider, t.Category = k.title, m.Provider, m.Of()
			t.Count++
		case MarkCounter:
			s.counter(x, m)
		case MarkFlowOut:
			k := titleKey{provider: m.Provider, title: m.TitleOf(x)}
			t := among(s.flows, &k)
			t.Name, t.Provider, t.Category = k.title, m.Provider, m.Of()
			t.Out++
		}
		p.Push(thread, x)
		return true
	})
	p.Finish()
	out := s.list()
	out.Lost = p.Lost
	return out
}

// among is the entry of a key, which is made if there is room for it; else that of all others.
func among[T any](all map[titleKey]*T, k *titleKey) *T {
	t := all[*k]
	if t == nil && len(all) >= maxTitles {
		*k = titleKey{title: OtherTitles, async: k.async}
		t = all[*k]
	}
	if t == nil {
		t = new(T)
		all[*k] = t
	}
	return t
}

func (s *markSummarizer) span(x *Span) {
	m, _ := s.f.Marker(x.Marker)
	k := titleKey{provider: m.Provider, title: x.Title, async: x.Async}
	if s.o.By != "" {
		k.value = s.f.spanValue(x, s.o.By)
	}
	t := among(s.spans, &k)
	t.Name, t.Provider, t.Category, t.Async, t.Value = k.title, m.Provider, m.Of(), k.async, k.value
	ns := s.f.Clock().Nanoseconds(x.End - x.Begin)
	t.Count++
	t.Total += ns
	if x.Unfinished || x.Unstarted {
		return
	}
	t.Complete++
	t.Max = max(t.Max, ns)
	t.times.add(ns)
}

// spanValue is what an argument of a span's beginning, or its end, was; "?" if it has none of that name.
func (f *File) spanValue(x *Span, name string) string {
	for _, of := range [...]struct {
		marker uint32
		values []Value
	}{{x.Marker, x.Values}, {x.EndMarker, x.EndValues}} {
		m, ok := f.Marker(of.marker)
		if !ok {
			continue
		}
		for i := range m.Arguments {
			if m.Arguments[i].Name == name && i < len(of.values) {
				return m.Arguments[i].Text(of.values[i])
			}
		}
	}
	return "?"
}

func (s *markSummarizer) counter(x *Mark, m *Marker) {
	v, ok := m.ValueOf(x)
	if !ok {
		return
	}
	k := titleKey{provider: m.Provider, title: m.TitleOf(x)}
	t := among(s.counters, &k)
	if t.Count == 0 {
		t.Name, t.Provider, t.Category = k.title, m.Provider, m.Of()
		t.Min, t.Max, t.first = v, v, x.Time
	} else {
		t.area += t.Last * float64(x.Time-min(x.Time, t.since))
	}
	t.Count++
	t.sum += v
	t.Min, t.Max, t.Last, t.since = min(t.Min, v), max(t.Max, v), v, x.Time
}

func (s *markSummarizer) flow(x *Flow) {
	m, _ := s.f.Marker(x.FromMarker)
	k := titleKey{provider: m.Provider, title: x.Title}
	t := among(s.flows, &k)
	ns := s.f.Clock().Nanoseconds(x.To - min(x.From, x.To))
	t.In++
	t.Max = max(t.Max, ns)
	t.times.add(ns)
}

func (s *markSummarizer) list() *MarkSummary {
	out := &MarkSummary{}
	for _, t := range s.spans {
		t.P50, t.P99 = min(t.times.percentile(50), t.Max), min(t.times.percentile(99), t.Max)
		out.Spans = append(out.Spans, t.SpanSummary)
	}
	for _, t := range s.counters {
		// The last value holds until the reel ends.
		end := max(s.f.lastTick, t.since)
		t.area += t.Last * float64(end-t.since)
		t.TimeMean = t.Last
		if whole := float64(end - t.first); whole > 0 {
			t.TimeMean = t.area / whole
		}
		t.Mean = t.sum / float64(t.Count)
		for _, mean := range [...]*float64{&t.Mean, &t.TimeMean} {
			if math.IsNaN(*mean) || math.IsInf(*mean, 0) { // the sum is too large
				*mean = t.Last
			}
		}
		out.Counters = append(out.Counters, t.CounterSummary)
	}
	for _, t := range s.instants {
		out.Instants = append(out.Instants, *t)
	}
	for _, t := range s.flows {
		t.P50, t.P99 = min(t.times.percentile(50), t.Max), min(t.times.percentile(99), t.Max)
		out.Flows = append(out.Flows, t.FlowSummary)
	}
	byName := func(a, b, c, d, e, f string) int {
		return cmp.Or(cmp.Compare(a, b), cmp.Compare(c, d), cmp.Compare(e, f))
	}
	slices.SortFunc(out.Spans, func(a, b SpanSummary) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), byName(a.Name, b.Name, a.Provider, b.Provider, a.Value, b.Value))
	})
	slices.SortFunc(out.Counters, func(a, b CounterSummary) int { return byName(a.Name, b.Name, a.Provider, b.Provider, "", "") })
	slices.SortFunc(out.Instants, func(a, b InstantSummary) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), byName(a.Name, b.Name, a.Provider, b.Provider, "", ""))
	})
	slices.SortFunc(out.Flows, func(a, b FlowSummary) int {
		return cmp.Or(cmp.Compare(b.Out, a.Out), byName(a.Name, b.Name, a.Provider, b.Provider, "", ""))
	})
	return out
}
