package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder"
)

// Process checks whether a process can be recorded. Like a recording it stops the process, for about a millisecond; it
// changes nothing. Functions is nil where the process can't be looked at.
func Process(ctx context.Context, pid int) ([]Check, *Functions) {
	if process.CodeSupported() != nil {
		return []Check{unsupported()}, nil
	}
	p, err := process.OpenForCode(pid)
	if err != nil {
		return []Check{no("process", "", "%v", err)}, nil
	}
	defer p.Close()
	checks := []Check{ok("process", "%s", describe(p)), remains(p), threads(p), kernelCalls(p), stopped(ctx, p), limits(pid)}
	count, functions := functionsOf(ctx, pid)
	return append(checks, count), functions
}

// describe says who the process is.
func describe(p *process.Process) string {
	text := fmt.Sprintf("%d (%s)", p.Pid(), p.Comm())
	if s, err := p.Status(); err == nil {
		text += fmt.Sprintf(" of user %d", s.UIDs[1])
		if n := len(s.NSPIDs); n > 1 {
			text += fmt.Sprintf(", %d in its container", s.NSPIDs[n-1])
		}
	}
	return text
}

// remains looks for what a recorder has in the process.
func remains(p *process.Process) Check {
	const name = "recorder"
	found, err := recorder.Find(p)
	switch {
	case err != nil:
		return no(name, "", "%v", err)
	case found == nil:
		return ok(name, "none is at work on it")
	case found.Alive:
		return warning(name, "wait for its end, or end it with SIGINT", "process %d is recording it", found.Recorder)
	}
	return warning(name, fmt.Sprintf("callreel detach -p %d", p.Pid()), "it has the probes of process %d, a recorder that has died", found.Recorder)
}

// threads looks for what forbids making system calls in the process.
func threads(p *process.Process) Check {
	const name = "threads"
	list, err := p.Threads()
	if err != nil {
		return no(name, "", "%v", err)
	}
	filtered, shadowed := 0, 0
	for _, t := range list {
		s, err := p.ThreadStatus(t.TID)
		if err != nil {
			continue // it has ended
		}
		switch {
		case s.Seccomp == 1:
			return no(name, "", "thread %d is in strict seccomp mode, which kills it on any system call that setting up needs", t.TID)
		case s.Seccomp != 0:
			filtered++
		}
		if slices.Contains(strings.Fields(s.ThreadFeatures), "shstk") {
			shadowed++
		}
	}
	switch {
	case shadowed == len(list):
		return no(name, "start it with GLIBC_TUNABLES=glibc.cpu.x86_shstk=off", "all %d run on a shadow stack", len(list))
	case filtered > 0 && seccomp().State != OK:
		return no(name, seccomp().Do, "%d of %d have a seccomp filter: %s", filtered, len(list), seccomp().What)
	case filtered > 0:
		return ok(name, "%d of %d have a seccomp filter, which is looked at below", filtered, len(list))
	}
	return ok(name, "%d, without seccomp filters or shadow stacks", len(list))
}

// wanted are the system calls that the recorder makes in a process, and that stubs make.
var wanted = []uintptr{
	unix.SYS_MMAP, unix.SYS_MUNMAP, unix.SYS_MADVISE, unix.SYS_MEMFD_CREATE, unix.SYS_CLOSE, unix.SYS_PRCTL,
	unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_NANOSLEEP,
}

// stopped looks at what shows only while the process is stopped.
func stopped(ctx context.Context, p *process.Process) Check {
	const name = "stopping"
	golang, why := recorder.GoProgram(fmt.Sprintf("/proc/%d/exe", p.Pid()))
	if why != nil {
		return no(name, "", "%v", why)
	}
	stopped, err := p.Stop(ctx, process.StopOptions{}, func(st *process.Stopped) error {
		if !golang { // its runtime tells them otherwise
			if _, err := st.TIDOffset(); err != nil && !errors.Is(err, process.ErrNoThreadID) {
				return err
			}
		}
		for _, t := range st.Threads() {
			for _, call := range wanted {
				allowed, err := t.SeccompAllows(call)
				if err != nil {
					return err
				}
				if !allowed {
					return &process.SeccompError{TID: t.TID, Number: uint64(call), Why: "recording needs it"}
				}
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return no(name, "", "%v", err)
	}
	return ok(name, "stopped for %.1f ms; the threads can be told apart, and their filters allow what is needed", stopped.Seconds()*1e3)
}

// kernelCalls looks for the instructions that setting up needs.
func kernelCalls(p *process.Process) Check {
	const name = "system calls"
	if err := p.PrepareSyscalls(); err != nil {
		return no(name, "", "%v", err)
	}
	return ok(name, "the instructions to make some in it are there")
}

// limits looks at how much memory rings and stubs may take.
func limits(pid int) Check {
	const name = "address space"
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	if err != nil {
		return warning(name, "", "its limit can't be read: %v", err)
	}
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, "Max address space"); found {
			if f := strings.Fields(value); len(f) > 0 && f[0] != "unlimited" {
				return warning(name, fmt.Sprintf("prlimit --pid %d --as=unlimited, or a smaller --ring, if recording fails for want of memory", pid), "limited to %s bytes", f[0])
			}
		}
	}
	return ok(name, "not limited")
}

func functionsOf(ctx context.Context, pid int) (Check, *Functions) {
	const name = "functions"
	all, err := recorder.FunctionsOfProcess(ctx, pid, recorder.Choice{})
	if err != nil {
		return no(name, "", "%v", err), nil
	}
	list := all.Functions
	f := &Functions{Seen: len(list), Refused: map[string]int{}}
	most := ""
	for i := range list {
		if list[i].Tier != "" {
			f.Traced++
			continue
		}
		reason := list[i].Reason
		f.Refused[reason]++
		if n := f.Refused[reason]; n > f.Refused[most] || n == f.Refused[most] && reason < most {
			most = reason
		}
	}
	see := fmt.Sprintf("callreel functions -p %d says why for each", pid)
	switch {
	case f.Seen == 0:
		return no(name, "", "none was found in its files"), f
	case f.Traced == 0:
		return no(name, see, "none of %d can be traced, most of them for this reason: %s", f.Seen, most), f
	}
	return ok(name, "%d of %d can be traced (%.1f %%)", f.Traced, f.Seen, 100*float64(f.Traced)/float64(f.Seen)), f
}
