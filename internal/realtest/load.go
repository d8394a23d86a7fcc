package realtest

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"
)

// runLoad runs one client clients times in parallel until ctx ends, and adds up
// what they counted. The first error stops them all.
func runLoad(ctx context.Context, clients int, client func(ctx context.Context, id int) (int64, error)) (int64, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		total int64
		first error
	)
	for id := range clients {
		wg.Go(func() {
			n, err := client(ctx, id)
			mu.Lock()
			defer mu.Unlock()
			total += n
			// A request that ctx cut off is not the server's fault.
			if err != nil && ctx.Err() == nil {
				first = err
				stop()
			}
		})
	}
	wg.Wait()
	return total, first
}

// freePort is FreePort for tests.
func freePort(t testing.TB) string {
	t.Helper()
	port, err := FreePort()
	if err != nil {
		t.Fatalf("realtest: find a free port: %v", err)
	}
	return port
}

// FreePort is a port of loopback that nobody used a moment ago, for programs that don't choose one themselves.
func FreePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}

// waitAnswer returns when ask succeeds.
func (p *Proc) waitAnswer(addr string, ask func() error) {
	p.t.Helper()
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		err := ask()
		if err == nil {
			return
		}
		if !p.Alive() || time.Since(start) > patience {
			p.t.Fatalf("realtest: %s on %s does not answer: %v\n%s", p.name, addr, err, p.said())
		}
	}
}
