//go:build amd64 || arm64

package step

import (
	"context"
	"errors"
	"os"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/process"
)

var errNoCommand = errors.New("cfi: step: no command is given")

// Run runs a command to its end and returns what has shown. When ctx ends, the command is killed; what was found until then
// is returned beside ctx's cause.
//
// The errors are those of process.Launch, and the one of Options.Ready.
func Run(ctx context.Context, opt Options) (*Result, error) {
	if len(opt.Command) == 0 {
		return nil, errNoCommand
	}
	if opt.MaxSteps == 0 {
		opt.MaxSteps = DefaultMaxSteps
	}
	e := &engine{opt: opt, threads: map[int]*thread{}, stepped: map[int]bool{}}
	e.result.Complete = true
	ready := false
	status, err := process.Trace(ctx, process.Command{
		Path: opt.Command[0], Args: opt.Command, Ignored: opt.Ignored,
		Stdin: opt.Stdin, Stdout: opt.Stdout, Stderr: opt.Stderr,
	}, func(t *process.Tracing) error {
		if err := e.begin(t); err != nil {
			return err
		}
		ready = true
		defer killWhenDone(ctx, t.Process().Pid())()
		return e.loop()
	})
	defer e.close()
	if !ready {
		return nil, err
	}
	e.result.ExitStatus = status
	if ctx.Err() != nil {
		err = errors.Join(err, context.Cause(ctx))
	}
	return e.finish(), err
}

// killWhenDone kills the command when ctx ends, which ends the wait for its stops. The function returned undoes that; the
// process has not been waited for before, so that its ID is still its own.
func killWhenDone(ctx context.Context, pid int) func() {
	p, err := os.FindProcess(pid)
	if err != nil {
		return func() {}
	}
	stop := context.AfterFunc(ctx, func() { _ = p.Kill() })
	return func() {
		stop()
		_ = p.Release()
	}
}

// begin chooses functions in a command that stands at its entry point, and lets it go on.
func (e *engine) begin(t *process.Tracing) error {
	p := t.Process()
	e.t = t
	p.LimitMemory(e.opt.Memory)
	e.images = images{p: p, memory: object.NewAllowance(e.opt.Memory), loaded: map[imageKey]*image{}, opened: map[imageKey]error{}}
	e.breaks = breakpoints{p: p, at: map[uint64]*breakpoint{}, were: map[uint64]instruction{}}
	e.compared.read = func(addr uint64, buf []byte) error {
		_, err := p.ReadAt(buf, addr)
		return err
	}
	if err := e.rescan(); err != nil {
		return err
	}
	if e.opt.Ready != nil {
		if err := e.opt.Ready(); err != nil {
			return err
		}
	}
	th := e.thread(p.Pid())
	if err := e.readRegs(th); err != nil {
		return err
	}
	return e.goOn(th, 0)
}

// rescan looks for images that were loaded or unloaded, and chooses functions in new ones.
func (e *engine) rescan() error {
	fresh, gone, problems, err := e.images.scan()
	if err != nil {
		return err
	}
	e.result.Problems = append(e.result.Problems, problems...)
	for _, im := range gone {
		e.retire(im)
	}
	for _, im := range fresh {
		if s := im.loaderStop(); s != 0 {
			e.loaderStop = s + im.slide
			if err := e.breaks.add(e.loaderStop); err != nil {
				return err
			}
		}
		if e.opt.Module != nil && !e.opt.Module(im.module) {
			continue
		}
		im.choose(e.opt.Function)
		e.result.Chosen += len(im.functions)
		for addr := range im.functions {
			if err := e.breaks.add(addr + im.slide); err != nil {
				e.result.Problems = append(e.result.Problems, err)
				delete(im.functions, addr)
			}
		}
	}
	return nil
}

// retire takes the findings of an image that was unloaded.
func (e *engine) retire(im *image) {
	e.gather(im)
	for _, s := range im.object.Segments() {
		e.breaks.forget(s.Addr+im.slide, s.Addr+s.MemSize+im.slide)
	}
	for _, t := range e.threads {
		for k := range t.frames {
			if t.frames[k].function.image == im {
				e.cut(t, k)
				break
			}
		}
	}
	im.object.Close()
}

// gather takes an image's findings.
func (e *engine) gather(im *image) {
	e.result.Findings = append(e.result.Findings, im.findings()...)
	for _, f := range im.functions {
		if f.followed {
			e.result.Functions++
		}
	}
}

func (e *engine) finish() *Result {
	for _, im := range e.images.loaded {
		e.gather(im)
	}
	sortFindings(e.result.Findings)
	e.result.Threads = len(e.stepped)
	return &e.result
}

func (e *engine) close() {
	for _, im := range e.images.loaded {
		im.object.Close()
	}
}

// loaderStop is the link address of the function that the dynamic loader calls when it has loaded or unloaded libraries, for
// debuggers to stop there (r_brk of struct r_debug, System V gABI's <link.h>); 0 where it is not.
func (im *image) loaderStop() uint64 {
	if im.object.Interp() != "" {
		return 0
	}
	for k := range im.symbols {
		if s := &im.symbols[k]; s.Name == "_dl_debug_state" {
			return s.Addr
		}
	}
	return 0
}
