package debuginfod

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The defaults of Limits.
const (
	DefaultConnectTimeout   = 10 * time.Second
	DefaultFirstByteTimeout = 30 * time.Second
	DefaultStartTimeout     = 90 * time.Second // as elfutils has it
	DefaultStallTimeout     = 30 * time.Second
	DefaultMinRate          = 16 << 10
	DefaultMaxSize          = 8 << 30
)

// startSize is how much of a file must have come within StartTimeout, in bytes: the
// 100K that elfutils asks for (debuginfod-client-config(7), DEBUGINFOD_TIMEOUT).
const startSize = 100 << 10

// Limits bound what one server may take of us for one file: a server that exceeds one
// is passed over. What is not set, or not positive, is the default.
//
// Together they bound the time of a whole download by its size: no longer than
// StartTimeout + StallTimeout + size/MinRate.
type Limits struct {
	// ConnectTimeout bounds the making of a connection; TLS's part has as much again.
	ConnectTimeout time.Duration

	// FirstByteTimeout bounds how long a server that has got the request may say nothing.
	FirstByteTimeout time.Duration

	// StartTimeout bounds the time from the request to the first 100 KiB of the file,
	// or to all of it where it is smaller.
	StartTimeout time.Duration

	// StallTimeout bounds how long nothing may come, once the answer has begun.
	StallTimeout time.Duration

	// MinRate is how many bytes a second must come after those first 100 KiB, on the
	// average of each stretch of StallTimeout.
	MinRate int64

	// MaxTime bounds the whole time of one file, whatever its size; none by default.
	MaxTime time.Duration

	// MaxSize bounds a file, in bytes.
	MaxSize int64
}

// noLimit stands for a limit that was switched off.
const noLimit = math.MaxInt64

// withDefaults fills in what is not set.
func (l Limits) withDefaults() Limits {
	l.ConnectTimeout = or(l.ConnectTimeout, DefaultConnectTimeout)
	l.FirstByteTimeout = or(l.FirstByteTimeout, DefaultFirstByteTimeout)
	l.StartTimeout = or(l.StartTimeout, DefaultStartTimeout)
	l.StallTimeout = or(l.StallTimeout, DefaultStallTimeout)
	l.MinRate = or(l.MinRate, DefaultMinRate)
	l.MaxTime = or(l.MaxTime, noLimit)
	l.MaxSize = or(l.MaxSize, DefaultMaxSize)
	return l
}

// limitsFromEnvironment reads the variables that elfutils defines
// (debuginfod-client-config(7)): DEBUGINFOD_TIMEOUT and DEBUGINFOD_MAXTIME in seconds,
// DEBUGINFOD_MAXSIZE in bytes. In each a number that is not positive means no limit.
// DEBUGINFOD_TIMEOUT is for the first byte, too: who waits longer for the file's begin
// has a server in mind that needs that long before it says anything.
func limitsFromEnvironment() (Limits, error) {
	var l Limits
	for _, v := range []struct {
		name string
		set  func(n int64)
	}{
		{"DEBUGINFOD_TIMEOUT", func(n int64) { l.StartTimeout, l.FirstByteTimeout = seconds(n), seconds(n) }},
		{"DEBUGINFOD_MAXTIME", func(n int64) { l.MaxTime = seconds(n) }},
		{"DEBUGINFOD_MAXSIZE", func(n int64) { l.MaxSize = n }},
	} {
		text := strings.TrimSpace(os.Getenv(v.name))
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return l, fmt.Errorf("%s: %.80q: want a whole number", v.name, text)
		}
		if n <= 0 {
			n = noLimit
		}
		v.set(n)
	}
	return l, nil
}

// seconds is a duration that cannot overflow.
func seconds(n int64) time.Duration {
	if n > int64(noLimit/time.Second) {
		return noLimit
	}
	return time.Duration(n) * time.Second
}

// A supervisor ends a download that exceeds its limits in time.
type supervisor struct {
	limits Limits
	cancel func(error)
	begin  time.Time

	mu      sync.Mutex
	timer   *time.Timer
	stopped bool
	done    int64     // bytes that have come
	last    time.Time // when the latest did; zero before the answer
	mark    time.Time // the begin of the stretch whose rate is looked at; zero before startSize
	markAt  int64     // bytes that had come then
}

// errLimit is wrapped by the reasons that a supervisor gives.
var errLimit = errors.New("gave up")

// supervise starts a supervisor. It calls cancel with the reason, once at most.
func supervise(l Limits, cancel func(error)) *supervisor {
	w := &supervisor{limits: l, cancel: cancel, begin: time.Now()}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(w.next(w.begin).Sub(w.begin), w.look)
	return w
}

// next is when the next limit would be exceeded if nothing came.
func (w *supervisor) next(now time.Time) time.Time {
	at := after(w.begin, w.limits.MaxTime)
	if w.mark.IsZero() {
		at = earlier(at, after(w.begin, w.limits.StartTimeout))
	} else {
		at = earlier(at, after(w.mark, w.limits.StallTimeout))
	}
	if !w.last.IsZero() {
		at = earlier(at, after(w.last, w.limits.StallTimeout))
	}
	if at.Before(now) {
		return now
	}
	return at
}

// after is a time later by d, and without overflow if that is no limit.
func after(t time.Time, d time.Duration) time.Time {
	const longest = 100 * 365 * 24 * time.Hour
	return t.Add(min(d, longest))
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// look says whether a limit is exceeded now, and waits for the next if none is.
func (w *supervisor) look() {
	w.mu.Lock()
	if w.stopped {
		w.mu.Unlock()
		return
	}
	now := time.Now()
	err := w.exceeded(now)
	if err == nil {
		w.timer.Reset(max(w.next(now).Sub(now), time.Millisecond))
	}
	w.mu.Unlock()
	if err != nil {
		w.cancel(err)
	}
}

// exceeded tells which limit is exceeded, if one is, and begins the next stretch.
func (w *supervisor) exceeded(now time.Time) error {
	l := &w.limits
	switch {
	case !now.Before(after(w.begin, l.MaxTime)):
		return fmt.Errorf("%w: it took more than %s in all", errLimit, l.MaxTime)
	case !w.last.IsZero() && !now.Before(after(w.last, l.StallTimeout)):
		return fmt.Errorf("%w: nothing came for %s", errLimit, l.StallTimeout)
	case w.mark.IsZero() && !now.Before(after(w.begin, l.StartTimeout)):
		return fmt.Errorf("%w: %d bytes came within %s, want %d at least", errLimit, w.done, l.StartTimeout, startSize)
	case !w.mark.IsZero() && !now.Before(after(w.mark, l.StallTimeout)):
		came := float64(w.done-w.markAt) / now.Sub(w.mark).Seconds()
		if came < float64(l.MinRate) {
			return fmt.Errorf("%w: %.0f bytes a second came, want %d at least", errLimit, came, l.MinRate)
		}
		w.mark, w.markAt = now, w.done
	}
	return nil
}

// heard notes that more has come: n bytes, or the answer's begin.
func (w *supervisor) heard(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	first := w.last.IsZero()
	w.last = now
	if w.done += int64(n); w.mark.IsZero() && w.done >= startSize {
		w.mark, w.markAt = now, w.done
	}
	if first && !w.stopped {
		w.timer.Reset(max(w.next(now).Sub(now), time.Millisecond))
	}
}

// stop ends the supervision.
func (w *supervisor) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.timer.Stop()
}
