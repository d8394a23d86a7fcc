package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// measureArmed measures what a recorder costs that waits for a trigger, and for how long a dump keeps it.
func measureArmed(ctx context.Context, c config) []row {
	return append(append(armedCall(ctx, c), armedRedis(ctx, c)), armedDump(ctx, c))
}

// armedCall is what a call costs, recorded and armed in turns.
func armedCall(ctx context.Context, c config) []row {
	const what, reach = "armed: a call of leaf", "≤ 1.0 × recorded"
	recorded, armed := &lessCost{}, &lessCost{flags: "--when run_limit"}
	leaf, deep, err := lessRounds(ctx, c, []*lessCost{recorded, armed})
	if err = errors.Join(err, recorded.err, armed.err); err != nil {
		return []row{missing(what, reach, err)}
	}
	added := func(v []float64, plain float64) float64 { return median(v) - plain }
	return []row{
		{what: what, value: ns(added(armed.leaf, leaf)), ratio: ratio(added(armed.leaf, leaf), added(recorded.leaf, leaf)), reach: reach,
			note: "recorded " + ns(added(recorded.leaf, leaf))},
		{what: "armed: under 8 untraced callers", value: ns(added(armed.deep, deep)), ratio: ratio(added(armed.deep, deep), added(recorded.deep, deep)),
			reach: reach},
	}
}

// armedRedis is the processor time of a recorder whose condition never comes true, of redis under load.
func armedRedis(ctx context.Context, c config) (r row) {
	const what, reach = "armed, nothing triggers: recorder under redis's load", "≤ 10 % of a core"
	s, err := startRedis(ctx, c)
	if err != nil {
		return missing(what, reach, err)
	}
	var share []float64
	for range c.rounds {
		if err == nil {
			var v float64
			v, err = s.armedShare(ctx, c)
			share = append(share, v)
		}
	}
	if err = errors.Join(err, s.end()); err != nil {
		return missing(what, reach, err)
	}
	return row{what: what, value: fmt.Sprintf("%.2f %% of a core", 100*median(share)), reach: reach, note: "user+sys of all its threads"}
}

func (s *redisServer) armedShare(ctx context.Context, c config) (float64, error) {
	r, err := startRecording(ctx, c, s.pid, "--when", "call > 1h")
	if err != nil {
		return 0, err
	}
	const settle, least = time.Second, 3 * time.Second
	time.Sleep(settle) // it gives back what planning took
	before, err := processCPU(r.cmd.Process.Pid)
	began := time.Now()
	for err == nil && time.Since(began) < least {
		_, _, err = s.get(ctx, c.requests, 1)
	}
	took := time.Since(began)
	after, cpuErr := processCPU(r.cmd.Process.Pid)
	_, stopErr := r.stop()
	return float64(after-before) / float64(took), errors.Join(err, cpuErr, stopErr)
}

// armedDump is for how long a trigger keeps full rings of 64 MB from being overwritten.
func armedDump(ctx context.Context, c config) row {
	const what, reach = "trigger to recording again", "≤ 1 ms"
	const calls = 5_000_000 // more than fill them
	t, err := startLeaf(ctx, c)
	if err != nil {
		return missing(what, reach, err)
	}
	var frozen []float64
	for range c.rounds {
		if err == nil {
			var s summary
			s, err = t.dumped(ctx, c, calls)
			frozen = append(frozen, s.Triggers.FrozenMS)
		}
	}
	if err = errors.Join(err, t.end()); err != nil {
		return missing(what, reach, err)
	}
	return row{what: what, value: fmt.Sprintf("%.1f ms", median(frozen)), reach: reach, note: "from the call's exit on; the process runs on"}
}

// dumped records until a call in the middle of many has made a dump.
func (t *leafTarget) dumped(ctx context.Context, c config, calls int64) (summary, error) {
	r, err := startRecording(ctx, c, t.cmd.Process.Pid, "-m", "leaf", "-f", "leaf", "--ring", "64M", "--when", fmt.Sprintf("leaf #%d", calls*9/10))
	if err != nil {
		return summary{}, err
	}
	_, err = t.measure("leaf", calls)
	s, stopErr := r.stop()
	if err = errors.Join(err, stopErr); err == nil && s.Triggers.Dumped != 1 {
		err = fmt.Errorf("%d dumps, not one", s.Triggers.Dumped)
	}
	return s, err
}
