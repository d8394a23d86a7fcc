package main

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// gaps is what bench/target/deep.cc shares: a thread that reads the clock over and over in odd rounds
// notes there for how long it was stopped, whoever stopped it.
type gaps struct {
	round, seen, beats, largest uint64
	nsPerTick                   uint64 // a float64
}

// An observed thread is at the bottom of its stack and reads the clock over and over.
type observed struct {
	target *conversation
	gaps   *gaps
	shared []byte
}

func startObserved(ctx context.Context, c config) (*observed, error) {
	path, err := buildTarget(ctx, c, "deep-stood", "g++", "deep.cc", "-fomit-frame-pointer")
	if err != nil {
		return nil, err
	}
	file, err := os.Create(filepath.Join(c.dir, "gaps"))
	if err != nil {
		return nil, err
	}
	defer file.Close() // the mapping stays
	if err := file.Truncate(int64(os.Getpagesize())); err != nil {
		return nil, err
	}
	w := &observed{}
	if w.shared, err = syscall.Mmap(int(file.Fd()), 0, os.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED); err != nil {
		return nil, err
	}
	w.gaps = (*gaps)(unsafe.Pointer(unsafe.SliceData(w.shared)))
	if w.target, err = startDeep(ctx, path, observedLevels, file.Name()); err == nil {
		err = w.target.say("gaps")
	}
	if err != nil {
		return nil, errors.Join(err, w.end())
	}
	return w, nil
}

// until waits until a count of the thread's is at least n. It gives up the processor, which the
// thread may need.
func (w *observed) until(ctx context.Context, n uint64, count *uint64) error {
	for start := time.Now(); atomic.LoadUint64(count) < n; time.Sleep(50 * time.Microsecond) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Since(start) > time.Minute {
			return errors.New("the thread that reads the clock does not run")
		}
	}
	return nil
}

// during returns how long the thread was stopped at the most while stop was at work, in
// nanoseconds. It is not clean when the scheduler took the processor away meanwhile.
func (w *observed) during(ctx context.Context, stop func() error) (ns float64, clean bool, err error) {
	round := atomic.AddUint64(&w.gaps.round, 1)
	defer atomic.AddUint64(&w.gaps.round, 1)
	if err := w.until(ctx, round, &w.gaps.seen); err != nil {
		return 0, false, err
	}
	before := w.preempted()
	if err := stop(); err != nil {
		return 0, false, err
	}
	if err := w.until(ctx, atomic.LoadUint64(&w.gaps.beats)+2, &w.gaps.beats); err != nil {
		return 0, false, err
	}
	ticks := float64(atomic.LoadUint64(&w.gaps.largest))
	return ticks * math.Float64frombits(atomic.LoadUint64(&w.gaps.nsPerTick)), w.preempted() == before, nil
}

// preempted counts how often others got the thread's processor; a stop is no such switch.
func (w *observed) preempted() string {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(w.target.pid()) + "/status")
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(text), "\nnonvoluntary_ctxt_switches:")
	line, _, _ := strings.Cut(rest, "\n")
	return line
}

func (w *observed) end() error {
	var err error
	if w.target != nil {
		err = w.target.kill()
	}
	return errors.Join(err, syscall.Munmap(w.shared))
}
