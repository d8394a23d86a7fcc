package glob

import (
	"cmp"
	"slices"
	"strings"
)

// Misspelt says whether a glob without wildcards is likely meant to be one of the names: it is part of one, or all but one. Two or three
// letters are part of too many names for that to mean anything, unless they are half of it.
func Misspelt(pattern string, names []string) bool {
	if strings.ContainsAny(pattern, "*?[") {
		return false
	}
	want := strings.ToLower(pattern)
	limit := 1 + len(want)/6
	return slices.ContainsFunc(names, func(n string) bool {
		l := strings.ToLower(n)
		part := strings.Contains(l, want) && (len(want) > 3 || 2*len(want) >= len(l))
		return part || editDistance(want, l, limit) <= limit
	})
}

// Near returns up to five names that are like the glob, the nearest first: those that hold its letters as a part, the shortest first, then
// those with the least edit distance. Upper and lower case are one.
func Near(pattern string, names []string) []string {
	want := strings.ToLower(strings.Trim(pattern, "*?"))
	type scored struct {
		name string
		cost int
	}
	best := map[string]int{}
	for _, n := range names {
		l := strings.ToLower(n)
		var cost int
		switch {
		case want != "" && strings.Contains(l, want):
			cost = len(l) - len(want)
		default:
			limit := 1 + len(want)/3
			d := editDistance(want, l, limit)
			if d > limit {
				continue
			}
			cost = 1000 + d
		}
		best[n] = cost
	}
	var list []scored
	for n, c := range best {
		list = append(list, scored{n, c})
	}
	slices.SortFunc(list, func(a, b scored) int { return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.name, b.name)) })
	var out []string
	for _, s := range list[:min(5, len(list))] {
		out = append(out, s.name)
	}
	return out
}

// editDistance is Levenshtein's, or limit+1 once it is sure to be more than limit.
func editDistance(a, b string, limit int) int {
	if d := len(a) - len(b); d > limit || -d > limit {
		return limit + 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diag := row[0]
		row[0] = i
		least := row[0]
		for j := 1; j <= len(b); j++ {
			next := min(row[j]+1, row[j-1]+1)
			if a[i-1] == b[j-1] {
				next = min(next, diag)
			} else {
				next = min(next, diag+1)
			}
			diag, row[j] = row[j], next
			least = min(least, next)
		}
		if least > limit {
			return limit + 1
		}
	}
	return row[len(b)]
}
