package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// leafTarget is bench/target/leaf.c, running and waiting for orders.
type leafTarget struct{ *conversation }

// buildLeaf compiles bench/target/leaf.c and returns the binary's path.
func buildLeaf(ctx context.Context, c config, name, compiler string, flags ...string) (string, error) {
	out := filepath.Join(c.dir, name)
	args := append([]string{"-O2", "-g", "-o", out, filepath.Join(c.source, "leaf.c")}, flags...)
	if said, err := exec.CommandContext(ctx, compiler, args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", compiler, err, said)
	}
	return out, nil
}

func startLeaf(ctx context.Context, c config) (*leafTarget, error) {
	path, err := buildLeaf(ctx, c, "leaf", "gcc")
	if err != nil {
		return nil, err
	}
	t, err := converse(ctx, path)
	if err != nil {
		return nil, err
	}
	return &leafTarget{t}, nil
}

// measure returns the nanoseconds of thread CPU time of one call.
func (t *leafTarget) measure(mode string, calls int64) (float64, error) {
	if err := t.say(fmt.Sprintf("%s %d", mode, calls)); err != nil {
		return 0, err
	}
	line, err := t.hear()
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(strings.TrimSpace(line), 64)
}

// A clockCost is what a traced call costs with one setting of --clock.
type clockCost struct {
	clock      string
	leaf, deep []float64 // ns a call, traced
	summaries  []summary
	err        error
}

// costs are ns a call, one figure a round.
type costs struct {
	limit, leaf, deep []float64 // untraced
	clocks            []*clockCost
}

// limit is the added cost that the ratios are against.
func (k costs) limitAdded() float64 { return median(k.limit) - median(k.leaf) }

func measureLeaf(ctx context.Context, c config) []row {
	const reachLeaf, reachDeep, reachNone = "≤ 1.0 × limit", "≤ 10 ns", "≤ 4 ns"
	k, err := leafRounds(ctx, c)
	if err != nil {
		return []row{missing("traced call, leaf", reachLeaf, err), missing("traced call under 8 untraced callers", reachDeep, err)}
	}
	limit := k.limitAdded()
	rows := []row{
		{what: "untraced call of leaf", value: ns(median(k.leaf)), note: "of which nothing is counted below"},
		{what: "limit: 2 × (rdtsc + 16-byte store)", value: ns(limit), ratio: "1.00"},
	}
	for _, clock := range k.clocks {
		what := "callreel, leaf, --clock " + clock.clock
		whatDeep := "callreel, under 8 untraced callers, --clock " + clock.clock
		reach, reachBelow := "", ""
		switch clock.clock {
		case "full":
			reach, reachBelow = reachLeaf, reachDeep
		case "none":
			reach = reachNone
		}
		if clock.err != nil {
			rows = append(rows, missing(what, reach, clock.err), missing(whatDeep, reachBelow, clock.err))
			continue
		}
		added, below := median(clock.leaf)-median(k.leaf), median(clock.deep)-median(k.deep)
		rows = append(rows,
			row{what: what, value: ns(added), ratio: ratio(added, limit), reach: reach, note: droppedNote(clock.summaries)},
			row{what: whatDeep, value: ns(below), ratio: ratio(below, limit), reach: reachBelow})
	}
	return rows
}

// leafRounds lets every contender have its turn in every round.
func leafRounds(ctx context.Context, c config) (k costs, err error) {
	t, err := startLeaf(ctx, c)
	if err != nil {
		return k, err
	}
	defer func() { err = errors.Join(err, t.end()) }()
	for _, clock := range []string{"full", "exit", "none"} {
		k.clocks = append(k.clocks, &clockCost{clock: clock})
	}
	for range c.rounds {
		for _, m := range []struct {
			mode string
			to   *[]float64
		}{{"limit", &k.limit}, {"leaf", &k.leaf}, {"deep", &k.deep}} {
			v, err := t.measure(m.mode, c.calls)
			if err != nil {
				return k, err
			}
			*m.to = append(*m.to, v)
		}
		for _, clock := range k.clocks {
			if clock.err == nil {
				clock.err = clock.round(ctx, c, t)
			}
		}
	}
	return k, nil
}

// round attaches, measures and detaches.
func (k *clockCost) round(ctx context.Context, c config, t *leafTarget) error {
	r, err := startRecording(ctx, c, t.cmd.Process.Pid, "-m", "leaf", "-f", "leaf", "--clock", k.clock)
	if err != nil {
		return err
	}
	leaf, leafErr := t.measure("leaf", c.calls)
	deep, deepErr := t.measure("deep", c.calls)
	s, err := r.stop()
	if err = errors.Join(leafErr, deepErr, err); err != nil {
		return err
	}
	if s.Events+s.Dropped == 0 {
		return errors.New("leaf was not traced")
	}
	k.leaf = append(k.leaf, leaf)
	k.deep = append(k.deep, deep)
	k.summaries = append(k.summaries, s)
	return nil
}

func ns(v float64) string { return fmt.Sprintf("%.1f ns", v) }

func ratio(v, of float64) string { return fmt.Sprintf("%.2f", v/of) }
