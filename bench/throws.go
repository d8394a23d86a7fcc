package main

import (
	"context"
	"errors"
	"fmt"
)

// thrower is bench/target/throws.cc, running and waiting for orders.
type thrower struct{ *conversation }

// throwDepths are how many functions an exception leaves.
var throwDepths = []int{4, 32}

// throwCalls is how many calls of functions of the program one measurement makes.
const throwCalls = 200_000

// measure returns the nanoseconds of thread CPU time of one throw, or return, from depth functions down.
func (t *thrower) measure(mode string, depth int) (v float64, err error) {
	return v, t.ask(fmt.Sprintf("%s %d %d", mode, depth, throwCalls/depth), &v)
}

// A throwCost is what throws cost under one choice of what is recorded.
type throwCost struct {
	what      string
	flags     []string // nil: nothing is recorded
	reach     string
	thrown    [][]float64 // ns a throw, by depth and round
	returned  [][]float64
	summaries []summary
	err       error
}

// measureThrows lets exceptions be thrown through functions that are recorded, and through the same when nothing is.
func measureThrows(ctx context.Context, c config) []row {
	const reach = "≤ 1.5 × untraced"
	costs := []*throwCost{
		{what: "untraced"},
		{what: "the program's functions recorded", flags: []string{"-m", "throws"}, reach: reach},
		// Some 70 calls for each function that is left, which cost what calls cost.
		{what: "all of the unwinder's recorded too", flags: []string{}},
	}
	if err := throwRounds(ctx, c, costs); err != nil {
		return []row{missing("throw", reach, err)}
	}
	var rows []row
	for i, depth := range throwDepths {
		for _, k := range costs {
			what := fmt.Sprintf("throw from %d functions down, %s", depth, k.what)
			if k.err != nil {
				rows = append(rows, missing(what, k.reach, k.err))
				continue
			}
			r := row{what: what, value: ns(median(k.thrown[i])), note: fmt.Sprintf("returning instead: %s", ns(median(k.returned[i])))}
			if k != costs[0] {
				r.ratio = fmt.Sprintf("%.2f", medianRatio(k.thrown[i], costs[0].thrown[i]))
				r.reach = k.reach
				r.note += ", " + droppedNote(k.summaries)
			}
			rows = append(rows, r)
		}
	}
	return rows
}

// throwRounds lets every choice have its turn in every round.
func throwRounds(ctx context.Context, c config, costs []*throwCost) (err error) {
	path, err := buildTarget(ctx, c, "throws", "g++", "throws.cc")
	if err != nil {
		return err
	}
	conversation, err := converse(ctx, path)
	if err != nil {
		return err
	}
	t := &thrower{conversation}
	defer func() { err = errors.Join(err, t.end()) }()
	for range c.rounds {
		for _, k := range costs {
			if k.err == nil {
				k.err = k.round(ctx, c, t)
			}
			if k.err != nil && k.flags == nil {
				return k.err
			}
		}
	}
	return nil
}

// round attaches, unless nothing is to be recorded, measures and detaches.
func (k *throwCost) round(ctx context.Context, c config, t *thrower) error {
	if k.flags == nil {
		return k.depths(t)
	}
	r, err := startRecording(ctx, c, t.pid(), k.flags...)
	if err != nil {
		return err
	}
	err = k.depths(t)
	s, stopErr := r.stop()
	k.summaries = append(k.summaries, s)
	if err == nil && s.Events+s.Dropped == 0 {
		err = errors.New("nothing was traced")
	}
	return errors.Join(err, stopErr)
}

// depths measures both ways at each depth.
func (k *throwCost) depths(t *thrower) error {
	if k.thrown == nil {
		k.thrown, k.returned = make([][]float64, len(throwDepths)), make([][]float64, len(throwDepths))
	}
	for i, depth := range throwDepths {
		thrown, err := t.measure("throw", depth)
		if err != nil {
			return err
		}
		returned, err := t.measure("return", depth)
		if err != nil {
			return err
		}
		k.thrown[i], k.returned[i] = append(k.thrown[i], thrown), append(k.returned[i], returned)
	}
	return nil
}
