package main

import (
	"bufio"
	"cmp"
	"fmt"
	"slices"

	"github.com/callreel/callreel/reel"
)

// spanChangeJSON is the spans of one name in both reels; the keys are promised. a or b is null where a reel has none.
type spanChangeJSON struct {
	Name     string `json:"name"`
	Provider string `json:"provider"`
	Async    bool   `json:"async,omitempty"`
	// SlowerNS is how much longer those of B took than as many of A.
	SlowerNS int64     `json:"slower_ns"`
	A        *SpanJSON `json:"a"`
	B        *SpanJSON `json:"b"`
}

// compareSpans compares the spans of two reels, those first that became slower by most.
func compareSpans(a, b *reel.MarkSummary) []spanChangeJSON {
	type key struct {
		provider, name string
		async          bool
	}
	at := map[key]int{}
	var list []spanChangeJSON
	for i, sum := range [...]*reel.MarkSummary{a, b} {
		for k := range sum.Spans {
			s := &sum.Spans[k]
			of := key{s.Provider, s.Name, s.Async}
			n, known := at[of]
			if !known {
				n = len(list)
				at[of] = n
				list = append(list, spanChangeJSON{Name: s.Name, Provider: s.Provider, Async: s.Async})
			}
			j := spanJSON(s)
			if i == 0 {
				list[n].A = &j
			} else {
				list[n].B = &j
			}
		}
	}
	each := func(s *SpanJSON) float64 {
		if s == nil || s.Count == 0 {
			return 0
		}
		return float64(s.TotalNS) / float64(s.Count)
	}
	for i := range list {
		if c := &list[i]; c.B != nil {
			c.SlowerNS = int64((each(c.B) - each(c.A)) * float64(c.B.Count))
		}
	}
	slices.SortStableFunc(list, func(a, b spanChangeJSON) int {
		return cmp.Or(cmp.Compare(b.SlowerNS, a.SlowerNS), cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Name, b.Name))
	})
	return list
}

func (d *diff) spanTable(b *bufio.Writer) {
	if len(d.spans) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%11s %21s %21s %21s %23s  %s\n", "slower by", "on average", "p50", "p99", "count", "span")
	for i := range d.spans {
		c := &d.spans[i]
		both := func(text func(s *SpanJSON) string) string {
			of := func(s *SpanJSON) string {
				if s == nil {
					return "-"
				}
				return text(s)
			}
			return of(c.A) + " > " + of(c.B)
		}
		fmt.Fprintf(b, "%11s %21s %21s %21s %23s  %s\n", signedSpan(c.SlowerNS),
			both(func(s *SpanJSON) string { return span(s.TotalNS / max(1, s.Count)) }),
			both(func(s *SpanJSON) string { return percentileText(s.P50NS.NS, s.Complete) }),
			both(func(s *SpanJSON) string { return percentileText(s.P99NS.NS, s.Complete) }),
			both(func(s *SpanJSON) string { return count(s.Count) }), markName(c.Provider, c.Name))
	}
	b.WriteString("\n")
}
