package doctor

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/process/sched"
)

// scheduling tries to watch our own threads as a recording watches a process's, and says what would tell more.
func scheduling(ctx context.Context) Check {
	const name = "scheduling"
	w, err := sched.Open(ctx, sched.Options{PIDs: []int{os.Getpid()}, Faults: sched.MajorFaults})
	if err != nil {
		return warning(name, "", "when threads run and wait can't be told: %v", err)
	}
	err = w.Close(func(int, int, sched.Event) {})
	check := told(w.Source(), errors.Join(w.Reasons()...))
	if err != nil {
		return warning(name, "", "%s; but: %v", check.What, err)
	}
	return check
}

const (
	capPerfmon = 38
	capBPF     = 39
)

// told says what a source tells, and how to get a better one.
func told(source string, reason error) Check {
	const (
		name  = "scheduling"
		whole = "run as root, or with CAP_BPF and CAP_PERFMON; in a container, --cap-add BPF --cap-add PERFMON"
	)
	why := ""
	if reason != nil {
		why = " (" + strings.ReplaceAll(reason.Error(), "\n", "; ") + ")"
	}
	switch source {
	case sched.SourceBPF:
		return ok(name, "when threads run, are ready and wait, for what, and who wakes them (BPF)%s", why)
	case sched.SourcePerf:
		do := whole
		if process.HasCapability(capBPF) && process.HasCapability(capPerfmon) {
			do = "a kernel of Linux 5.15 or newer with BTF (CONFIG_DEBUG_INFO_BTF), and in a container a seccomp profile that permits bpf"
		}
		return warning(name, do, "when threads run and wait, but not who wakes them, nor how long they wait for a processor then%s", why)
	}
	return warning(name, "sysctl kernel.perf_event_paranoid=2; or "+whole+"; in a container, a seccomp profile that permits perf_event_open",
		"only how long each thread has run in all%s", why)
}
