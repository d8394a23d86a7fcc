package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// reachTop is what top may cost, against record.
const reachTop = "< 1.0 × record"

// measureTop measures top beside record: its own processor time for each event, and what a server under load does meanwhile. Its tables
// come twice a second, as often as it draws its page.
func measureTop(ctx context.Context, c config) []row {
	return append(topLeafRows(ctx, c), topRedisRows(ctx, c)...)
}

// startTop attaches to pid and returns when the first table is there.
func startTop(ctx context.Context, c config, pid int, args ...string) (*topRun, error) {
	w := &topRun{cmd: exec.CommandContext(ctx, c.callreel, append([]string{"top", "-p", strconv.Itoa(pid), "--interval", "500ms"}, args...)...)}
	w.cmd.Cancel = func() error { return w.cmd.Process.Signal(os.Interrupt) } // so that it detaches
	w.cmd.WaitDelay = 10 * time.Second
	w.cmd.Stderr = os.Stderr
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(out)
	_, err = lines.ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("callreel top: no table: %w", err), w.cmd.Wait())
	}
	w.read = make(chan error, 1)
	go func() { w.read <- w.totals(lines) }()
	return w, nil
}

// topRun is a running `callreel top`.
type topRun struct {
	cmd            *exec.Cmd
	read           chan error
	calls, dropped float64 // of all tables
}

// totals adds up what the last lines of tables say.
func (w *topRun) totals(r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var calls, noun, in, span, unit, dropped string
		text := strings.ReplaceAll(lines.Text(), ",", "")
		if n, _ := fmt.Sscan(text, &calls, &noun, &in, &span, &unit, &dropped); n < 6 || in != "in" {
			continue
		}
		made, _ := strconv.ParseFloat(calls, 64)
		lost, _ := strconv.ParseFloat(dropped, 64)
		w.calls, w.dropped = w.calls+made, w.dropped+lost
	}
	return lines.Err()
}

func (w *topRun) stop() error {
	if err := w.cmd.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	return errors.Join(<-w.read, w.cmd.Wait())
}

// during measures a process's time on processors while do is done.
func during(pid int, do func() error) (seconds float64, err error) {
	before, err := processCPU(pid)
	if err != nil {
		return 0, err
	}
	if err := do(); err != nil {
		return 0, err
	}
	after, err := processCPU(pid)
	return (after - before).Seconds(), err
}

// topLeafRows lets one thread call as often as it can.
func topLeafRows(ctx context.Context, c config) (rows []row) {
	const what = "top's own CPU a million calls, one thread that does nothing else"
	t, err := startLeaf(ctx, c)
	if err != nil {
		return []row{missing(what, reachTop, err)}
	}
	defer func() {
		if err := t.end(); err != nil {
			rows = []row{missing(what, reachTop, err)}
		}
	}()
	calls := 50 * c.calls
	var record, top, took []float64
	var summaries []summary
	var made, dropped float64
	for range c.rounds {
		rec, err := startRecording(ctx, c, t.pid(), "-m", "leaf", "-f", "leaf")
		if err != nil {
			return []row{missing(what, reachTop, err)}
		}
		seconds, err := during(rec.cmd.Process.Pid, func() error { _, err := t.measure("leaf", calls); return err })
		s, stopErr := rec.stop()
		if err := errors.Join(err, stopErr); err != nil {
			return []row{missing(what, reachTop, err)}
		}
		summaries = append(summaries, s)
		record = append(record, seconds/(float64(s.Events)/2)*1e6)

		w, err := startTop(ctx, c, t.pid(), "-m", "leaf", "-f", "leaf")
		if err != nil {
			return []row{missing(what, reachTop, err)}
		}
		one := 0.0
		seconds, err = during(w.cmd.Process.Pid, func() (err error) { one, err = t.measure("leaf", calls); return err })
		if err := errors.Join(err, w.stop()); err != nil {
			return []row{missing(what, reachTop, err)}
		}
		// What of its calls came after the last whole table isn't told: all that weren't dropped were counted.
		top = append(top, seconds/max(float64(calls)*1.05-w.dropped, 1)*1e6)
		took = append(took, one)
		made, dropped = made+float64(calls), dropped+w.dropped
	}
	return []row{{
		what: what, value: fmt.Sprintf("%.1f ms", median(top)*1e3), ratio: fmt.Sprintf("%.2f", medianRatio(top, record)), reach: reachTop,
		note: fmt.Sprintf("record %.1f ms; %.0f M calls/s, %.1f %% dropped (record: %s)", median(record)*1e3, 1e3/median(took), 100*dropped/made, droppedNote(summaries)),
	}}
}

// topRedisRows has redis answer under record and under top.
func topRedisRows(ctx context.Context, c config) []row {
	const what, whatCPU = "redis GET, under top", "top's own CPU meanwhile, a request"
	s, err := startRedis(ctx, c)
	if err != nil {
		return []row{missing(what, "", err), missing(whatCPU, reachTop, err)}
	}
	var plain, record, top throughput
	var recordCPU, topCPU []float64
	var dropped float64
	for range c.rounds {
		plain.round(ctx, s, c.requests, 1)
		err = errors.Join(plain.err, topRedisRound(ctx, c, s, &record, &recordCPU, &top, &topCPU, &dropped))
		if err != nil {
			break
		}
	}
	if err = errors.Join(err, s.end()); err != nil {
		return []row{missing(what, "", err), missing(whatCPU, reachTop, err)}
	}
	return []row{
		{
			what: what, value: perSecond(median(top.perSecond)), ratio: fmt.Sprintf("%.2f", medianRatio(top.perSecond, record.perSecond)), reach: "≥ 1.0 × record",
			note: fmt.Sprintf("against record; untraced × %.2f, record × %.2f; %.0f dropped", medianRatio(top.perSecond, plain.perSecond), medianRatio(record.perSecond, plain.perSecond), dropped),
		},
		{
			what: whatCPU, value: fmt.Sprintf("%.2f µs", median(topCPU)), ratio: fmt.Sprintf("%.2f", medianRatio(topCPU, recordCPU)), reach: reachTop,
			note: fmt.Sprintf("record %.2f µs", median(recordCPU)),
		},
	}
}

func topRedisRound(ctx context.Context, c config, s *redisServer, record *throughput, recordCPU *[]float64, top *throughput, topCPU *[]float64, dropped *float64) error {
	load := func(t *throughput) func() error {
		return func() error { t.round(ctx, s, c.requests, 1); return t.err }
	}
	rec, err := startRecording(ctx, c, s.pid)
	if err != nil {
		return err
	}
	seconds, err := during(rec.cmd.Process.Pid, load(record))
	_, stopErr := rec.stop()
	if err := errors.Join(err, stopErr); err != nil {
		return err
	}
	*recordCPU = append(*recordCPU, seconds/float64(c.requests)*1e6)
	w, err := startTop(ctx, c, s.pid)
	if err != nil {
		return err
	}
	seconds, err = during(w.cmd.Process.Pid, load(top))
	err = errors.Join(err, w.stop())
	*topCPU = append(*topCPU, seconds/float64(c.requests)*1e6)
	*dropped += w.dropped
	return err
}
