package probes

import (
	"sync"
	"sync/atomic"
	"time"
)

// Rounds lets things be done in the loop that drains the rings when all has been drained that was written before.
type Rounds struct {
	waiting atomic.Bool
	mu      sync.Mutex // guards what follows
	begun   uint64
	waiters []*waiter
}

type waiter struct {
	begun uint64 // rounds, when it began to wait
	soon  bool   // any round will do, also one that has begun already or hasn't read all there was
	f     func()
	done  chan struct{}
}

// roundPatience is for how long a round is waited for in which nothing is left to be drained.
const roundPatience = 10 * time.Second

// Begin is called before each round.
func (r *Rounds) Begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun++
}

// End is called behind each round. all says that it has left nothing that was there when it began.
func (r *Rounds) End(all bool) {
	if !r.waiting.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.call(all)
}

// Awaited says whether somebody waits for a round.
func (r *Rounds) Awaited() bool { return r.waiting.Load() }

// Serve is called within a round that takes long. It calls what any round will do for.
func (r *Rounds) Serve() {
	if !r.waiting.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.call(false)
}

// call calls what waits for a round that has left something, or nothing. The caller holds mu.
func (r *Rounds) call(all bool) {
	left := r.waiters[:0]
	for _, w := range r.waiters {
		if !w.soon && (w.begun == r.begun || !all) {
			left = append(left, w)
			continue
		}
		w.f()
		close(w.done)
	}
	clear(r.waiters[len(left):])
	r.waiters = left
	r.waiting.Store(len(left) > 0)
}

// after waits until f was called in the loop, behind a round that began later than this call and has read all that was written before; with
// soon behind the one that is under way, or the next. It returns false where that doesn't come.
func (r *Rounds) after(over <-chan struct{}, patience time.Duration, soon bool, f func()) bool {
	w := &waiter{soon: soon, f: f, done: make(chan struct{})}
	r.mu.Lock()
	w.begun = r.begun
	r.waiters = append(r.waiters, w)
	r.waiting.Store(true)
	r.mu.Unlock()
	select {
	case <-w.done:
		return true
	case <-over:
	case <-time.After(patience):
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.waiters {
		if r.waiters[i] == w {
			r.waiters = append(r.waiters[:i], r.waiters[i+1:]...)
			return false
		}
	}
	return true
}
