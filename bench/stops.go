package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// busyPython keeps CPython at work until it is killed.
const busyPython = `
import hashlib, json, re
print("ready", flush=True)
n = 0
while True:
    n += 1
    table = {"%x" % (i * 2654435761 % 2**32): i for i in range(300)}
    text = json.dumps(table, sort_keys=True)
    assert json.loads(text) == table
    re.findall("[0-9a-f]{4,}", text)
    hashlib.sha256(text.encode()).hexdigest()
    sorted(table, key=lambda k: k[::-1])
`

// measureStops attaches to real programs with all their libraries, and reports
// how long they were stopped and how large the reel became.
func measureStops(ctx context.Context, c config) []row {
	rows := stopsOfRedis(ctx, c)
	return append(rows, stopsOfPython(ctx, c)...)
}

func stopsOfRedis(ctx context.Context, c config) []row {
	const name = "redis-server and its libraries"
	s, err := startRedis(ctx, c)
	if err != nil {
		return stopRows(name, nil, err)
	}
	var all []summary
	for range c.rounds {
		r, startErr := startRecording(ctx, c, s.pid)
		if err = startErr; err != nil {
			break
		}
		_, _, getErr := s.get(ctx, c.requests/4, 1)
		one, stopErr := r.stop()
		if err = errors.Join(getErr, stopErr); err != nil {
			break
		}
		all = append(all, one)
	}
	return stopRows(name, all, errors.Join(err, s.end()))
}

func stopsOfPython(ctx context.Context, c config) []row {
	const name = "python3 and its libraries"
	all, err := pythonRounds(ctx, c)
	return stopRows(name, all, err)
}

func pythonRounds(ctx context.Context, c config) (all []summary, err error) {
	script := filepath.Join(c.dir, "busy.py")
	if err := os.WriteFile(script, []byte(busyPython), 0o600); err != nil {
		return nil, err
	}
	// The distribution's: what a version manager puts before it is a shell script.
	busy, err := converse(ctx, "/usr/bin/python3", script)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, busy.kill()) }()
	if _, err := busy.hear(); err != nil {
		return nil, err
	}
	for range c.rounds {
		r, err := startRecording(ctx, c, busy.pid())
		if err != nil {
			return all, err
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
		}
		one, err := r.stop()
		if err != nil {
			return all, err
		}
		all = append(all, one)
	}
	return all, nil
}

func stopRows(name string, all []summary, err error) []row {
	const reachAttach, reachDetach, reachBytes = "≤ 30 ms for 10,000 functions", "≤ 15 ms", "≤ 3"
	attach, detach, bytes := "stopped at attach, "+name, "stopped at detach, "+name, "bytes an event, "+name
	if err == nil && len(all) == 0 {
		err = errors.New("no recording")
	}
	if err != nil {
		return []row{missing(attach, reachAttach, err), missing(detach, reachDetach, err), missing(bytes, reachBytes, err)}
	}
	var attachMS, detachMS, perEvent []float64
	for _, s := range all {
		attachMS, detachMS = append(attachMS, s.AttachStopMS), append(detachMS, s.DetachStopMS)
		if s.Events > 0 {
			perEvent = append(perEvent, float64(s.Bytes)/float64(s.Events))
		}
	}
	last := all[len(all)-1].Functions
	rows := []row{
		{what: attach, value: fmt.Sprintf("%.1f ms", median(attachMS)), reach: reachAttach,
			note: fmt.Sprintf("%d functions traced of %d", last.Traced, last.Seen)},
		{what: detach, value: fmt.Sprintf("%.1f ms", median(detachMS)), reach: reachDetach},
	}
	if len(perEvent) == 0 {
		return append(rows, missing(bytes, reachBytes, errors.New("no events")))
	}
	return append(rows, row{what: bytes, value: fmt.Sprintf("%.2f", median(perEvent)), reach: reachBytes, note: droppedNote(all)})
}
