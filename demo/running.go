package demo

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Running is the server and its load.
type Running struct {
	server *exec.Cmd
	load   *exec.Cmd
	loaded chan error // the load's end
	said   bytes.Buffer
	failed bytes.Buffer
}

// startPatience is how long the server may take until it listens.
const startPatience = 10 * time.Second

// Start starts what Build has made in dir: the server on a free port of the loopback interface, and the load for so
// many seconds at most, see EndLoad. The end of ctx kills both; so does our own death on Linux, as long as the
// calling goroutine stays locked to its thread. Whoever called Start calls Stop.
func Start(ctx context.Context, dir string, seconds int) (*Running, error) {
	r := &Running{loaded: make(chan error, 1)}
	port, err := r.startServer(ctx, dir)
	if err != nil {
		return nil, err
	}
	program, err := filepath.Abs(filepath.Join(dir, Load))
	if err == nil {
		r.load = exec.CommandContext(ctx, program, strconv.Itoa(port), strconv.Itoa(seconds))
		r.load.Stdout, r.load.Stderr = &r.said, &r.failed
		dieWithUs(r.load)
		err = r.load.Start()
	}
	if err != nil {
		r.load = nil
		r.Stop()
		return nil, fmt.Errorf("demo: starting the load: %w", err)
	}
	go func() { r.loaded <- r.load.Wait() }()
	return r, nil
}

// startServer returns the port on which the server listens.
func (r *Running) startServer(ctx context.Context, dir string) (int, error) {
	fail := func(err error) (int, error) { return 0, fmt.Errorf("demo: starting the server: %w", err) }
	program, err := filepath.Abs(filepath.Join(dir, Server))
	if err != nil {
		return fail(err)
	}
	out, in, err := os.Pipe()
	if err != nil {
		return fail(err)
	}
	defer out.Close()
	r.server = exec.CommandContext(ctx, program, "0")
	r.server.Stdout, r.server.Stderr = in, &r.failed
	dieWithUs(r.server)
	err = r.server.Start()
	in.Close()
	if err != nil {
		return fail(err)
	}
	_ = out.SetReadDeadline(time.Now().Add(startPatience)) // a pipe has deadlines
	line, err := bufio.NewReader(out).ReadString('\n')
	text, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err == nil && !ok {
		err = fmt.Errorf("it says %q", line)
	}
	port := 0
	if err == nil {
		port, err = strconv.Atoi(text)
	}
	if err != nil {
		r.Stop()
		return fail(fmt.Errorf("%w %s", err, bytes.TrimSpace(r.failed.Bytes())))
	}
	return port, nil
}

// ServerPID is the server's process ID.
func (r *Running) ServerPID() int { return r.server.Process.Pid }

// EndLoad ends the load, if it isn't over, and returns what it has seen, a line.
func (r *Running) EndLoad() (string, error) {
	_ = r.load.Process.Signal(syscall.SIGTERM) // it may have ended
	err := <-r.loaded
	r.loaded <- err // for Stop
	if err != nil {
		return "", fmt.Errorf("demo: the load: %w %s", err, bytes.TrimSpace(r.failed.Bytes()))
	}
	return strings.TrimSpace(r.said.String()), nil
}

// Stop ends the server and the load, and waits for their end.
func (r *Running) Stop() {
	if r.load != nil {
		_ = r.load.Process.Kill() // it may have ended
		err := <-r.loaded
		r.loaded <- err
	}
	if r.server.ProcessState == nil {
		_ = r.server.Process.Kill()
		_ = r.server.Wait()
	}
}
