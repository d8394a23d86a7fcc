package sched

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/internal/ticks"
)

// A thread that waits all the time has no event, and what it does can only be asked for. The answer, by itself, proves
// little: a thread may be on its way. But whatever changes a thread's state is an event. So where no event came between the
// beginning and a moment after the answer, the answer was true all that time.

// answer is what the kernel says of a thread at one moment.
type answer struct {
	known     bool
	state     byte   // R, S, D, …
	ran       uint64 // nanoseconds on a processor
	processor int32
	tick      uint64 // after it was given
	earlier   *answer
}

// kind is the event after which a thread does what its state says, if it isn't running.
func (a *answer) kind() (Kind, doing) {
	switch a.state {
	case 'R':
		return Preempted, ready
	case 'S', 'T', 't', 'I':
		return Blocked, waiting
	case 'D':
		return Uninterruptible, waiting
	}
	return 0, unknown
}

// before is what the thread did until an event at tick, by which it came onto a processor: it cannot have been there.
func (a *answer) before(tick uint64) (Kind, doing) {
	if !a.known || a.tick >= tick {
		return 0, unknown
	}
	return a.kind()
}

const (
	// A thread that runs has its time counted at each of the kernel's ticks: at least 100 a second.
	apart = 25 * time.Millisecond
	// But once a second on processors that are kept free of ticks (nohz_full).
	farApart = 1500 * time.Millisecond
)

// steady is what a thread has done from its first answer to its last, in ns nanoseconds, if nothing has happened meanwhile.
func (a *answer) steady(ns uint64) (Kind, doing) {
	e := a.earlier
	if !a.known || e == nil || ns < uint64(apart) {
		return 0, unknown
	}
	switch _, was := e.kind(); {
	case a.ran != e.ran && a.state == 'R' && e.state == 'R':
		return In, running
	case a.ran != e.ran:
		return 0, unknown
	case a.state == 'R' && (e.state != 'R' || ns < uint64(farApart)):
		return 0, unknown
	case was == unknown:
		return 0, unknown
	}
	return a.kind()
}

// ask asks for a thread's state and sums, and says whether there is such a thread.
func (w *Watcher) ask(t *thread) (Sums, bool) {
	path := taskPath(int(t.pid), int(t.tid))
	text, err := readSmall(path + "stat")
	if err != nil {
		return Sums{}, false
	}
	state, processor, ok := parseTaskStat(text)
	if !ok || state == 'Z' || state == 'X' {
		return Sums{}, false
	}
	sums, err := readSums(int(t.pid), int(t.tid))
	if err != nil {
		return Sums{}, false
	}
	a := answer{known: true, state: state, ran: sums.Running, processor: processor, tick: ticks.Now()}
	if t.asked.known {
		first := t.asked
		if first.earlier != nil {
			first = *first.earlier
		}
		if first.state != a.state || first.ran != a.ran && a.state != 'R' {
			first = t.asked // begin anew
		}
		first.earlier = nil
		a.earlier = &first
	}
	t.asked = a
	return sums, true
}

const (
	settleEvery = 100 * time.Millisecond
	settleMost  = 256 // threads at once: some 5 ms
)

// settle finds out what threads do of which no event tells.
func (w *Watcher) settle(final bool) {
	now := time.Now()
	if !final && now.Sub(w.settled) < settleEvery {
		return
	}
	w.settled = now
	n := 0
	for _, t := range w.threads {
		if t.state != unknown {
			continue
		}
		if t.asked.known && t.asked.tick <= w.bound && t.asked.tick > t.since {
			ns := uint64(0)
			if e := t.asked.earlier; e != nil && e.tick > t.since && w.clock.rate > 0 {
				ns = uint64(float64(t.asked.tick-e.tick) / w.clock.rate)
			}
			if kind, state := t.asked.steady(ns); state != unknown {
				cpu := int32(-1)
				if state == running {
					cpu = t.asked.processor
				}
				w.has(t, kind, cpu, state)
				continue
			}
		}
		if n++; final || n > settleMost {
			continue
		}
		switch _, alive := w.ask(t); {
		case alive:
		case t.missing == 0:
			t.missing = ticks.Now()
		case t.missing <= w.bound:
			w.end(t, max(w.bound, t.last)) // its end was lost
		}
	}
	for pid, p := range w.processes {
		if len(p.threads) == 0 && !w.lives(pid, p) {
			delete(w.processes, pid)
			w.source.forget(int(pid))
		}
	}
}

// lives looks whether a process that has no threads that we know of has any: what tells of their begin may have been lost.
func (w *Watcher) lives(pid int32, p *watched) bool {
	now := ticks.Now()
	tids, err := threadsOf(int(pid))
	if err != nil {
		return false
	}
	for _, tid := range tids {
		t := &thread{pid: pid, tid: int32(tid), since: now, last: now, processor: -1}
		if base, alive := w.ask(t); alive && w.threads[t.tid] == nil {
			t.base = base
			w.threads[t.tid], p.threads[t.tid] = t, t
		}
	}
	return len(p.threads) > 0
}

func taskPath(pid, tid int) string {
	return "/proc/" + strconv.Itoa(pid) + "/task/" + strconv.Itoa(tid) + "/"
}

// readSmall reads a file of /proc that has less than a page.
func readSmall(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var b [1024]byte
	n, err := unix.Read(fd, b[:])
	if err != nil {
		return nil, err
	}
	return b[:n], nil
}

// parseTaskStat reads the state and the processor of /proc/PID/task/TID/stat (proc_pid_stat(5), fields 3 and 39).
func parseTaskStat(text []byte) (state byte, processor int32, ok bool) {
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) <= 39-3 || len(fields[0]) != 1 {
		return 0, -1, false
	}
	n, err := strconv.ParseInt(string(fields[39-3]), 10, 32)
	return fields[0][0], int32(n), err == nil
}

// threadsOf lists a process's threads.
func threadsOf(pid int) ([]int, error) {
	d, err := os.Open("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, noProcess(pid)
		}
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil && len(names) == 0 {
		return nil, noProcess(pid)
	}
	tids := make([]int, 0, len(names))
	for _, name := range names {
		if tid, err := strconv.Atoi(name); err == nil {
			tids = append(tids, tid)
		}
	}
	return tids, nil
}
