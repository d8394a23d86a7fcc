package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/callreel/callreel/sampler"
)

// The thread that is stopped has 48 frames: 43 functions of deep.cc, the one at the bottom, main
// and three of the C library around it.
const (
	observedLevels = 43
	stoodFrames    = 48
)

// stopsPerRound is how many stops a round's figure is the median of.
const stopsPerRound = 101

// A stopper stops the thread in its way.
type stopper struct {
	what, reach string
	stops       int  // a round
	disturbed   bool // stops that others have disturbed count, since all are
	begin, end  func() error
	stop        func() error
	note        func() string
	now         []float64 // ns, of this round
	stopped     []float64 // ns, one figure a round
	err         error
}

func measureStopped(ctx context.Context, c config) []row {
	const name, reach = "stopped for one thread, 48 frames: ", "≤ 1.5 × the least"
	w, err := startObserved(ctx, c)
	if err != nil {
		return []row{missing(name+"callreel", reach, err)}
	}
	all, endAll := stoppers(ctx, c, w.target.pid())
	all[1].reach = reach
	for range c.rounds {
		stoppedRound(ctx, w, all)
	}
	all[1].err = errors.Join(all[1].err, endAll(), w.end())
	var rows []row
	for _, s := range all {
		if s.err != nil {
			rows = append(rows, missing(name+s.what, s.reach, s.err))
			continue
		}
		r := row{what: name + s.what, value: duration(median(s.stopped)), reach: s.reach}
		if all[0].err == nil {
			r.ratio = ratioText(medianRatio(s.stopped, all[0].stopped))
		}
		if s.note != nil {
			r.note = s.note()
		}
		rows = append(rows, r)
	}
	return rows
}

// stoppedRound has all stop the thread in turns, until each has done so as often as it should.
func stoppedRound(ctx context.Context, w *observed, all []*stopper) {
	for _, s := range all {
		s.now = s.now[:0]
	}
	for range 10 * stopsPerRound {
		done := true
		for _, s := range all {
			if s.err != nil || len(s.now) >= s.stops {
				continue
			}
			ns, clean, err := s.once(ctx, w)
			if s.err = err; err == nil && (clean || s.disturbed) {
				s.now = append(s.now, ns)
			}
			done = false
		}
		if done {
			break
		}
	}
	for _, s := range all {
		if s.err == nil && len(s.now) < s.stops {
			s.err = fmt.Errorf("of %d stops only %d were undisturbed: the machine is too busy", 10*stopsPerRound, len(s.now))
		}
		if s.err == nil {
			s.stopped = append(s.stopped, median(s.now))
		}
	}
}

func (s *stopper) once(ctx context.Context, w *observed) (ns float64, clean bool, err error) {
	if s.begin != nil {
		if err := s.begin(); err != nil {
			return 0, false, err
		}
	}
	ns, clean, err = w.during(ctx, s.stop)
	if s.end != nil {
		err = errors.Join(err, s.end())
	}
	return ns, clean, err
}

// stoppers are the least that there is, ours, and the peers.
func stoppers(ctx context.Context, c config, pid int) (all []*stopper, end func() error) {
	plain, endPlain := stopperProgram(ctx, c, pid, "stopper")
	libunwind, endLibunwind := stopperProgram(ctx, c, pid, "stopper-libunwind", "-DLIBUNWIND", "-lunwind-ptrace", "-lunwind-generic")
	cold := libunwind("cold", "libunwind-ptrace, cold")
	cold.stops, cold.disturbed = 5, true
	return []*stopper{
		plain("least", "the least (stop, registers, one read, on)"),
		libraryStopper(ctx, pid),
		libunwind("warm", "libunwind-ptrace, warm"),
		cold,
		{what: "gdb -batch -ex bt", stops: 1, disturbed: true, stop: func() error {
			_, err := output(exec.CommandContext(ctx, "gdb", "-nx", "-batch", "-ex", "bt", "-p", strconv.Itoa(pid)))
			return err
		}},
	}, func() error { return errors.Join(endPlain(), endLibunwind()) }
}

// libraryStopper is ours, without what starting a program adds.
func libraryStopper(ctx context.Context, pid int) *stopper {
	var said []float64
	return &stopper{
		what: "callreel", stops: stopsPerRound,
		stop: func() error {
			capture, err := sampler.Stacks(ctx, pid, sampler.Options{NoNames: true})
			if err != nil {
				return err
			}
			t := &capture.Threads[0]
			said = append(said, float64(t.Stopped.Nanoseconds()))
			if !t.End.Complete() || len(t.Frames) != stoodFrames {
				err = fmt.Errorf("%d frames, %v", len(t.Frames), t.End)
			}
			return errors.Join(err, capture.Close())
		},
		note: func() string { return "by its own count " + duration(median(said)) },
	}
}

// output runs a command and returns what it prints.
func output(cmd *exec.Cmd) ([]byte, error) {
	text, err := cmd.Output()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return text, fmt.Errorf("%s: %w", filepath.Base(cmd.Path), err)
	}
	return text, nil
}

// stopperProgram builds bench/target/stopper.c and returns what makes stoppers of its orders.
func stopperProgram(ctx context.Context, c config, pid int, name string, flags ...string) (of func(order, what string) *stopper, end func() error) {
	var t *conversation
	path, err := buildTarget(ctx, c, name, "gcc", "stopper.c", flags...)
	if err == nil {
		t, err = converse(ctx, path, strconv.Itoa(pid))
	}
	order := func(line string, places ...any) func() error {
		return func() error { return t.ask(line, places...) }
	}
	end = func() error {
		if t == nil {
			return nil
		}
		return t.end()
	}
	var n int
	return func(line, what string) *stopper {
		return &stopper{what: what, stops: stopsPerRound, begin: order("seize", &n), stop: order(line, &n), end: order("release", &n), err: err}
	}, end
}

// duration writes nanoseconds in a unit that suits them.
func duration(ns float64) string {
	switch {
	case ns < 1e3:
		return fmt.Sprintf("%.0f ns", ns)
	case ns < 1e6:
		return fmt.Sprintf("%.1f µs", ns/1e3)
	case ns < 1e9:
		return fmt.Sprintf("%.1f ms", ns/1e6)
	}
	return fmt.Sprintf("%.2f s", ns/1e9)
}
