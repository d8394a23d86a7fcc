package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// pastCost is what it costs to keep the past.
type pastCost struct {
	each       []float64 // ns of the recorder's processor time an event
	told, seen []float64 // ms a dump of all takes, by the recorder, and from the command's start to its end
	bytes      []float64 // an event, in dumps
}

// measurePast is the recorder's processor time for each event that it keeps, without a budget and with one that mustn't switch it
// off, in turns, and how long a dump of 64 MB takes. The calls are those of one function: how many there are is known.
func measurePast(ctx context.Context, c config) []row {
	const reach = "≤ 0.1 core"
	const what, whatDump = "armed: keeping 10 million events a second", "armed: a dump of all that 64 MB hold"
	plain, budget := &pastCost{}, &pastCost{}
	t, err := startLeaf(ctx, c)
	if err != nil {
		return []row{missing(what, reach, err)}
	}
	for range c.rounds {
		if err == nil {
			err = errors.Join(t.past(ctx, c, plain), t.past(ctx, c, budget, "--budget", "100%", "--keep-function", "leaf"))
		}
	}
	if err = errors.Join(err, t.end()); err != nil {
		return []row{missing(what, reach, err)}
	}
	cores := func(p *pastCost) string { return fmt.Sprintf("%.3f core", median(p.each)/100) }
	return []row{
		{what: what, value: cores(plain), reach: reach, note: "user+sys of all the recorder's threads"},
		{what: "armed with --budget: the same", value: cores(budget), reach: reach, note: "every call is counted besides"},
		{what: whatDump, value: fmt.Sprintf("%.0f ms", median(plain.told)), reach: "≤ 100 ms",
			note: fmt.Sprintf("%.0f ms from the start of callreel dump to its end; %.2f bytes an event", median(plain.seen), median(plain.bytes))},
	}
}

// past records more calls than 64 MB hold, and dumps them.
func (t *leafTarget) past(ctx context.Context, c config, to *pastCost, flags ...string) error {
	const calls, settle, behind = 30_000_000, 500 * time.Millisecond, 50 * time.Millisecond
	pid := t.cmd.Process.Pid
	r, err := startRecording(ctx, c, pid, append([]string{"-m", "leaf", "-f", "leaf", "-f", "run_limit", "--no-sched",
		"--memory", "64M", "--when", "run_limit > 1h"}, flags...)...)
	if err != nil {
		return err
	}
	time.Sleep(settle) // it gives back what planning took
	before, err := processCPU(r.cmd.Process.Pid)
	if err == nil {
		_, err = t.measure("leaf", calls)
	}
	time.Sleep(behind) // what is full is taken within 10 ms
	after, cpuErr := processCPU(r.cmd.Process.Pid)
	if err = errors.Join(err, cpuErr); err == nil {
		to.each = append(to.each, float64(after-before)/(2*calls))
		err = to.dump(ctx, c, pid)
	}
	_, stopErr := r.stop()
	return errors.Join(err, stopErr)
}

// dump dumps all that is kept.
func (p *pastCost) dump(ctx context.Context, c config, pid int) error {
	begun := time.Now()
	out, err := exec.CommandContext(ctx, c.callreel, "dump", "-p", strconv.Itoa(pid), "--last", "1h", "--json").Output()
	took := time.Since(begun)
	if err != nil {
		return err
	}
	var d struct {
		File   string
		Events float64
		TookMS float64 `json:"took_ms"`
	}
	if err := json.Unmarshal(out, &d); err != nil {
		return fmt.Errorf("callreel dump: %w", err)
	}
	p.told = append(p.told, d.TookMS)
	p.seen = append(p.seen, float64(took)/float64(time.Millisecond))
	info, err := os.Stat(d.File)
	if err == nil {
		p.bytes = append(p.bytes, float64(info.Size())/d.Events)
	}
	return err
}
