package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/callreel/callreel/bench/programs"
	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/recorder"
)

// An attacker lets recorders come to one process.
type attacker struct {
	c       config
	random  *rand.Rand
	program programs.Program
	pid     int
	told    *soaked
	history []string
	killed  int // recorders
	// next lets one recorder come; nil for attack. rest is called behind each portion of work, which took so long; nil for no rest.
	next func(ctx context.Context) error
	rest func(took time.Duration)
}

// chance is true once in n times.
func (a *attacker) chance(n int) bool { return a.random.IntN(n) == 0 }

// upTo is a random time.
func (a *attacker) upTo(d time.Duration) time.Duration {
	return time.Duration(a.random.Int64N(int64(d)))
}

// flags are what a recorder is told.
func (a *attacker) flags() (flags []string) {
	switch a.random.IntN(3) {
	case 0:
		flags = append(flags, "--lazy")
	case 1:
		flags = append(flags, "--eager")
	}
	if a.chance(3) {
		for _, image := range a.program.Images {
			flags = append(flags, "-m", image)
		}
	}
	if a.chance(4) {
		flags = append(flags, "--lossless")
	}
	if a.chance(5) {
		flags = append(flags, "--ring", "1M")
	}
	for _, markers := range a.program.Markers {
		if a.chance(3) {
			flags = append(flags, "--markers", markers)
			if a.chance(2) {
				flags = append(flags, "-f", "*")
			}
		}
	}
	if a.chance(6) {
		flags = append(flags, "--paused")
	}
	if a.chance(8) && !a.program.Timed {
		flags = append(flags, "--follow")
	}
	if a.chance(5) && !a.program.Timed && !slices.Contains(flags, "--markers") {
		flags = append(flags, "--clock", []string{"exit", "none"}[a.random.IntN(2)])
	}
	if a.chance(3) && !slices.Contains(flags, "--clock") && !slices.Contains(flags, "--follow") {
		flags = append(flags, "--budget", []string{"0.1%", "1%", "10%"}[a.random.IntN(3)])
	}
	return flags
}

// attack lets one recorder come to the process, and asserts that nothing is left of it.
func (a *attacker) attack(ctx context.Context) error {
	flags := a.flags()
	if a.chance(2) {
		flags = append(flags, "-d", (20*time.Millisecond + a.upTo(600*time.Millisecond)).Round(time.Millisecond).String())
	}
	how := []string{"end", "end", "kill", "kill", "kill", "kill and go", "kill detach", "stand"}[a.random.IntN(8)]
	delay := a.upTo(time.Second)
	if slices.Contains(flags, "--budget") && a.chance(2) { // its sites are taken out after half a second, and may be put back after two
		delay += a.upTo(3 * time.Second)
	}
	begun := a.chance(3) // while it attaches, else when it records
	file := reelOf(a.c, a.pid)
	_ = os.Remove(file) // it may not be there
	args := append([]string{"record", "--json", "-o", file, "-p", strconv.Itoa(a.pid)}, flags...)
	a.history = append(a.history, fmt.Sprintf("%s %v after its %s: callreel %s", how, delay.Round(time.Millisecond), map[bool]string{true: "start", false: "reel"}[begun], strings.Join(args, " ")))
	r, err := a.start(args...)
	if err != nil {
		return err
	}
	if !begun {
		r.records(ctx, file)
	}
	if a.chance(2) {
		if err := a.pauses(ctx, r, delay); err != nil {
			return err
		}
	} else {
		r.pause(ctx, delay)
	}
	switch how {
	case "end":
		_ = r.cmd.Process.Signal(os.Interrupt) // it may have ended
	case "stand":
		_ = r.cmd.Process.Signal(syscall.SIGSTOP)
		pause := a.upTo(3 * time.Second)
		a.history[len(a.history)-1] += " … standing for " + pause.Round(time.Millisecond).String()
		time.Sleep(pause)
		_ = r.cmd.Process.Signal(syscall.SIGCONT)
		_ = r.cmd.Process.Signal(os.Interrupt)
	default:
		_ = r.cmd.Process.Kill()
	}
	if err := r.wait(); err != nil {
		return err
	}
	_, statErr := os.Stat(file)
	on := statErr == nil
	if err := a.reel(file); err != nil {
		return err
	}
	switch {
	case r.killed() && how == "kill and go":
		// What comes next has to cope.
		a.tell("killed", on)
		return nil
	case r.killed() && how == "kill detach":
		a.tell("killed, and its detach killed", on)
		d, err := a.start("detach", "-p", strconv.Itoa(a.pid))
		if err != nil {
			return err
		}
		d.pause(ctx, a.upTo(300*time.Millisecond))
		_ = d.cmd.Process.Kill()
		if err := d.wait(); err != nil {
			return err
		}
		return a.detach()
	case r.killed():
		a.tell("killed, then detached", on)
		return a.detach()
	}
	return a.ended(r, on)
}

// pauses lets the recorder pause and go on for a time. Who asks for that may be killed, too.
func (a *attacker) pauses(ctx context.Context, r *soakRun, long time.Duration) error {
	for end := time.Now().Add(long); time.Now().Before(end) && ctx.Err() == nil; {
		verb := []string{"pause", "resume"}[a.random.IntN(2)]
		p, err := a.start(verb, "-p", strconv.Itoa(a.pid))
		if err != nil {
			return err
		}
		if a.chance(6) {
			p.pause(ctx, a.upTo(20*time.Millisecond))
			_ = p.cmd.Process.Kill() // it may have ended
		}
		if err := p.wait(); err != nil {
			return err
		}
		// It fails where there is no recorder: it hasn't come so far, or has ended.
		if p.cmd.ProcessState.ExitCode() == 0 {
			a.told.outcomes[verb]++
			a.history[len(a.history)-1] += " " + verb
		}
		r.pause(ctx, a.upTo(30*time.Millisecond))
	}
	return nil
}

// tell counts how a recorder was killed.
func (a *attacker) tell(how string, on bool) {
	a.killed++
	if !on {
		how += " before it recorded"
	}
	a.told.outcomes[how]++
}

// exitUnsupported is callreel's code for what isn't permitted or doesn't work here.
const exitUnsupported = 3

// ended judges a recorder that ended in its own way.
func (a *attacker) ended(r *soakRun, on bool) error {
	code := r.cmd.ProcessState.ExitCode()
	// Before it is about to handle it, Ctrl-C ends it like any program.
	if !on && (code == 1 || code == 128+int(syscall.SIGINT) || r.by(syscall.SIGINT)) {
		a.told.outcomes["interrupted early"]++
		return a.detach() // from one before, that this one was about to clean up after
	}
	if !on && code == exitUnsupported && strings.Contains(r.stderr.String(), "try again later") {
		a.told.outcomes["refused for the moment"]++ // a thread didn't get to run, and so to stop, in time
		return a.detach()
	}
	if !on && code == exitUnsupported && strings.Contains(r.stderr.String(), recorder.ErrUnsupported.Error()) {
		a.told.outcomes["not supported here"]++
		return a.detach()
	}
	if code != 0 {
		return r.failed("exit code %d", code)
	}
	var s struct {
		Calls        int64  `json:"calls"`
		TextVerified bool   `json:"text_verified"`
		Ended        bool   `json:"ended"`
		Left         string `json:"left"`
	}
	if err := json.Unmarshal(r.stdout.Bytes(), &s); err != nil {
		return r.failed("%v", err)
	}
	if !s.TextVerified {
		return r.failed("text not verified")
	}
	a.told.outcomes["recorded"]++
	if s.Left != "" {
		a.told.outcomes["stubs left for a while"]++
		return a.detach()
	}
	return a.untouched()
}

// detach cleans up after a recorder that was killed.
func (a *attacker) detach() error {
	for range 20 {
		d, err := a.start("detach", "-p", strconv.Itoa(a.pid))
		if err != nil {
			return err
		}
		if err := d.wait(); err != nil {
			return err
		}
		code, said := d.cmd.ProcessState.ExitCode(), d.stdout.String()
		switch {
		case code == 0 && strings.Contains(said, "not being recorded"):
			return a.untouched()
		case code != 0:
			return d.failed("exit code %d", code)
		case !strings.Contains(said, "text verified: true"):
			return d.failed("text not verified: %s", said)
		case !strings.Contains(said, "stay mapped"):
			return a.untouched()
		}
		a.told.outcomes["stubs left for a while"]++
		time.Sleep(200 * time.Millisecond)
	}
	return errors.New("stubs stay mapped")
}

// untouched returns an error if the process isn't as it was.
func (a *attacker) untouched() error { return leftAlone(a.pid) }

// semaphores returns an error if those of markers aren't as they were. Each recorder that was killed may have left one of them one too high.
func (a *attacker) semaphores() error {
	if len(a.program.Markers) == 0 {
		return nil
	}
	r, err := a.start("markers", "--json", "-p", strconv.Itoa(a.pid))
	if err != nil {
		return err
	}
	if err := r.wait(); err != nil {
		return err
	}
	var list struct {
		Markers []struct {
			Name      string
			Semaphore string
			Count     int
		}
	}
	if err := json.Unmarshal(r.stdout.Bytes(), &list); err != nil {
		return r.failed("%v", err)
	}
	high := map[string]int{}
	for _, m := range list.Markers {
		if m.Count > a.killed {
			return fmt.Errorf("the semaphore of %s is %d, with %d recorders killed", m.Name, m.Count, a.killed)
		}
		if m.Count > 0 {
			high[m.Semaphore] = m.Count
		}
	}
	a.told.outcomes["semaphores that stay too high"] += len(high)
	return nil
}

// leftAlone returns an error if a process isn't as if it had never been recorded.
func leftAlone(pid int) error {
	err := realtest.TextAsFile(pid)
	for tries := 0; err != nil && tries < 5; tries++ { // a library may go while it is looked at
		err = realtest.TextAsFile(pid)
	}
	if err != nil {
		return err
	}
	remains, err := realtest.RemainsIn(pid)
	if err != nil {
		return err
	}
	if len(remains) > 0 {
		return fmt.Errorf("there is still %+v", remains)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(status)) {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		if key == "TracerPid" && value != "0" || key == "State" && strings.ContainsAny(value[:1], "TtZX") {
			return fmt.Errorf("%s: %s", key, value)
		}
	}
	return nil
}

// reel asserts that what a recorder has written can be read, if there is anything.
func (a *attacker) reel(file string) error {
	if info, err := os.Stat(file); err != nil || info.Size() == 0 || !a.chance(4) {
		return nil
	}
	r, err := a.start("report", "--json", file)
	if err != nil {
		return err
	}
	if err := r.wait(); err != nil {
		return err
	}
	if r.cmd.ProcessState.ExitCode() != 0 {
		return r.failed("report: %v", r.cmd.ProcessState)
	}
	return nil
}

// soakRun is a run of callreel.
type soakRun struct {
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
	ended          chan struct{}
}

func (a *attacker) start(args ...string) (*soakRun, error) {
	r := &soakRun{cmd: exec.Command(a.c.callreel, args...), ended: make(chan struct{})}
	r.cmd.Stdout, r.cmd.Stderr = &r.stdout, &r.stderr
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = r.cmd.Wait() // how it has ended is in ProcessState
		close(r.ended)
	}()
	return r, nil
}

// pause waits for a time, or for the end of the run.
func (r *soakRun) pause(ctx context.Context, d time.Duration) {
	select {
	case <-r.ended:
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// records waits until the run records, which the reel tells.
func (r *soakRun) records(ctx context.Context, file string) {
	for ctx.Err() == nil {
		select {
		case <-r.ended:
			return
		case <-time.After(5 * time.Millisecond):
		}
		if info, err := os.Stat(file); err == nil && info.Size() > 0 {
			return
		}
	}
}

// wait waits for the end of the run, which has to come.
func (r *soakRun) wait() error {
	select {
	case <-r.ended:
	case <-time.After(2 * time.Minute):
		_ = r.cmd.Process.Signal(syscall.SIGQUIT) // what it was doing is told then
		select {
		case <-r.ended:
		case <-time.After(10 * time.Second):
			_ = r.cmd.Process.Kill()
			<-r.ended
		}
		return r.failed("it didn't end within two minutes")
	}
	if strings.Contains(r.stderr.String(), "goroutine ") {
		return r.failed("it panicked")
	}
	return nil
}

func (r *soakRun) killed() bool { return r.by(syscall.SIGKILL) }

// by says whether that signal ended the run.
func (r *soakRun) by(sig syscall.Signal) bool {
	status, ok := r.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == sig
}

func (r *soakRun) failed(format string, args ...any) error {
	return fmt.Errorf("callreel %s: %s: %s", r.cmd.Args[1], fmt.Sprintf(format, args...), strings.TrimSpace(r.stderr.String()))
}
