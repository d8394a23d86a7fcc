package page_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// story is a thread's life as it is made up: what it calls, and what the scheduler does with it meanwhile.
type story struct {
	rng    *rand.Rand
	now    uint64
	sp     uint32
	open   []uint32
	events []reel.Event
	words  []reel.SchedEvent
	waits  []reel.Wait
}

func newStory(seed, at uint64) *story {
	s := &story{rng: rand.New(rand.NewPCG(seed, 9)), now: at, sp: 1 << 20}
	s.word(reel.SchedEvent{Kind: reel.SchedIn, CPU: int32(seed % 4)})
	return s
}

func (s *story) word(e reel.SchedEvent) {
	e.Time = s.now
	s.words = append(s.words, e)
}

func (s *story) enter(function uint32) {
	s.events = append(s.events, reel.Entry(s.now, s.sp, function))
	s.open = append(s.open, function)
	s.sp -= 64
	s.now += 64
}

func (s *story) leave() {
	s.now += 64
	s.sp += 64
	s.events = append(s.events, reel.Exit(s.now, s.sp, s.open[len(s.open)-1]))
	s.open = s.open[:len(s.open)-1]
	s.now += 64
}

// call makes a call that runs for so long.
func (s *story) call(function uint32, run uint64) {
	s.enter(function)
	s.run(run)
	s.leave()
}

func (s *story) run(ns uint64) { s.now += ns/2 + s.rng.Uint64N(ns+1) }

// wait is blocked until a time, ended by a thread, and then ready for a while.
func (s *story) wait(kind reel.SchedKind, until uint64, waker int32, w reel.Wait) {
	w.Time = s.now
	s.waits = append(s.waits, w)
	s.word(reel.SchedEvent{Kind: kind})
	s.now = max(until, s.now+1000)
	s.word(reel.SchedEvent{Kind: reel.SchedWoken, Waker: waker})
	s.now += 20_000 + s.rng.Uint64N(40_000)
	s.word(reel.SchedEvent{Kind: reel.SchedIn, CPU: int32(s.rng.IntN(4))})
}

func (s *story) preempted(ns uint64) {
	s.word(reel.SchedEvent{Kind: reel.SchedPreempted})
	s.now += ns
	s.word(reel.SchedEvent{Kind: reel.SchedIn, CPU: int32(s.rng.IntN(4))})
}

func (s *story) fault(major bool) {
	kind := reel.SchedMinorFault
	if major {
		kind = reel.SchedMajorFault
	}
	s.word(reel.SchedEvent{Kind: kind, Address: 0x7f0000001000})
}

var serverFunctions = []string{"worker_loop", "epoll_wait", "handle_request", "parse", "cache_get", "pthread_mutex_lock", "render", "evict", "hash_find", "fsync", "write_log"}


// waitsReel is a server whose worker-1 waits in pthread_mutex_lock from 60 to 100 ms for what worker-2 holds, and one thread that has states and no calls.
func waitsReel(t testing.TB) string {
	return made(t, "server.reel", serverFunctions, func(w *reel.Writer) {
		realtest.Must(t, w.Scheduling(reel.Scheduling{Source: "bpf", WakeUps: true, Faults: true}))
		request := func(s *story) {
			s.enter(3)
			s.call(4, 300_000)
			s.enter(5)
			for range 3 {
				s.call(9, 60_000)
			}
			s.leave()
			s.enter(7)
			if s.rng.IntN(3) == 0 {
				s.fault(false)
			}
			s.run(500_000)
			s.leave()
			s.leave()
		}
		idle := func(s *story, ns uint64) {
			s.enter(2)
			s.wait(reel.SchedBlocked, s.now+ns/2+s.rng.Uint64N(ns), reel.WakerKernel, reel.Wait{Syscall: 232, Args: [3]uint64{5}, Object: "epoll"})
			s.leave()
		}
		for i := range uint64(3) {
			s := newStory(i, 100_000*i+1)
			s.enter(1)
			for s.now < 150*ms {
				switch {
				case i == 0 && s.now > 55*ms && s.now < 60*ms:
					s.enter(3)
					s.call(4, 300_000)
					s.enter(5)
					s.enter(6)
					s.wait(reel.SchedBlocked, 100*ms, 102, reel.Wait{Syscall: 202, Args: [3]uint64{0x5581_c0de_4000}})
					s.leave()
					s.call(9, 60_000)
					s.leave()
					s.call(7, 600_000)
					s.leave()
				case i == 1 && s.now > 52*ms && s.now < 60*ms:
					s.enter(3)
					s.enter(8)
					for s.now < 80*ms {
						s.call(9, 200_000)
						if s.rng.IntN(12) == 0 {
							s.preempted(900_000)
						}
					}
					s.fault(true)
					s.enter(11)
					s.enter(10)
					s.wait(reel.SchedUninterruptible, 98*ms, reel.WakerKernel, reel.Wait{Syscall: 74, Args: [3]uint64{7}, Object: "/var/log/cache.log"})
					s.leave()
					s.leave()
					s.now = 100*ms - 1000
					s.run(1_500_000)
					s.leave()
					s.leave()
				default:
					request(s)
					if s.rng.IntN(6) == 0 {
						s.preempted(700_000)
					}
					idle(s, 2_500_000)
				}
			}
			for len(s.open) > 0 {
				s.leave()
			}
			s.word(reel.SchedEvent{Kind: reel.SchedBlocked})
			tw := thread(t, w, 101+int(i), fmt.Sprintf("worker-%d", i+1), s.events...)
			realtest.Must(t, tw.Sched(s.words))
			realtest.Must(t, tw.Waits(s.waits))
		}
		s := newStory(7, 20*ms)
		for s.now < 140*ms {
			s.run(400_000)
			s.wait(reel.SchedBlocked, s.now+9*ms, reel.WakerKernel, reel.Wait{Syscall: 230})
		}
		tw := thread(t, w, 104, "flusher")
		realtest.Must(t, tw.Sched(s.words))
		realtest.Must(t, w.ClockPair(152*ms, 152*ms))
		w.SchedKnown(152 * ms)
	})
}
