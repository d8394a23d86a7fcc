package invoke_test

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// callOften calls functions of the C library in a process while it works.
func callOften(t *testing.T, pid int) {
	t.Helper()
	for range 5 {
		for text, want := range map[string]string{"malloc_trim(0)": "", "getpid()": strconv.Itoa(pid), `strtol("0x2a", NULL, 0)`: "42", "fflush(NULL)": "0"} {
			r := realtest.Callreel(t, "call", "-p", strconv.Itoa(pid), "--timeout", "30s", "--wait", "20s", text)
			if r.Code != 0 || !strings.HasPrefix(r.Stdout, want) {
				t.Errorf("%s in process %d: code %d, %s%s", text, pid, r.Code, r.Stdout, r.Stderr)
				return
			}
		}
	}
}

// during calls functions while the load is on, which ends with its context.
func during(t *testing.T, pid int, load func(ctx context.Context) (int64, error)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	loaded := make(chan error, 1)
	replies := int64(0)
	go func() {
		var err error
		replies, err = load(ctx)
		loaded <- err
	}()
	callOften(t, pid)
	cancel()
	if err := <-loaded; err != nil || replies == 0 {
		t.Errorf("%d right replies: %v", replies, err)
	}
}

func TestRedisWorksWhileFunctionsAreCalledInIt(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace, realtest.RedisTools)
	s := realtest.Redis(t)
	during(t, s.Pid(), func(ctx context.Context) (int64, error) { return s.Load(ctx, 4) })
	if got, err := s.Do("PING"); err != nil || got != "PONG" {
		t.Errorf("PING: %q, %v", got, err)
	}
}

func TestNginxWorksWhileFunctionsAreCalledInIt(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace, realtest.WebServer)
	s := realtest.Nginx(t, realtest.NginxOptions{})
	workers := s.Workers()
	if len(workers) == 0 {
		t.Fatal("no worker")
	}
	during(t, workers[0], func(ctx context.Context) (int64, error) { return s.Load(ctx, 4) })
}

func TestPythonWorksWhileFunctionsAreCalledInIt(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace, realtest.Python3)
	p := realtest.Python(t, `
import sys, time, hashlib
print("ready", flush=True)
want = hashlib.sha256(b"x" * 100000).hexdigest()
import select
while not select.select([sys.stdin], [], [], 0.001)[0]:
    before = time.monotonic()
    time.sleep(0.01)
    if time.monotonic() - before < 0.01: print("slept too short")
    if hashlib.sha256(b"x" * 100000).hexdigest() != want: print("wrong")
print("ok")
`)
	callOften(t, p.Pid())
	finish(t, p)
}
