package main

import (
	"context"
)

// measureArguments measures what arguments and conditions on them cost.
func measureArguments(ctx context.Context, c config) []row {
	costs := []*lessCost{
		{flags: "--ring 256M"},
		{flags: "--args leaf(x) --if x==1", reach: "≤ 3 ns"},
		{flags: "--ring 256M --args leaf(x)"},
		{flags: "--ring 256M --args leaf(x) --ret leaf"},
		{flags: "--args leaf(arg1:s)"},
	}
	plain, _, err := lessRounds(ctx, c, costs)
	if err != nil {
		return []row{missing("arguments", "", err)}
	}
	names := []string{"recorded", "a condition that is false", "recorded with an argument in a register", "… and the result", "… with a string at a bad pointer"}
	var rows []row
	for i, k := range costs {
		if k.err != nil {
			rows = append(rows, missing(names[i], k.reach, k.err))
			continue
		}
		leaf := median(k.leaf) - plain
		rows = append(rows, row{what: names[i] + ": a call of leaf", value: ns(leaf), ratio: ratio(leaf, median(costs[0].leaf)-plain), reach: k.reach, note: things(k.events)})
	}
	return rows
}
