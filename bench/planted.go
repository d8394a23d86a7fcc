package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/callreel/callreel/reel"
)

// plantedEvery is how many requests there are for each that is slow.
const plantedEvery = 10_000

// plantedCall is a slow call, from its log: between those ticks it waited.
type plantedCall struct {
	function string
	from, to uint64
}

// measurePlanted records a program with a budget, one in so many of whose requests is slow somewhere, and looks how many of these calls are in
// the reel, below all their callers.
func measurePlanted(ctx context.Context, c config) []row {
	const reach = "≥ 95 %"
	what := fmt.Sprintf("budget 2%%: slow calls recorded, of one in %d requests", plantedEvery)
	there, below, all, err := plantedRun(ctx, c)
	if err != nil {
		return []row{missing(what, reach, err)}
	}
	return []row{{what: what, value: share(there, all), reach: reach, note: fmt.Sprintf("%d of %d; of %s the request or a function below it that was open", there, all, share(below, all))}}
}

func plantedRun(ctx context.Context, c config) (there, below, all int, err error) {
	path, err := buildTarget(ctx, c, "planted", "gcc", "planted.c")
	if err != nil {
		return 0, 0, 0, err
	}
	log := filepath.Join(c.dir, "planted.log")
	cmd := exec.CommandContext(ctx, path, fmt.Sprint(plantedEvery), log)
	if err := cmd.Start(); err != nil {
		return 0, 0, 0, err
	}
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
	kept := filepath.Join(c.dir, "planted.reel")
	record := exec.CommandContext(ctx, c.callreel, "record", "-p", fmt.Sprint(cmd.Process.Pid), "-m", "planted", "--budget", "2%", "-d", "15s", "--force", "-o", kept)
	if said, err := record.CombinedOutput(); err != nil {
		return 0, 0, 0, fmt.Errorf("callreel record: %w: %s", err, firstLine(errors.New(string(said))))
	}
	calls, err := plantedCalls(log)
	if err != nil {
		return 0, 0, 0, err
	}
	f, err := reel.Open(kept)
	if err != nil {
		return 0, 0, 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	open := openDuring(f, calls)
	clock := f.Header().Clock
	from, to := clock.BaseTick+clock.TicksPerSecond*uint64(budgetSettles/time.Second), uint64(0)
	for _, t := range f.Threads() {
		to = max(to, f.EndOf(&t))
	}
	for i, p := range calls {
		if p.from < from || p.to > to {
			continue
		}
		all++
		if len(open[i]) > 0 {
			below++
		}
		if open[i][p.function] && open[i]["handle_request"] {
			there++
		}
	}
	if all == 0 {
		err = errors.New("no request was slow")
	}
	return there, below, all, err
}

func plantedCalls(log string) (list []plantedCall, err error) {
	file, err := os.Open(log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var p plantedCall
		if _, err := fmt.Sscanf(lines.Text(), "%s %d %d", &p.function, &p.from, &p.to); err != nil {
			return nil, fmt.Errorf("%s: %w", log, err)
		}
		list = append(list, p)
	}
	return list, nil
}

// openDuring are the functions of which a call was open all the time that each of calls waited.
func openDuring(f *reel.File, calls []plantedCall) []map[string]bool {
	open := make([]map[string]bool, len(calls))
	for i := range open {
		open[i] = map[string]bool{}
	}
	names := map[uint32]string{}
	for id, fn := range f.Functions {
		names[id] = strings.TrimPrefix(fn.Name, "planted!")
	}
	for _, t := range f.Threads() {
		p := reel.Pairer{OnCall: func(call *reel.Call) {
			for i := range calls {
				if call.Start <= calls[i].from && call.End >= calls[i].to {
					open[i][names[call.Func]] = true
				}
			}
		}}
		f.ReadThread(t.Key, func(events []reel.Event, _ bool) bool {
			p.Push(events)
			return true
		})
		p.Finish(f.EndOf(&t))
	}
	return open
}
