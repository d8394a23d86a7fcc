package realtest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a target may take over anything: to get ready, to print
// a line, to end. It is generous because test machines are shared; a target
// that needs it is broken, not slow.
const patience = 60 * time.Second

// A Proc is a running target. It is ended when its test is over.
type Proc struct {
	t     testing.TB
	name  string
	cmd   *exec.Cmd
	stdin io.WriteCloser

	mu     sync.Mutex
	stdout []string // whole lines
	stderr bytes.Buffer
	grown  chan struct{} // closed and replaced whenever stdout grows or ends

	done  chan struct{} // closed once the process has been reaped
	whole chan struct{} // closed once stdout has been read to its end
	err   error         // of Wait; read after done
}

// Start runs the program at path and returns when it has printed "ready", as
// the targets do. Its stdin stays open until [Proc.Finish] or the end of the
// test.
func Start(t testing.TB, path string, args ...string) *Proc {
	t.Helper()
	p := StartCommand(t, exec.Command(path, args...))
	p.WaitLine("ready")
	return p
}

// StartCommand runs cmd, whose Stdin, Stdout and Stderr must be nil, without
// waiting for anything.
func StartCommand(t testing.TB, cmd *exec.Cmd) *Proc {
	t.Helper()
	p := &Proc{
		t: t, name: cmd.Args[0], cmd: cmd,
		grown: make(chan struct{}), done: make(chan struct{}), whole: make(chan struct{}),
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatalf("realtest: start %s: %v", p.name, err)
	}
	p.stdin = stdin
	// An os.Pipe of our own, since Wait must not close the read end while lines
	// are still coming.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatalf("realtest: start %s: %v", p.name, err)
	}
	cmd.Stdout = w
	cmd.Stderr = lockedWriter{p}
	started := make(chan error)
	go p.live(started)
	if err := <-started; err != nil {
		t.Fatalf("realtest: start %s: %v", p.name, errors.Join(err, r.Close(), w.Close()))
	}
	if err := w.Close(); err != nil {
		t.Errorf("realtest: start %s: %v", p.name, err)
	}
	go p.read(r)
	t.Cleanup(p.end)
	return p
}

// live starts the process and reaps it on one OS thread, which the kernel ties
// the process's life to.
func (p *Proc) live(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ownThread(p.cmd)
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	p.err = p.cmd.Wait()
	close(p.done)
}

func (p *Proc) read(r *os.File) {
	defer close(p.whole)
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		p.mu.Lock()
		p.stdout = append(p.stdout, lines.Text())
		close(p.grown)
		p.grown = make(chan struct{})
		p.mu.Unlock()
	}
	if err := errors.Join(lines.Err(), r.Close()); err != nil {
		p.mu.Lock()
		fmt.Fprintf(&p.stderr, "realtest: reading stdout: %v\n", err)
		p.mu.Unlock()
	}
}

// Pid returns the process's ID, which stays its own until the test is over.
func (p *Proc) Pid() int { return p.cmd.Process.Pid }

// Ended says how the process ended and what it printed, or that it has not
// within a second: for the message of a test that finds it gone.
func (p *Proc) Ended() string {
	select {
	case <-p.ended():
		return fmt.Sprintf("%s: %v\n%s", p.name, p.err, p.said())
	case <-time.After(time.Second):
		return p.name + " lives"
	}
}

// Alive reports whether the process has not ended yet.
func (p *Proc) Alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Stdout returns the lines printed so far.
func (p *Proc) Stdout() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.stdout...)
}

// Stderr returns what was written to stderr so far.
func (p *Proc) Stderr() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.String()
}

// Go writes one line to the target's stdin: the targets of a fixed number of
// calls start making them then.
func (p *Proc) Go() {
	p.t.Helper()
	p.Say("go")
}

// Say writes a line to the target's stdin.
func (p *Proc) Say(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.stdin, line+"\n"); err != nil {
		p.t.Fatalf("realtest: %s: tell it %q: %v\n%s", p.name, line, err, p.said())
	}
}

// WaitLine returns the first line of stdout that starts with prefix, once it is
// there. The test fails when the process ends before, or takes longer than a
// minute.
func (p *Proc) WaitLine(prefix string) string {
	p.t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	ended := p.ended()
	for {
		p.mu.Lock()
		grown := p.grown
		for _, line := range p.stdout {
			if strings.HasPrefix(line, prefix) {
				p.mu.Unlock()
				return line
			}
		}
		p.mu.Unlock()
		if ended == nil {
			p.t.Fatalf("realtest: %s ended (%v) without printing %q\n%s", p.name, p.err, prefix, p.said())
		}
		select {
		case <-grown:
		case <-ended:
			ended = nil
		case <-late.C:
			p.t.Fatalf("realtest: %s has not printed %q in %v\n%s", p.name, prefix, patience, p.said())
		}
	}
}

// Signal sends sig to the process and fails the test when it cannot.
func (p *Proc) Signal(sig os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatalf("realtest: %s: send %v: %v\n%s", p.name, sig, err, p.said())
	}
}

// Wait closes stdin, which tells a target to end, and returns its exit code, or
// 128 + the number of the signal that killed it, as a shell does.
func (p *Proc) Wait() int {
	p.t.Helper()
	// A target that is already gone has closed its end: the code says so.
	_ = p.stdin.Close()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatalf("realtest: %s has not ended %v after the end of its stdin\n%s", p.name, patience, p.said())
	}
	<-p.ended()
	return exitCode(p.cmd.ProcessState)
}

// ended returns a channel that is closed when the process has been reaped and
// what it printed has been read. A child of the target that still holds stdout
// delays it by a second at most.
func (p *Proc) ended() <-chan struct{} {
	c := make(chan struct{})
	go func() {
		defer close(c)
		<-p.done
		select {
		case <-p.whole:
		case <-time.After(time.Second):
		}
	}()
	return c
}

// Finish tells a target to end, and returns the counts of its last line, which
// must end in "ok". A target that found something wrong fails the test.
func (p *Proc) Finish() Counts {
	p.t.Helper()
	if code := p.Wait(); code != 0 {
		p.t.Fatalf("realtest: %s: exit code %d\n%s", p.name, code, p.said())
	}
	var last string
	if lines := p.Stdout(); len(lines) > 0 {
		last = lines[len(lines)-1]
	}
	counts, err := ParseCounts(last)
	if err != nil {
		p.t.Fatalf("realtest: %s: %v\n%s", p.name, err, p.said())
	}
	return counts
}

// end makes sure that nothing outlives the test.
func (p *Proc) end() {
	_ = p.stdin.Close() // the target may have closed its end already
	if p.Alive() {
		if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			p.t.Errorf("realtest: end %s: %v", p.name, err)
		}
	}
	<-p.done
}

// said is what a failure message shows of the target.
func (p *Proc) said() string {
	const most = 20
	lines := p.Stdout()
	if len(lines) > most {
		lines = append([]string{"…"}, lines[len(lines)-most:]...)
	}
	return fmt.Sprintf("its stdout:\n%s\nits stderr:\n%s", strings.Join(lines, "\n"), p.Stderr())
}

// lockedWriter is the stderr of a target, which a test reads while it grows.
type lockedWriter struct{ p *Proc }

func (w lockedWriter) Write(b []byte) (int, error) {
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	return w.p.stderr.Write(b)
}

func exitCode(state *os.ProcessState) int {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return state.ExitCode()
}
