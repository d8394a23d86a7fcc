package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder"
)

// A patient is a process that we have started to try things on. It waits for its stdin, so that it ends when we do,
// however that happens.
type patient struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser

	mu     sync.Mutex
	answer bytes.Buffer
}

func admit(ctx context.Context, path string, args ...string) (*patient, error) {
	p := &patient{cmd: exec.CommandContext(ctx, path, args...)}
	p.cmd.Stdout = p
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.stdin = stdin
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	return p, nil
}

// Write takes what the patient says.
func (p *patient) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answer.Write(b)
}

func (p *patient) pid() int { return p.cmd.Process.Pid }

// ask gives the patient a line and waits until it has said something.
func (p *patient) ask(patience time.Duration) error {
	p.mu.Lock()
	p.answer.Reset()
	p.mu.Unlock()
	if _, err := io.WriteString(p.stdin, "are you well?\n"); err != nil {
		return err
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		p.mu.Lock()
		n := p.answer.Len()
		p.mu.Unlock()
		if n > 0 {
			return nil
		}
	}
	return fmt.Errorf("no answer within %v", patience)
}

// discharge ends the patient and says whether it was well to the end.
func (p *patient) discharge() error {
	p.stdin.Close()
	end := time.AfterFunc(answerPatience, func() { _ = p.cmd.Process.Kill() })
	defer end.Stop()
	return p.cmd.Wait()
}

const (
	answerPatience = 10 * time.Second
	trialTime      = 200 * time.Millisecond // of recording
)

// writeText changes the text of a process through /proc/PID/mem, and changes it back.
func writeText(ctx context.Context, self string) Check {
	const name = "writing text"
	p, err := admit(ctx, self, "demangle")
	if err != nil {
		return warning(name, "", "not tried: callreel can't start itself: %v", err)
	}
	err = p.ask(answerPatience)
	if err == nil {
		err = rewriteText(ctx, p.pid())
	}
	if derr := p.discharge(); err == nil {
		err = derr
	}
	if err != nil {
		return no(name, writeAdvice(err), "on a process of our own: %v", err)
	}
	return ok(name, "tried on a process of our own")
}

func writeAdvice(err error) string {
	if errors.Is(err, process.ErrNotPermitted) {
		return "see above, and the container's or the security module's policy on ptrace"
	}
	return "the kernel may be configured against it: boot with proc_mem.force_override=always"
}

// rewriteText replaces the first bytes of a program's text while it stands, and puts them back.
func rewriteText(ctx context.Context, pid int) error {
	p, err := process.Open(pid)
	if err != nil {
		return err
	}
	defer p.Close()
	maps, err := p.Maps()
	if err != nil {
		return err
	}
	var text uint64
	for _, m := range maps {
		if m.Perm&process.PermExec != 0 && m.Perm&process.PermWrite == 0 && m.Inode != 0 {
			text = m.Start
			break
		}
	}
	if text == 0 {
		return errors.New("it has no text")
	}
	_, err = p.Stop(ctx, process.StopOptions{}, func(*process.Stopped) error {
		var old, now [16]byte
		if _, err := p.ReadAt(old[:], text); err != nil {
			return err
		}
		changed := old
		for i := range changed {
			changed[i] ^= 0xFF
		}
		if _, err := p.WriteAt(changed[:], text); err != nil {
			return err
		}
		_, err := p.ReadAt(now[:], text)
		if err == nil && now != changed {
			err = errors.New("what was written isn't there")
		}
		_, back := p.WriteAt(old[:], text)
		return errors.Join(err, back)
	})
	return err
}

// recording records a real program for a moment, and sees that it is well afterwards.
func recording(ctx context.Context) Check {
	const name = "recording"
	path, err := exec.LookPath("cat")
	if err != nil {
		return warning(name, "", "not tried: there is no program cat to try it on")
	}
	dir, err := os.MkdirTemp("", "callreel-doctor-")
	if err != nil {
		return warning(name, "set TMPDIR to a folder that can be written to", "not tried: %v", err)
	}
	defer os.RemoveAll(dir)
	p, err := admit(ctx, path)
	if err != nil {
		return warning(name, "", "not tried: %v", err)
	}
	var result *recorder.Result
	if err = p.ask(answerPatience); err == nil {
		result, err = recordBusy(ctx, p, filepath.Join(dir, "trial.reel"))
	}
	if err == nil {
		err = p.ask(answerPatience)
	}
	if derr := p.discharge(); err == nil {
		err = derr
	}
	switch {
	case err != nil:
		return no(name, "", "tried on %s: %v", path, err)
	case !result.TextVerified || result.Left != "":
		return no(name, "please report this", "tried on %s: its text isn't what it was (%s)", path, result.Left)
	case result.Calls == 0:
		return no(name, "please report this", "tried on %s: no call was seen", path)
	}
	return ok(name, "tried on %s: %d calls; stopped %.1f ms to attach and %.1f ms to detach; left as it was", path, result.Calls,
		result.AttachStop.Seconds()*1e3, result.DetachStop.Seconds()*1e3)
}

// recordBusy records the patient while it is asked things.
func recordBusy(ctx context.Context, p *patient, reel string) (*recorder.Result, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	asked := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			if err := p.ask(answerPatience); err != nil {
				asked <- err
				return
			}
		}
		asked <- nil
	}()
	result, err := recorder.Record(ctx, recorder.Options{PID: p.pid(), Output: reel, Duration: trialTime, RingSize: 4 << 20})
	stop()
	return result, errors.Join(err, <-asked)
}
