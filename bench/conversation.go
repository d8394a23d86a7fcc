package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// buildTarget compiles a source of bench/target and returns the binary's path.
func buildTarget(ctx context.Context, c config, name, compiler, source string, flags ...string) (string, error) {
	out := filepath.Join(c.dir, name)
	args := append([]string{"-O2", "-g", "-o", out, filepath.Join(c.source, source)}, flags...)
	if said, err := exec.CommandContext(ctx, compiler, args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", compiler, err, compilerComplaint(string(said)))
	}
	return out, nil
}

// compilerComplaint is the first line that says what is wrong.
func compilerComplaint(said string) string {
	for line := range strings.Lines(said) {
		if strings.Contains(line, "error") || strings.Contains(line, "cannot find") {
			return strings.TrimSpace(line)
		}
	}
	return strings.TrimSpace(said)
}

// A conversation is with a running program that answers each line with a line.
type conversation struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// converse starts a program. Nobody waits for it until it is ended: a wait would take the stops
// that are for whoever traces it.
func converse(ctx context.Context, path string, args ...string) (*conversation, error) {
	t := &conversation{cmd: exec.CommandContext(ctx, path, args...)}
	t.cmd.Stderr = os.Stderr
	var err error
	if t.in, err = t.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := t.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	t.out = bufio.NewReader(stdout)
	return t, t.cmd.Start()
}

func (t *conversation) pid() int { return t.cmd.Process.Pid }

func (t *conversation) say(line string) error {
	if _, err := fmt.Fprintln(t.in, line); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(t.cmd.Path), err)
	}
	return nil
}

func (t *conversation) hear() (string, error) {
	line, err := t.out.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("%s: %w", filepath.Base(t.cmd.Path), err)
	}
	return strings.TrimSpace(line), nil
}

// ask says a line and scans the answer into the places given.
func (t *conversation) ask(line string, places ...any) error {
	if err := t.say(line); err != nil {
		return err
	}
	answer, err := t.hear()
	if err != nil {
		return err
	}
	if _, err := fmt.Sscan(answer, places...); err != nil {
		return fmt.Errorf("%s: %s: %q", filepath.Base(t.cmd.Path), line, answer)
	}
	return nil
}

// end lets the program end by itself.
func (t *conversation) end() error {
	return errors.Join(t.in.Close(), t.cmd.Wait())
}

// kill ends a program that does not look at its input.
func (t *conversation) kill() error {
	err := errors.Join(t.in.Close(), t.cmd.Process.Kill())
	_ = t.cmd.Wait() // killed
	return err
}
