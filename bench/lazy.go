package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// What the lazy mode is to reach.
const (
	reachSteady = "1.00 ± 0.02"
	reachFirst  = "≤ 30 µs"
)

// measureLazy measures probes that are made on the first call: what they cost later, what the first call costs, and how soon a program
// with very many functions is recorded.
func measureLazy(ctx context.Context, c config) []row {
	var rows []row
	for _, m := range []struct {
		name string
		rows func() []row
	}{
		{"steady", func() []row { return []row{steadyRow(ctx, c)} }},
		{"first", func() []row { return []row{firstCallRow(ctx, c, 0), firstCallRow(ctx, c, 64)} }},
		{"node", func() []row { return manyNode(ctx, c) }},
		{"million", func() []row { return manyMillion(ctx, c) }},
	} {
		if strings.Contains(m.name, c.input) && ctx.Err() == nil {
			rows = append(rows, m.rows()...)
		}
	}
	return rows
}

// steadyRow compares calls of a function that has been called before with those of one whose probe was made at once.
func steadyRow(ctx context.Context, c config) (r row) {
	r = row{what: "traced call, probe made on the first call : at once", reach: reachSteady}
	t, err := startLeaf(ctx, c)
	if err != nil {
		return missing(r.what, r.reach, err)
	}
	defer func() {
		if err := t.end(); err != nil {
			r = missing(r.what, r.reach, err)
		}
	}()
	var took [2][]float64
	for range c.rounds {
		for i, mode := range []string{"--eager", "--lazy"} {
			rec, err := startRecording(ctx, c, t.pid(), "-m", "leaf", "-f", "leaf", mode)
			if err != nil {
				return missing(r.what, r.reach, err)
			}
			_, firstErr := t.measure("leaf", 1000)
			one, err := t.measure("leaf", c.calls)
			_, stopErr := rec.stop()
			if err := errors.Join(firstErr, err, stopErr); err != nil {
				return missing(r.what, r.reach, err)
			}
			took[i] = append(took[i], one)
		}
	}
	eager, lazy := median(took[0]), median(took[1])
	r.value, r.ratio = ns(lazy), ratio(lazy, eager)
	r.note = "at once: " + ns(eager)
	return r
}

// firstCallRow measures the first calls of functions, with some other threads in the process.
func firstCallRow(ctx context.Context, c config, threads int) row {
	r := row{what: fmt.Sprintf("first call of a function, with %d other threads", threads), reach: reachFirst}
	path, err := buildTarget(ctx, c, "firsts", "gcc", "firsts.c", "-pthread")
	if err != nil {
		return missing(r.what, r.reach, err)
	}
	var all, later []float64
	for range c.rounds {
		first, bare, err := firstCalls(ctx, c, path, threads)
		if err != nil {
			return missing(r.what, r.reach, err)
		}
		all, later = append(all, first), append(later, bare)
	}
	r.value = fmt.Sprintf("%.2f µs", median(all)/1000)
	r.note = fmt.Sprintf("untraced, with the clock's own reading: %.2f µs; medians of 1000 calls", median(later)/1000)
	return r
}

// firstCalls returns the median of the first calls of 1000 functions, while recording and without.
func firstCalls(ctx context.Context, c config, path string, threads int) (first, bare float64, err error) {
	t, err := converse(ctx, path, strconv.Itoa(threads))
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, t.end()) }()
	if err := t.ask("1000", &bare); err != nil {
		return 0, 0, err
	}
	rec, err := startRecording(ctx, c, t.pid(), "-m", "firsts", "-f", "first_*", "--lazy")
	if err != nil {
		return 0, 0, err
	}
	err = t.ask("1000", &first)
	s, stopErr := rec.stop()
	if err = errors.Join(err, stopErr); err == nil && s.Events < 2000 {
		err = fmt.Errorf("%d events of 1000 calls", s.Events)
	}
	return first, bare, err
}

// busyNode keeps node at work until it is killed.
const busyNode = `
console.log("ready");
setInterval(() => {
  const table = {};
  for (let i = 0; i < 300; i++) table[(i * 2654435761 % 2**32).toString(16)] = i;
  const text = JSON.stringify(table);
  if (JSON.stringify(JSON.parse(text)) !== text) throw new Error("wrong");
  text.match(/[0-9a-f]{4,}/g);
}, 1);
`

func manyNode(ctx context.Context, c config) []row {
	const name, readyIn, stoppedFor = "node, all functions", time.Second, 40 * time.Millisecond
	path, err := exec.LookPath("node")
	if err != nil {
		return many(name, readyIn, stoppedFor, nil, err)
	}
	attached, err := attachRounds(ctx, c, nil, path, "-e", busyNode)
	return many(name, readyIn, stoppedFor, attached, err)
}

func manyMillion(ctx context.Context, c config) []row {
	const name, readyIn, stoppedFor = "an image of 1,000,000 functions", 2 * time.Second, 200 * time.Millisecond
	path, err := buildMillion(ctx, c, 1_000_000)
	if err != nil {
		return many(name, readyIn, stoppedFor, nil, err)
	}
	attached, err := attachRounds(ctx, c, []string{"-m", "million"}, path)
	return many(name, readyIn, stoppedFor, attached, err)
}

// attachedOnce is one attaching.
type attachedOnce struct {
	ready  time.Duration // from the command's start until it records
	rss    int64         // callreel's resident memory then, bytes
	stands summary
}

// attachRounds attaches to a program that says a line when it is at work.
func attachRounds(ctx context.Context, c config, flags []string, path string, args ...string) (all []attachedOnce, err error) {
	t, err := converse(ctx, path, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.kill()) }()
	if _, err := t.hear(); err != nil {
		return nil, err
	}
	for range c.rounds {
		var one attachedOnce
		start := time.Now()
		r, err := startRecording(ctx, c, t.pid(), append([]string{"--lazy"}, flags...)...)
		if err != nil {
			return all, err
		}
		one.ready = time.Since(start)
		var rssErr, stopErr error
		one.rss, rssErr = residentOf(r.cmd.Process.Pid)
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
		}
		one.stands, stopErr = r.stop()
		if err := errors.Join(rssErr, stopErr); err != nil {
			return all, err
		}
		all = append(all, one)
	}
	return all, nil
}

// residentOf reads how much of a process is in memory, in bytes.
func residentOf(pid int) (int64, error) {
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kb << 10, err
		}
	}
	return 0, fmt.Errorf("process %d: no VmRSS in its status", pid)
}

// many tells of attaching to a program with very many functions.
func many(name string, readyIn, stoppedFor time.Duration, all []attachedOnce, err error) []row {
	ready := row{what: "recording after the command, " + name, reach: "≤ " + readyIn.String()}
	stopped := row{what: "stopped at attach, " + name, reach: "≤ " + stoppedFor.String()}
	if err == nil && len(all) == 0 {
		err = errors.New("no recording")
	}
	if err != nil {
		return []row{missing(ready.what, ready.reach, err), missing(stopped.what, stopped.reach, err)}
	}
	var readyMS, stopMS, rss []float64
	for _, one := range all {
		readyMS = append(readyMS, float64(one.ready.Microseconds())/1000)
		stopMS = append(stopMS, one.stands.AttachStopMS)
		rss = append(rss, float64(one.rss)/(1<<20))
	}
	last := all[len(all)-1].stands.Functions
	ready.value = fmt.Sprintf("%.0f ms", median(readyMS))
	ready.note = fmt.Sprintf("%d functions traced of %d; callreel has %.0f MiB then", last.Traced, last.Seen, median(rss))
	stopped.value = fmt.Sprintf("%.1f ms", median(stopMS))
	return []row{ready, stopped}
}
