package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// summary is the part of `callreel record --json` that is needed here.
type summary struct {
	Functions struct {
		Seen   int `json:"seen"`
		Traced int `json:"traced"`
	} `json:"functions"`
	Events       int64   `json:"events"`
	Marks        int64   `json:"marks"` // not among the events
	Dropped      int64   `json:"dropped"`
	Bytes        int64   `json:"bytes"`
	AttachStopMS float64 `json:"attach_stop_ms"`
	DetachStopMS float64 `json:"detach_stop_ms"`
	Triggers     struct {
		Dumped   int     `json:"dumped"`
		FrozenMS float64 `json:"frozen_ms"`
	} `json:"triggers"`
	Budget *struct {
		Measured      float64 `json:"measured"`
		FunctionsOff  int     `json:"functions_off"`
		CallsShare    float64 `json:"calls_recorded_share"`
		TimeShare     float64 `json:"time_recorded_share"`
		LongestStopMS float64 `json:"longest_stop_ms"`
	} `json:"budget"`
}

// recording is a running `callreel record`.
type recording struct {
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
	reel           string
	ended          chan error
}

// startRecording attaches to pid and returns once recording is on, which the
// reel's existence tells.
func startRecording(ctx context.Context, c config, pid int, args ...string) (*recording, error) {
	r := &recording{reel: filepath.Join(c.dir, "bench.reel"), ended: make(chan error, 1)}
	if err := os.RemoveAll(r.reel); err != nil {
		return nil, err
	}
	args = append([]string{"record", "-p", strconv.Itoa(pid), "--json", "-o", r.reel}, args...)
	if c.ring != "" {
		args = append(args, "--ring", c.ring)
	}
	r.cmd = exec.CommandContext(ctx, c.callreel, args...)
	r.cmd.Cancel = func() error { return r.cmd.Process.Signal(os.Interrupt) } // so that it detaches
	r.cmd.WaitDelay = 10 * time.Second
	r.cmd.Stdout, r.cmd.Stderr = &r.stdout, &r.stderr
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { r.ended <- r.cmd.Wait() }()
	for start := time.Now(); time.Since(start) < time.Minute; time.Sleep(2 * time.Millisecond) {
		if info, err := os.Stat(r.reel); err == nil && info.Size() > 0 {
			return r, nil
		}
		select {
		case err := <-r.ended:
			return nil, r.failed(err)
		default:
		}
	}
	return nil, r.failed(errors.Join(errors.New("no reel after a minute"), r.cmd.Process.Kill()))
}

// stop ends the recording as Ctrl-C does.
func (r *recording) stop() (summary, error) {
	var s summary
	if err := r.cmd.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return s, err
	}
	if err := <-r.ended; err != nil {
		return s, r.failed(err)
	}
	if err := json.Unmarshal(r.stdout.Bytes(), &s); err != nil {
		return s, r.failed(err)
	}
	return s, os.RemoveAll(r.reel)
}

func (r *recording) failed(err error) error {
	if err == nil {
		err = errors.New("ended before it recorded")
	}
	said := strings.TrimSpace(r.stderr.String())
	if said == "" {
		return fmt.Errorf("callreel record: %w", err)
	}
	first, _, _ := strings.Cut(said, "\n")
	return fmt.Errorf("callreel record: %w: %s", err, first)
}

// droppedNote says what share of the events was dropped: dropping is cheaper
// than recording, so a figure with much of it flatters.
func droppedNote(s []summary) string {
	var events, dropped int64
	for _, one := range s {
		events += one.Events
		dropped += one.Dropped
	}
	if events+dropped == 0 {
		return "no events"
	}
	return fmt.Sprintf("%.1f %% dropped", 100*float64(dropped)/float64(events+dropped))
}
