package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/callreel/callreel/mark/header"
)

// markModes are what bench/target/marks.c measures. A span has two markers.
var markModes = []string{"bare", "limit", "instant", "one", "four", "span"}

// markCosts are ns a pass by mode, one figure a round.
type markCosts map[string][]float64

// added is the median cost of a mode over the loop without markers.
func (k markCosts) added(mode string, bare markCosts) float64 {
	return median(k[mode]) - median(bare["bare"])
}

// buildMarks compiles bench/target/marks.c. Loops begin at a multiple of 32 bytes, as processors take longer for some branches across one.
func buildMarks(ctx context.Context, c config, name string, flags ...string) (string, error) {
	text, err := io.ReadAll(header.Reader())
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(c.dir, header.Name), text, 0o600); err != nil {
		return "", err
	}
	return buildTarget(ctx, c, name, "gcc", "marks.c", append([]string{"-falign-loops=32", "-I", c.dir}, flags...)...)
}

func measureMarkers(ctx context.Context, c config) []row {
	const off, on = "marker, nobody recording", "marker recorded, no argument"
	path, err := buildMarks(ctx, c, "marks")
	if err != nil {
		return []row{missing(off, "≤ 0.3 ns", err), missing(on, "≤ 12 ns", err)}
	}
	idle, live := markCosts{}, markCosts{}
	var summaries []summary
	var liveErr error
	t, err := converse(ctx, path)
	if err != nil {
		return []row{missing(off, "≤ 0.3 ns", err)}
	}
	for range c.rounds {
		if err = idle.round(t, markModes, 20*c.calls); err != nil {
			break
		}
		if liveErr != nil {
			continue
		}
		var s summary
		if s, liveErr = live.recorded(ctx, c, t, markModes); liveErr == nil {
			summaries = append(summaries, s)
		}
	}
	if err := errors.Join(err, t.end()); err != nil {
		return []row{missing(off, "≤ 0.3 ns", err)}
	}
	limit := idle.added("limit", idle)
	rows := []row{
		{what: "loop without markers", value: ns2(median(idle["bare"])), note: "of which nothing is counted below"},
		{what: off, value: ns2(idle.added("instant", idle)), reach: "≤ 0.3 ns"},
		{what: off + ", four integers", value: ns2(idle.added("four", idle))},
		{what: "span (two markers), nobody recording", value: ns2(idle.added("span", idle))},
		{what: "limit: rdtsc + 16-byte store", value: ns(limit), ratio: "1.00"},
	}
	if liveErr != nil {
		rows = append(rows, missing(on, "≤ 12 ns", liveErr))
	} else {
		none := live.added("instant", live)
		var marks, bytes int64
		for i := range summaries {
			s := &summaries[i]
			marks, bytes = marks+s.Marks, bytes+s.Bytes
			s.Events = s.Marks // for what droppedNote says
		}
		rows = append(rows,
			row{what: on, value: ns(none), ratio: ratio(none, limit), reach: "≤ 12 ns", note: droppedNote(summaries)},
			row{what: "  and an integer", value: ns(live.added("one", live) - none), reach: "≤ 3 ns"},
			row{what: "  and each of four", value: ns((live.added("four", live) - none) / 4), reach: "≤ 3 ns"},
			row{what: "span recorded", value: ns(live.added("span", live)), ratio: ratio(live.added("span", live), 2*limit),
				note: fmt.Sprintf("%.1f bytes a marker", float64(bytes)/float64(max(1, marks)))})
	}
	rows = append(rows, goMarkRows(ctx, c)...)
	return append(rows, markPeerRows(ctx, c, path, idle)...)
}

func ns2(v float64) string { return fmt.Sprintf("%.2f ns", v) }

// round has the program measure modes.
func (k markCosts) round(t *conversation, modes []string, passes int64) error {
	for _, mode := range modes {
		var v float64
		if err := t.ask(fmt.Sprintf("%s %d", mode, passes), &v); err != nil {
			return err
		}
		k[mode] = append(k[mode], v)
	}
	return nil
}

// recorded measures modes while callreel records the markers.
func (k markCosts) recorded(ctx context.Context, c config, t *conversation, modes []string) (s summary, err error) {
	r, err := startRecording(ctx, c, t.pid(), "--markers", header.Provider+":*", "--no-sched")
	if err != nil {
		return s, err
	}
	err = errors.Join(awaitRecorded(t), k.round(t, modes, c.calls/4))
	s, stopErr := r.stop()
	if err = errors.Join(err, stopErr); err == nil && s.Marks+s.Dropped == 0 {
		err = errors.New("no marker was recorded")
	}
	return s, err
}

// awaitRecorded waits until the program itself says that somebody records.
func awaitRecorded(t *conversation) error {
	for start := time.Now(); time.Since(start) < time.Minute; time.Sleep(5 * time.Millisecond) {
		var is int
		if err := t.ask("recording 1", &is); err != nil || is != 0 {
			return err
		}
	}
	return errors.New("after a minute the program's semaphore is still 0")
}

// markPeerRows are those of others that know the same markers, and of libraries that are compiled in.
func markPeerRows(ctx context.Context, c config, path string, idle markCosts) []row {
	var rows []row
	for _, p := range []struct {
		name    string
		measure func() (row, error)
	}{
		{"bpftrace, counting a marker (uprobe)", func() (row, error) { return markBpftrace(ctx, c, path, idle) }},
		{"perf record of a marker (uprobe)", func() (row, error) { return markPerf(ctx, c, path, idle) }},
		{"Spall compiled in, a span", func() (row, error) { return markSpall(ctx, c, idle) }},
		{"Tracy compiled in, a span, nobody connected", func() (row, error) { return markTracy(ctx, c, idle) }},
		{"Tracy compiled in with TRACY_ON_DEMAND, a span, off", func() (row, error) { return markTracy(ctx, c, idle, "-DTRACY_ON_DEMAND") }},
		{"funtrace", func() (row, error) { return row{}, errors.New("its sources are in no registry of packages") }},
	} {
		r, err := p.measure()
		if err != nil {
			r = missing(p.name, "", err)
		}
		r.what = p.name
		rows = append(rows, r)
	}
	return rows
}

// peerPasses is how many markers peers are given that take a system call or a trap for each.
func (c config) peerPasses() int64 { return max(1000, c.calls/10) }

// markBpftrace counts one marker in the kernel.
func markBpftrace(ctx context.Context, c config, path string, idle markCosts) (row, error) {
	if _, err := exec.LookPath("bpftrace"); err != nil {
		return row{}, err
	}
	t, err := converse(ctx, path)
	if err != nil {
		return row{}, err
	}
	program := fmt.Sprintf("usdt:%s:%s:instant__one { @ = count(); }", path, header.Provider)
	cmd := exec.CommandContext(ctx, "bpftrace", "-p", fmt.Sprint(t.pid()), "-e", program)
	said := new(strings.Builder)
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		return row{}, errors.Join(err, t.end())
	}
	k := markCosts{}
	if err = awaitRecorded(t); err == nil {
		for range c.rounds {
			if err = k.round(t, []string{"one"}, c.peerPasses()); err != nil {
				break
			}
		}
	}
	err = errors.Join(err, cmd.Process.Signal(os.Interrupt))
	_ = cmd.Wait() // what it said tells
	if err = errors.Join(err, t.end()); err != nil {
		return row{}, fmt.Errorf("%w: %s", err, said)
	}
	v := median(k["one"]) - median(idle["bare"])
	return row{value: ns(v), note: "no event is kept; off: as above"}, nil
}

// markPerf records one marker with perf, which needs tracefs.
func markPerf(ctx context.Context, c config, path string, idle markCosts) (row, error) {
	const tracing = "/sys/kernel/tracing/uprobe_events"
	if _, err := exec.LookPath("perf"); err != nil {
		return row{}, err
	}
	if _, err := os.Stat(tracing); err != nil {
		return row{}, fmt.Errorf("tracefs is not mounted: %w", err)
	}
	cache, event := "--buildid-dir="+filepath.Join(c.dir, "perf"), "sdt_callreel:instant__one"
	perf := func(args ...string) error {
		if said, err := exec.CommandContext(ctx, "perf", append([]string{cache}, args...)...).CombinedOutput(); err != nil {
			return fmt.Errorf("perf %s: %w: %s", args[0], err, compilerComplaint(string(said)))
		}
		return nil
	}
	if err := errors.Join(perf("buildid-cache", "--add", path), perf("probe", "-q", event)); err != nil {
		return row{}, err
	}
	defer func() { _ = perf("probe", "-q", "-d", event) }() // as far as it can be
	data := filepath.Join(c.dir, "perf.data")
	var figures []float64
	passes, bytes := c.peerPasses(), int64(0)
	for range c.rounds {
		if err := appendFigure(exec.CommandContext(ctx, "perf", cache, "record", "-q", "-o", data, "-e", event, path, "one", fmt.Sprint(passes), "1"), &figures); err != nil {
			return row{}, err
		}
		info, err := os.Stat(data)
		if err != nil {
			return row{}, err
		}
		bytes = info.Size()
	}
	v := median(figures) - median(idle["bare"])
	return row{value: ns(v), note: fmt.Sprintf("%.0f bytes; off: as above", float64(bytes)/float64(passes+passes/20))}, nil
}

// markSpall measures Spall's header, which no registry of packages has: it is given by -spall.
func markSpall(ctx context.Context, c config, idle markCosts) (row, error) {
	if c.spall == "" {
		return row{}, errors.New("no registry of packages has it: -spall gives the folder with its spall.h")
	}
	path, err := buildMarks(ctx, c, "marks-spall", "-DSPALL", "-I", c.spall)
	if err != nil {
		return row{}, err
	}
	out := filepath.Join(c.dir, "marks.spall")
	var figures []float64
	for range c.rounds {
		cmd := exec.CommandContext(ctx, path, "span", fmt.Sprint(c.calls), "1")
		cmd.Env = append(os.Environ(), "SPALL_OUT="+out)
		if err := appendFigure(cmd, &figures); err != nil {
			return row{}, err
		}
	}
	info, err := os.Stat(out)
	if err != nil {
		return row{}, err
	}
	v := median(figures) - median(idle["bare"])
	return row{value: ns(v), note: fmt.Sprintf("%.0f bytes a span; it can't be switched off", float64(info.Size())/float64(c.calls+c.calls/20+1))}, os.Remove(out)
}

// markTracy measures Tracy's client, which is given by -tracy. Without TRACY_ON_DEMAND it keeps all in memory until somebody connects.
func markTracy(ctx context.Context, c config, idle markCosts, flags ...string) (row, error) {
	if c.tracy == "" {
		return row{}, errors.New("no registry of packages has it: -tracy gives the folder with TracyClient.cpp and tracy/TracyC.h")
	}
	object := filepath.Join(c.dir, "tracy.o")
	args := append([]string{"-O2", "-std=c++17", "-DTRACY_ENABLE", "-c", "-o", object, filepath.Join(c.tracy, "TracyClient.cpp")}, flags...)
	if said, err := exec.CommandContext(ctx, "g++", args...).CombinedOutput(); err != nil {
		return row{}, fmt.Errorf("g++: %w: %s", err, compilerComplaint(string(said)))
	}
	path, err := buildMarks(ctx, c, "marks-tracy", append([]string{"-DTRACY", "-DTRACY_ENABLE", "-I", c.tracy, object, "-lstdc++", "-lpthread", "-ldl"}, flags...)...)
	if err != nil {
		return row{}, err
	}
	var figures []float64
	for range c.rounds {
		if err := appendFigure(exec.CommandContext(ctx, path, "span", fmt.Sprint(c.calls), "1"), &figures); err != nil {
			return row{}, err
		}
	}
	v := median(figures) - median(idle["bare"])
	return row{value: ns(v)}, nil
}
