package programs

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// An Instance is a program that runs.
type Instance struct {
	PID  int // of the process that does the work
	name string
	dir  string
	// portion is what is said for one portion of work; the answer ends with a line that says marker.
	portion string
	in      io.Writer
	out     *bufio.Reader
	ask     func() (string, error) // where the work isn't a conversation
	procs   []*proc                // ended the last first
	clean   func(string) string    // of an answer, what may differ each time
}

const marker = "~end"

// Work lets the program do a portion of its work and returns what came of it, which is the same each time. It is for one
// goroutine at a time.
func (i *Instance) Work() (string, error) {
	if i.ask != nil {
		return i.ask()
	}
	wrote := make(chan error, 1)
	go func() { // a long portion's answers begin before it is written
		_, err := io.WriteString(i.in, i.portion)
		wrote <- err
	}()
	var said strings.Builder
	for {
		line, err := i.out.ReadString('\n')
		if err != nil {
			return said.String(), fmt.Errorf("%s: %w%s", i.name, err, i.last())
		}
		line = strings.TrimRight(line, "\r\n")
		if strings.HasPrefix(line, marker) || strings.HasSuffix(line, marker) {
			break
		}
		if i.clean != nil {
			line = i.clean(line)
		}
		said.WriteString(line + "\n")
	}
	if err := <-wrote; err != nil {
		return said.String(), fmt.Errorf("%s: %w", i.name, err)
	}
	return digest(said.String()), nil
}

// digest shortens an answer.
func digest(said string) string {
	const short = 60
	if len(said) <= short {
		return said
	}
	return fmt.Sprintf("%d lines, %x", strings.Count(said, "\n"), sha256.Sum256([]byte(said)))
}

// last is what the processes said on stderr, and how those ended that have.
func (i *Instance) last() string {
	var said strings.Builder
	for _, p := range i.procs {
		select {
		case <-p.ended:
			fmt.Fprintf(&said, "; %s: %v", p.cmd.Path, p.cmd.ProcessState)
		case <-time.After(100 * time.Millisecond): // it may just be ending
		}
		if s := p.stderr.String(); s != "" {
			said.WriteString(": " + s)
		}
	}
	return said.String()
}

// End lets the program end, and returns an error unless it does so with code 0.
func (i *Instance) End() error {
	var errs []error
	for k := len(i.procs) - 1; k >= 0; k-- {
		errs = append(errs, i.procs[k].end())
	}
	return errors.Join(append(errs, os.RemoveAll(i.dir))...)
}

// Kill ends the program by force.
func (i *Instance) Kill() {
	for _, p := range i.procs {
		_ = p.cmd.Process.Kill() // it may have ended
		<-p.ended
	}
	_ = os.RemoveAll(i.dir) // what ended by force may have left anything
}

// A proc is a process of an instance.
type proc struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	stop   os.Signal // ends it; nil for the end of its input
	code   int       // that it ends with then
	stderr tail
	ended  chan struct{}
	err    error
}

// patience is how long a program may take to end.
const patience = 2 * time.Minute

func (p *proc) end() error {
	if p.stop != nil {
		_ = p.cmd.Process.Signal(p.stop) // how it has ended is looked at below
	}
	if p.stdin != nil {
		_ = p.stdin.Close()
	}
	select {
	case <-p.ended:
	case <-time.After(patience):
		return errors.Join(fmt.Errorf("%s doesn't end", p.cmd.Path), p.cmd.Process.Kill())
	}
	if code := p.cmd.ProcessState.ExitCode(); code != p.code {
		return fmt.Errorf("%s: %v instead of exit code %d: %s", p.cmd.Path, p.cmd.ProcessState, p.code, p.stderr.String())
	}
	return nil
}

// run starts a process of an instance.
func (i *Instance) run(cmd *exec.Cmd) (*proc, error) {
	p := &proc{cmd: cmd, ended: make(chan struct{})}
	cmd.Stderr = &p.stderr
	cmd.WaitDelay = time.Second // a child of it may hold its stderr
	dieWithUs(cmd)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	i.procs = append(i.procs, p)
	return p, nil
}

// converse starts a process that does a portion of work for what it reads.
func converse(ctx context.Context, portion, path string, args ...string) (*Instance, error) {
	i := &Instance{portion: portion}
	cmd := exec.CommandContext(ctx, path, args...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	// Not StdoutPipe, which Wait closes before all has been read.
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = in
	i.in, i.out = stdin, bufio.NewReader(out)
	p, err := i.run(cmd)
	if err != nil {
		return nil, errors.Join(err, in.Close(), out.Close())
	}
	p.stdin = stdin
	i.PID = cmd.Process.Pid
	return i, in.Close()
}

// tail keeps the last that was written.
type tail struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Write(b)
	const keep = 4096
	if n := t.buf.Len(); n > 2*keep {
		t.buf.Next(n - keep)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(t.buf.String())
}
