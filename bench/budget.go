package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/callreel/callreel/bench/programs"
)

// budgets are those that are measured, and what they may really cost. The first is none at all, with nobody recording: what is measured then is
// the machine.
var budgets = []struct {
	share string
	reach string
}{{"", ""}, {"2%", "≤ 1.04"}, {"5%", "≤ 1.06"}, {"10%", "≤ 1.11"}}

const (
	budgetSettles = time.Second             // from attaching on, in which a budget comes to be kept
	budgetAlone   = 700 * time.Millisecond  // of work without a recorder, before and after
	budgetWork    = 1500 * time.Millisecond // of work with one
)

// work does a portion of a program's work.
type work struct {
	pid     int
	portion func() error
	end     func() error
}

// measureBudget compares programs at work with and without a recorder that has a budget: processor time for each portion of work, how many
// portions there are in a second, and the 99th percentile of how long one takes.
func measureBudget(ctx context.Context, c config) (rows []row) {
	back, err := comeFirst() // so that what others do on the machine isn't in the figures
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: not before others: %v\n", err)
	}
	defer back()
	for _, pipeline := range []int{1, 16} {
		what := fmt.Sprintf("redis GET, %d in a pipeline", pipeline)
		if !strings.Contains(what, c.input) {
			continue
		}
		rows = append(rows, budgetRows(ctx, c, what, func() (*work, error) { return redisWork(ctx, c, pipeline) })...)
	}
	for _, p := range programs.All() {
		if !slices.Contains([]string{"redis", "nginx", "postgres", "python3", "node", "memcached", "Go"}, p.Name) || !strings.Contains(p.Name, c.input) || ctx.Err() != nil {
			continue
		}
		rows = append(rows, budgetRows(ctx, c, p.Name, func() (*work, error) {
			i, err := p.Start(ctx, c.dir)
			if err != nil {
				return nil, err
			}
			return &work{i.PID, func() error { _, err := i.Work(); return err }, i.End}, nil
		})...)
	}
	if strings.Contains("planted", c.input) {
		rows = append(rows, measurePlanted(ctx, c)...)
	}
	return rows
}

func redisWork(ctx context.Context, c config, pipeline int) (*work, error) {
	s, err := startRedis(ctx, c)
	if err != nil {
		return nil, err
	}
	return &work{s.pid, func() error { _, _, err := s.get(ctx, 5000*pipeline, pipeline); return err }, s.end}, nil
}

// worked is what some time of work came to.
type worked struct{ cpu, took, p99 float64 } // seconds for a portion

// during lets a program work for some time.
func (w *work) during(d time.Duration) (f worked, err error) {
	before, err := processCPU(w.pid)
	if err != nil {
		return f, err
	}
	var times []float64
	for began := time.Now(); time.Since(began) < d; {
		at := time.Now()
		if err := w.portion(); err != nil {
			return f, err
		}
		times = append(times, time.Since(at).Seconds())
		f.took += times[len(times)-1]
	}
	after, err := processCPU(w.pid)
	n := float64(len(times))
	slices.Sort(times)
	return worked{(after - before).Seconds() / n, f.took / n, times[min(len(times)-1, len(times)*99/100)]}, err
}

// budgetRows measures one program.
func budgetRows(ctx context.Context, c config, what string, start func() (*work, error)) (rows []row) {
	w, err := start()
	if err != nil {
		return []row{missing("budget: "+what, "", err)}
	}
	for _, b := range budgets {
		rows = append(rows, w.within(ctx, c, what, b.share, b.reach))
	}
	if err := w.end(); err != nil {
		rows = append(rows, missing("budget: "+what+" in the end", "", err))
	}
	return rows
}

// within measures one budget: each time with a recorder is held against those before and after it.
func (w *work) within(ctx context.Context, c config, what, share, reach string) row {
	name := "budget " + share
	if share == "" {
		name = "nobody records"
	}
	what = fmt.Sprintf("%s: %s, processor time of its work", name, what)
	var cpu, took, p99 []float64
	var last summary
	for range c.rounds {
		before, err := w.during(budgetAlone)
		if err != nil {
			return missing(what, reach, err)
		}
		on, s, err := w.recorded(ctx, c, share)
		if err != nil {
			return missing(what, reach, err)
		}
		last = s
		after, err := w.during(budgetAlone)
		if err != nil {
			return missing(what, reach, err)
		}
		cpu = append(cpu, 2*on.cpu/(before.cpu+after.cpu))
		took = append(took, 2*on.took/(before.took+after.took))
		p99 = append(p99, 2*on.p99/(before.p99+after.p99))
	}
	return budgetRow(what, reach, cpu, took, p99, last)
}

// recorded lets a program work while a recorder with a budget is at it, from budgetSettles after it has begun on. Without a budget there is none.
func (w *work) recorded(ctx context.Context, c config, share string) (on worked, s summary, err error) {
	if share != "" {
		r, e := startRecording(ctx, c, w.pid, "--budget", share)
		if e != nil {
			return on, s, e
		}
		defer func() {
			var stopErr error
			s, stopErr = r.stop()
			err = errors.Join(err, stopErr)
		}()
	}
	if _, err = w.during(budgetSettles); err != nil {
		return on, s, err
	}
	on, err = w.during(budgetWork)
	return on, s, err
}

// budgetRow is the row of ratios with and without a recorder.
func budgetRow(what, reach string, cpu, took, p99 []float64, last summary) row {
	slices.Sort(cpu)
	note := fmt.Sprintf("%.2f to %.2f; of the time %.2f, of its p99 %.2f", cpu[len(cpu)/4], cpu[len(cpu)-1-len(cpu)/4], median(took), median(p99))
	if b := last.Budget; b != nil {
		note += fmt.Sprintf("; measured by itself %.1f %%, %.1f %% of calls, %.0f %% of time, longest stop %.1f ms", 100*b.Measured, 100*b.CallsShare, 100*b.TimeShare, b.LongestStopMS)
	}
	return row{what: what, value: fmt.Sprintf("%.3f", median(cpu)), reach: reach, note: note}
}
