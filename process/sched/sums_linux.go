package sched

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// Sums are the kernel's own of a thread, since it is watched, in nanoseconds.
type Sums struct {
	Running uint64 // on a processor
	Ready   uint64 // could have run, but had no processor
}

// Sums reads the sums of a thread. It is false when the thread has ended: what it did since anybody last asked is not known
// then, and not guessed.
func (w *Watcher) Sums(tid int) (Sums, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.threads[int32(tid)]
	if t == nil {
		return Sums{}, false
	}
	now, err := readSums(int(t.pid), tid)
	if err != nil || now.Running < t.base.Running || now.Ready < t.base.Ready {
		return Sums{}, false
	}
	return Sums{now.Running - t.base.Running, now.Ready - t.base.Ready}, true
}

// Threads lists the threads that are known and haven't ended, with their processes.
func (w *Watcher) Threads() map[int]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make(map[int]int, len(w.threads))
	for _, t := range w.threads {
		out[int(t.tid)] = int(t.pid)
	}
	return out
}

var errSums = errors.New("malformed schedstat")

// readSums reads /proc/PID/task/TID/schedstat (Documentation/scheduler/sched-stats.rst).
func readSums(pid, tid int) (Sums, error) {
	text, err := readSmall(taskPath(pid, tid) + "schedstat")
	if err != nil {
		return Sums{}, err
	}
	return parseSums(text)
}

func parseSums(text []byte) (Sums, error) {
	fields := bytes.Fields(text)
	if len(fields) < 2 {
		return Sums{}, fmt.Errorf("sched: %w: %d fields", errSums, len(fields))
	}
	ran, err1 := strconv.ParseUint(string(fields[0]), 10, 64)
	waited, err2 := strconv.ParseUint(string(fields[1]), 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		return Sums{}, fmt.Errorf("sched: %w: %w", errSums, err)
	}
	return Sums{ran, waited}, nil
}
