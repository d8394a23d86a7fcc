package causes

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// An Instance is a planted program that runs.
type Instance struct {
	PID   int // of the process to record
	dir   string
	procs []*proc                     // ended the last first
	load  func(context.Context) error // asks a real server for things until ctx ends; nil for programs that do so themselves
	stop  context.CancelFunc
	asked chan error
	log   func() Log // of load
}

// A Log is what a program itself says of its requests.
type Log struct {
	Requests  int     `json:"requests"`
	P50us     float64 `json:"p50_us"` // of ordinary ones, as the next two
	P95us     float64 `json:"p95_us"`
	P99us     float64 `json:"p99_us"`
	Slow      int     `json:"slow"` // that took as long as the cause makes them take
	SlowP50us float64 `json:"slow_p50_us"`
	MaxUs     float64 `json:"max_us"`
}

// Holds says whether slow requests are there, few, and far from ordinary ones.
func (l *Log) Holds() bool {
	return l.Slow >= 3 && l.Slow*10 < l.Requests && l.SlowP50us > 3*l.P50us && l.SlowP50us > l.P95us
}

// A proc is a process of an instance.
type proc struct {
	cmd    *exec.Cmd
	stop   os.Signal
	stdout *bufio.Reader // what is read of it, if anything
	stderr lastWords
	ended  chan struct{}
}

// patience is how long a program may take to start or to end.
const patience = 20 * time.Second

// run starts a process of an instance, ended by SIGTERM.
func (i *Instance) run(cmd *exec.Cmd) (*proc, error) {
	p := &proc{cmd: cmd, stop: syscall.SIGTERM, ended: make(chan struct{})}
	cmd.Stderr = &p.stderr
	cmd.WaitDelay = time.Second // a child of it may hold its stderr
	dieWithUs(cmd)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = cmd.Wait() // the state says how it has ended
		close(p.ended)
	}()
	i.procs = append(i.procs, p)
	return p, nil
}

// serve starts a planted program and waits until it serves.
func serve(cmd *exec.Cmd) (*Instance, error) {
	i := &Instance{}
	out, in, err := os.Pipe() // not StdoutPipe, which Wait closes before all has been read
	if err != nil {
		return nil, err
	}
	cmd.Stdout = in
	p, err := i.run(cmd)
	if err != nil {
		return nil, errors.Join(err, in.Close(), out.Close())
	}
	p.stdout = bufio.NewReader(out)
	i.PID = cmd.Process.Pid
	if err := in.Close(); err != nil {
		return nil, err
	}
	if err := out.SetReadDeadline(time.Now().Add(3 * patience)); err != nil {
		return nil, err
	}
	if line, err := p.stdout.ReadString('\n'); err != nil || line != "ready\n" {
		i.Kill()
		return nil, fmt.Errorf("it doesn't serve: %q, %w: %s", line, err, p.stderr.String())
	}
	i.log = func() Log {
		var l Log
		data, err := io.ReadAll(p.stdout)
		if err == nil {
			err = json.Unmarshal(data, &l)
		}
		if err != nil {
			return Log{}
		}
		return l
	}
	return i, nil
}

// begin lets a real server be asked for things.
func (i *Instance) begin(ctx context.Context) {
	ctx, i.stop = context.WithCancel(ctx)
	i.asked = make(chan error, 1)
	go func() { i.asked <- i.load(ctx) }()
}

// End ends the program and returns its own log. It returns an error if the program failed.
func (i *Instance) End() (l Log, err error) {
	if i.stop != nil {
		i.stop()
		err = <-i.asked
	}
	for k := len(i.procs) - 1; k >= 0; k-- {
		p := i.procs[k]
		_ = p.cmd.Process.Signal(p.stop) // it may have ended
		if p.stdout != nil {
			l = i.log()
		}
		select {
		case <-p.ended:
		case <-time.After(patience):
			_ = p.cmd.Process.Kill()
			<-p.ended
			err = errors.Join(err, fmt.Errorf("%s doesn't end", p.cmd.Path))
		}
		if code := p.cmd.ProcessState.ExitCode(); code != 0 {
			err = errors.Join(err, fmt.Errorf("%s: %v: %s", p.cmd.Path, p.cmd.ProcessState, p.stderr.String()))
		}
	}
	if i.log != nil && i.load != nil {
		l = i.log()
	}
	return l, errors.Join(err, os.RemoveAll(i.dir))
}

// Kill ends the program by force.
func (i *Instance) Kill() {
	if i.stop != nil {
		i.stop()
		<-i.asked
	}
	for _, p := range i.procs {
		_ = p.cmd.Process.Kill() // it may have ended
		<-p.ended
	}
	_ = os.RemoveAll(i.dir) // what ended by force may have left anything
}

// lastWords keeps the end of what was written.
type lastWords struct {
	mu   sync.Mutex
	said string
}

func (w *lastWords) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said += string(b)
	w.said = w.said[max(0, len(w.said)-2000):]
	return len(b), nil
}

func (w *lastWords) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.TrimSpace(w.said)
}
