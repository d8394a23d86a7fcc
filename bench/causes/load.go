package causes

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/callreel/callreel/bench/programs"
)

// requests keeps how long the requests to a real server took.
type requests struct {
	mu   sync.Mutex
	took []time.Duration
	odd  []time.Duration // of those that had to meet the cause
}

// time does one request and keeps what it took.
func (r *requests) time(odd bool, do func() error) error {
	start := time.Now()
	err := do()
	took := time.Since(start)
	r.mu.Lock()
	defer r.mu.Unlock()
	if odd {
		r.odd = append(r.odd, took)
	} else {
		r.took = append(r.took, took)
	}
	return err
}

// log says what the requests took. What is slow is told by its time, if there were no odd ones.
func (r *requests) log(slow time.Duration) Log {
	r.mu.Lock()
	defer r.mu.Unlock()
	ordinary, odd := slices.Sorted(slices.Values(r.took)), slices.Sorted(slices.Values(r.odd))
	if len(odd) == 0 && slow > 0 {
		k, _ := slices.BinarySearch(ordinary, slow)
		ordinary, odd = ordinary[:k], ordinary[k:]
	}
	at := func(of []time.Duration, share float64) float64 {
		if len(of) == 0 {
			return 0
		}
		return float64(of[min(len(of)-1, int(float64(len(of))*share))]) / 1e3
	}
	return Log{Requests: len(ordinary) + len(odd), P50us: at(ordinary, 0.5), P95us: at(ordinary, 0.95), P99us: at(ordinary, 0.99),
		Slow: len(odd), SlowP50us: at(odd, 0.5), MaxUs: max(at(ordinary, 1), at(odd, 1))}
}

// repeat does something again and again until ctx ends, each with a pause about that long before.
func repeat(ctx context.Context, seed int, pause time.Duration, do func(n int, chance *rand.Rand) error) error {
	chance := rand.New(rand.NewPCG(uint64(seed), 1))
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Duration(min(5, chance.ExpFloat64()) * float64(pause))):
		}
		if err := do(n, chance); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}

// together runs some functions at once and returns what went wrong.
func together(run ...func() error) error {
	errs := make([]error, len(run))
	var all sync.WaitGroup
	for k, f := range run {
		all.Go(func() { errs[k] = f() })
	}
	all.Wait()
	return errors.Join(errs...)
}

// dial connects to a server that has just been started.
func dial(p *proc, port string) (net.Conn, error) {
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", port))
		if err == nil {
			return conn, nil
		}
		select {
		case <-p.ended:
			return nil, fmt.Errorf("%s: %v: %s", p.cmd.Path, p.cmd.ProcessState, p.stderr.String())
		default:
			if time.Since(start) > patience {
				return nil, err
			}
		}
	}
}

func freePort() (string, error) { return programs.FreePort() }
