package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	sampleRate = 999
	sampleTime = 5 * time.Second
)

// sampleRun is what one profile took.
type sampleRun struct {
	samples float64
	cpu     float64 // seconds, user and system, all of the profiler's work
	bytes   float64 // of the file
	note    string
}

// A sampleContender is a profiler.
type sampleContender struct {
	name string
	run  func(ctx context.Context, c config, pid int) (sampleRun, error)

	cpu, bytes []float64 // a sample, one figure a round
	share      []float64 // of a processor
	note       string    // of the last round
	err        error
}

// measureSample samples a C++ program that is at work some 60 frames deep. What is compared is a
// sample's share: how much time the program gets, and how many samples there are, may differ.
func measureSample(ctx context.Context, c config) []row {
	const name = "sample at 999 Hz: "
	all := []*sampleContender{
		{name: "callreel", run: sampleByCallreel},
		{name: "perf record --call-graph dwarf", run: sampleByPerf},
	}
	if err := sampleRounds(ctx, c, all); err != nil {
		return []row{missing(name+"CPU", "≤ 0.5 × perf", err), missing(name+"bytes", "≤ 0.1 × perf", err)}
	}
	var cpu, size []row
	for k, one := range all {
		ofCPU, ofSize := row{what: name + "CPU a sample, " + one.name}, row{what: name + "bytes a sample, " + one.name}
		if k == 0 {
			ofCPU.reach, ofSize.reach = "≤ 0.5 × perf", "≤ 0.1 × perf"
		}
		if one.err != nil {
			cpu, size = append(cpu, missing(ofCPU.what, ofCPU.reach, one.err)), append(size, missing(ofSize.what, ofSize.reach, one.err))
			continue
		}
		ofCPU.value = fmt.Sprintf("%.1f µs", 1e6*median(one.cpu))
		ofCPU.note = fmt.Sprintf("%.1f %% of a processor; %s", 100*median(one.share), one.note)
		ofSize.value = fmt.Sprintf("%.1f", median(one.bytes))
		if perf := all[1]; perf.err == nil {
			ofCPU.ratio = ratioText(medianRatio(one.cpu, perf.cpu))
			ofSize.ratio = fmt.Sprintf("%.4f", medianRatio(one.bytes, perf.bytes))
		}
		cpu, size = append(cpu, ofCPU), append(size, ofSize)
	}
	return append(cpu, size...)
}

func sampleRounds(ctx context.Context, c config, all []*sampleContender) (err error) {
	back, _ := comeFirst() // else there are fewer samples, which the table shows
	defer back()
	path, err := buildTarget(ctx, c, "deep-work", "g++", "deep.cc", "-fomit-frame-pointer")
	if err != nil {
		return err
	}
	target, err := converse(ctx, path, "work")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.kill()) }()
	for range c.rounds {
		for _, one := range all {
			if one.err == nil {
				one.err = one.round(ctx, c, target.pid())
			}
		}
	}
	return nil
}

func (s *sampleContender) round(ctx context.Context, c config, pid int) error {
	r, err := s.run(ctx, c, pid)
	if err != nil {
		return err
	}
	if r.samples == 0 {
		return errors.New("it took no samples")
	}
	s.cpu, s.bytes = append(s.cpu, r.cpu/r.samples), append(s.bytes, r.bytes/r.samples)
	s.share, s.note = append(s.share, r.cpu/sampleTime.Seconds()), r.note
	return nil
}

func sampleByCallreel(ctx context.Context, c config, pid int) (r sampleRun, err error) {
	file := filepath.Join(c.dir, "sample.pb.gz")
	u, stdout, _, err := usedBy(c.dir, exec.CommandContext(ctx, c.callreel, "sample", "-p", strconv.Itoa(pid),
		"-r", strconv.Itoa(sampleRate), "-d", sampleTime.String(), "--json", "-f", "-o", file))
	if err != nil {
		return r, err
	}
	var summary struct {
		Samples    float64 `json:"samples"`
		Lost       int     `json:"lost"`
		Incomplete int     `json:"incomplete"`
		Mode       string  `json:"mode"`
	}
	if err := json.Unmarshal([]byte(stdout), &summary); err != nil {
		return r, fmt.Errorf("callreel sample: %w", err)
	}
	if summary.Mode != "cpu" {
		return r, errors.New("callreel sample: perf events are not permitted here")
	}
	return sampleRun{
		samples: summary.Samples, cpu: u.CPU, bytes: bytesOf(file),
		note: fmt.Sprintf("%.0f samples, walked and named, %d not whole, %d lost", summary.Samples, summary.Incomplete, summary.Lost),
	}, nil
}

// capturedSamples is what perf says at its end.
var capturedSamples = regexp.MustCompile(`\((\d+) samples\)`)

// sampleByPerf uses the same clock, which virtual machines have, too.
func sampleByPerf(ctx context.Context, c config, pid int) (r sampleRun, err error) {
	file := filepath.Join(c.dir, "perf.data")
	u, _, stderr, err := usedBy(c.dir, exec.CommandContext(ctx, "perf", "record", "-e", "cpu-clock", "-F", strconv.Itoa(sampleRate),
		"--call-graph", "dwarf", "-p", strconv.Itoa(pid), "-o", file, "--", "sleep", fmt.Sprint(sampleTime.Seconds())))
	if err != nil {
		return r, err
	}
	r = sampleRun{cpu: u.CPU, bytes: bytesOf(file), note: "neither walked nor named yet"}
	said := capturedSamples.FindStringSubmatch(stderr)
	if said == nil {
		return r, fmt.Errorf("perf record does not say how many samples it took: %s", strings.TrimSpace(stderr))
	}
	r.samples, _ = strconv.ParseFloat(said[1], 64) // digits
	r.note = fmt.Sprintf("%.0f samples, %s", r.samples, r.note)
	return r, os.Remove(file)
}

// usedBy runs a command and returns what it used and said. Other exit codes than 0 that mean
// success are named.
func usedBy(dir string, cmd *exec.Cmd, success ...int) (u used, stdout, stderr string, err error) {
	file, name := filepath.Join(dir, "used.json"), filepath.Base(cmd.Path)
	if cmd.Err != nil {
		return u, "", "", cmd.Err
	}
	if err := measured(cmd, file); err != nil {
		return u, "", "", err
	}
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	runErr := cmd.Run()
	if u, err = readUsed(file); err == nil && (runErr == nil || slices.Contains(success, cmd.ProcessState.ExitCode())) {
		return u, out.String(), errOut.String(), nil
	}
	said, _, _ := strings.Cut(strings.TrimSpace(errOut.String()), "\n")
	return u, "", "", fmt.Errorf("%s: %w: %s", name, cmp.Or(runErr, err), said)
}
