package why

import (
	"cmp"
	"slices"
	"strings"
)

// groups finds the calls that are slow for the same cause, the group that lost most time first; calls without a cause are one group, the
// last. Within a group calls stay in their order.
func groups(calls []Answer) [][]int {
	key := func(a *Answer) string {
		if len(a.Causes) == 0 {
			return a.Function
		}
		c := &a.Causes[0]
		k := []string{a.Function, string(c.Kind), c.State, strings.Join(c.Path, "\x00")}
		if c.WaitsFor != nil {
			k = append(k, c.WaitsFor.Function)
		}
		return strings.Join(k, "\x01")
	}
	var list [][]int
	at := map[string]int{}
	lost := map[int]int64{}
	for i := range calls {
		k := key(&calls[i])
		g, ok := at[k]
		if !ok {
			g = len(list)
			at[k] = g
			list = append(list, nil)
		}
		list[g] = append(list[g], i)
		if len(calls[i].Causes) > 0 {
			lost[list[g][0]] += max(calls[i].Causes[0].ExcessNS, 1)
		}
	}
	slices.SortStableFunc(list, func(a, b []int) int { return cmp.Compare(lost[b[0]], lost[a[0]]) })
	return list
}
