package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// A lessCost is what a call costs that a filter leaves out, or lets through.
type lessCost struct {
	flags      string
	set        string // that callreel set is told then
	reach      string
	leaf, deep []float64
	events     int64
	err        error
}

// measureFilters measures what record's filters cost and spare.
func measureFilters(ctx context.Context, c config) []row {
	costs := []*lessCost{
		{flags: ""},
		{flags: "--min 1ms", reach: "≤ 1.0 × recorded"},
		{flags: "--threads other"},
		{flags: "--clock none --depth 4", reach: "≤ 0.6 × recorded"},
		{flags: "--clock none --inside leaf", reach: "≤ 0.6 × recorded"},
		{flags: "--clock none --every 100", reach: "≤ 0.6 × recorded"},
		{flags: "--every 100"},
		{set: "-x leaf"},
	}
	plainLeaf, plainDeep, err := lessRounds(ctx, c, costs)
	if err != nil {
		return []row{missing("filters", "", err)}
	}
	var rows []row
	for _, k := range costs {
		what := "recorded"
		if k.flags != "" {
			what = "record " + k.flags
		}
		if k.set != "" {
			what = "callreel set " + k.set
		}
		if k.err != nil {
			rows = append(rows, missing(what, k.reach, k.err))
			continue
		}
		full := costs[0]
		leaf, deep := median(k.leaf)-plainLeaf, median(k.deep)-plainDeep
		rows = append(rows,
			row{what: what + ": a call of leaf", value: ns(leaf), ratio: ratio(leaf, median(full.leaf)-plainLeaf), reach: k.reach, note: things(k.events)},
			row{what: what + ": under 8 untraced callers", value: ns(deep), ratio: ratio(deep, median(full.deep)-plainDeep), reach: k.reach})
	}
	return append(rows, lessRedis(ctx, c)...)
}

func things(events int64) string { return fmt.Sprintf("%d events recorded", events) }

// lessRounds lets each have its turn in every round, and returns what the calls cost untraced.
func lessRounds(ctx context.Context, c config, costs []*lessCost) (leaf, deep float64, err error) {
	t, err := startLeaf(ctx, c)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, t.end()) }()
	var plain lessCost
	for range c.rounds {
		if err := plain.measure(t, c.calls); err != nil {
			return 0, 0, err
		}
		for _, k := range costs {
			if k.err == nil {
				k.err = k.round(ctx, c, t)
			}
		}
	}
	return median(plain.leaf), median(plain.deep), nil
}

func (k *lessCost) round(ctx context.Context, c config, t *leafTarget) error {
	args := append([]string{"-m", "leaf", "-f", "leaf"}, strings.Fields(k.flags)...)
	r, err := startRecording(ctx, c, t.cmd.Process.Pid, args...)
	if err != nil {
		return err
	}
	if k.set != "" {
		args := append([]string{"set", "-p", strconv.Itoa(t.cmd.Process.Pid)}, strings.Fields(k.set)...)
		if out, serr := exec.CommandContext(ctx, c.callreel, args...).CombinedOutput(); serr != nil {
			err = fmt.Errorf("callreel set: %w: %s", serr, out)
		}
		time.Sleep(time.Second) // until exits are off as well
	}
	err = errors.Join(err, k.measure(t, c.calls))
	s, stopErr := r.stop()
	k.events = s.Events
	return errors.Join(err, stopErr)
}

func (k *lessCost) measure(t *leafTarget, calls int64) error {
	leaf, leafErr := t.measure("leaf", calls)
	deep, deepErr := t.measure("deep", calls)
	k.leaf, k.deep = append(k.leaf, leaf), append(k.deep, deep)
	return errors.Join(leafErr, deepErr)
}

// lessRedis is how large the reel is that --min leaves, of redis under the same load.
func lessRedis(ctx context.Context, c config) []row {
	const what, reach = "redis, record --min 1ms: bytes of the reel, against all calls", "≤ 0.02"
	s, err := startRedis(ctx, c)
	if err != nil {
		return []row{missing(what, reach, err)}
	}
	var all, long []float64
	for range c.rounds {
		for _, k := range []struct {
			to    *[]float64
			flags []string
		}{{&all, nil}, {&long, []string{"--min", "1ms"}}} {
			if err == nil {
				err = s.bytes(ctx, c, k.to, k.flags)
			}
		}
	}
	if err = errors.Join(err, s.end()); err != nil {
		return []row{missing(what, reach, err)}
	}
	return []row{{what: what, value: fmt.Sprintf("%.0f bytes of %.0f", median(long), median(all)), ratio: fmt.Sprintf("%.4f", medianRatio(long, all)), reach: reach,
		note: fmt.Sprintf("%d GETs", c.requests)}}
}

// bytes records redis while it answers, with the flags.
func (s *redisServer) bytes(ctx context.Context, c config, to *[]float64, flags []string) error {
	r, err := startRecording(ctx, c, s.pid, flags...)
	if err != nil {
		return err
	}
	_, _, err = s.get(ctx, c.requests, 1)
	sum, stopErr := r.stop()
	*to = append(*to, float64(sum.Bytes))
	return errors.Join(err, stopErr)
}
