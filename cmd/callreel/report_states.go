package main

import (
	"bufio"
	"fmt"

	"github.com/callreel/callreel/internal/safejson"
	"github.com/callreel/callreel/reel"
)

// sortable says whether the reel has what --sort goes by.
func (f *reportFlags) sortable(path string, file *reel.File) error {
	switch f.sort {
	case "cpu", "ready", "blocked":
	default:
		return nil
	}
	if file.HasStates() {
		return nil
	}
	why := "the recording has none"
	if s, ok := file.Scheduling(); ok && s.Reason != "" {
		why = printable(s.Reason)
	}
	return usageError("callreel report: --sort %s: %s: it isn't known when threads ran and waited: %s", f.sort, path, why)
}

// ThreadStatesJSON is what is known of when a thread ran and waited; the keys are promised. Times are in nanoseconds.
type ThreadStatesJSON struct {
	CPUNS   uint64 `json:"cpu_ns"`
	ReadyNS uint64 `json:"ready_ns"`
	// BlockedNS is null if only the kernel's sums are known, UnknownNS the time of which nothing is known.
	BlockedNS *uint64 `json:"blocked_ns"`
	UnknownNS uint64  `json:"unknown_ns,omitempty"`
	// The kernel's own sums over the recording, where they were read.
	KernelCPUNS   *uint64 `json:"kernel_cpu_ns,omitempty"`
	KernelReadyNS *uint64 `json:"kernel_ready_ns,omitempty"`
	MinorFaults   *uint64 `json:"minor_faults,omitempty"`
	MajorFaults   *uint64 `json:"major_faults,omitempty"`
}

func threadStates(t *reel.ThreadSummary, faults bool) *ThreadStatesJSON {
	if !t.HasStates && !t.HasSums {
		return nil
	}
	s := &ThreadStatesJSON{}
	if t.HasSums {
		s.CPUNS, s.ReadyNS = t.Sums.Running, t.Sums.Ready
		s.KernelCPUNS, s.KernelReadyNS = &t.Sums.Running, &t.Sums.Ready
	}
	if t.HasStates {
		s.CPUNS, s.ReadyNS, s.BlockedNS, s.UnknownNS = t.States.Running, t.States.Ready, &t.States.Blocked, t.Unknown
		if faults {
			s.MinorFaults, s.MajorFaults = &t.MinorFaults, &t.MajorFaults
		}
	}
	return s
}

// schedulingJSON is how it was learned when threads ran and waited; the keys are promised.
type schedulingJSON struct {
	Source      string  `json:"source"` // "" if nothing could be learned
	Reason      string  `json:"reason"` // why the source is no better one
	WakeUps     bool    `json:"wake_ups"`
	Faults      bool    `json:"faults"`
	MinorFaults *uint64 `json:"minor_faults,omitempty"`
	MajorFaults *uint64 `json:"major_faults,omitempty"`
}

// scheduledJSON adds how the states of threads were learned, if the reel says so.
func (r *report) scheduledJSON(b *bufio.Writer) error {
	if !r.scheduled {
		return nil
	}
	s := schedulingJSON{Source: r.scheduling.Source, Reason: r.scheduling.Reason, WakeUps: r.scheduling.WakeUps, Faults: r.scheduling.Faults}
	if s.Faults {
		s.MinorFaults, s.MajorFaults = new(uint64), new(uint64)
		for i := range r.Threads {
			*s.MinorFaults += r.Threads[i].MinorFaults
			*s.MajorFaults += r.Threads[i].MajorFaults
		}
	}
	line, err := safejson.Marshal(s)
	fmt.Fprintf(b, ",\n\"scheduling\":%s", line)
	return err
}

// columnsWithStates writes the table of functions with their self time split. Columns are narrower, so that there is room for names.
func (r *report) columnsWithStates(b *bufio.Writer) {
	const row = "%12s %7s %7s %7s %7s %7s %7s %7s %7s  "
	fmt.Fprintf(b, row+"%s\n", "calls", "total", "self", "cpu", "ready", "blocked", "p50", "p99", "max", "function")
	for i := range r.Functions {
		f := &r.Functions[i]
		p50, p99 := shortSpan(f.P50), shortSpan(f.P99)
		if f.Complete == 0 { // no call was seen whole
			p50, p99 = "-", "-"
		}
		cpu, ready, blocked := stateTexts(f.Self, f.SelfStates)
		fmt.Fprintf(b, row, count(madeOf(f)), shortSpan(f.Total), shortSpan(f.Self), cpu, ready, blocked, p50, p99, shortSpan(f.Max))
		r.nameText(b, f)
	}
}

// stateTexts are the parts of a time, or dashes if none is known.
func stateTexts(of uint64, s reel.StateTimes) (cpu, ready, blocked string) {
	if of > 0 && s.Known() == 0 {
		return "-", "-", "-"
	}
	return shortSpan(s.Running), shortSpan(s.Ready), shortSpan(s.Blocked)
}

// schedulingText says what isn't known of when threads ran and waited, and why.
func (r *report) schedulingText(b *bufio.Writer) {
	if !r.HasStates {
		if r.scheduled && r.scheduling.Reason != "" {
			fmt.Fprintf(b, "When threads ran and waited isn't known: %s\n", printable(r.scheduling.Reason))
		}
		return
	}
	b.WriteString("cpu, ready and blocked: how much of self its threads ran, could have run, and waited")
	if !r.scheduling.WakeUps {
		b.WriteString("; from being woken to running counts as blocked")
	}
	b.WriteString("\n")
	if r.goroutinesUnknown {
		b.WriteString("What goroutines did isn't known: the functions of the Go runtime were not recorded that take them from their threads.\n")
	}
	known, unknown := uint64(0), uint64(0)
	for i := range r.Threads {
		known += r.Threads[i].States.Known()
		unknown += r.Threads[i].Unknown
	}
	if share := 100 * float64(unknown) / float64(known+unknown); unknown > 0 && share >= 0.1 {
		fmt.Fprintf(b, "%.1f %% of the time of threads: state not known\n", share)
	}
}

// stateColumns are the columns of what a thread or a goroutine did.
const stateColumns = "%7s cpu  %7s ready  %7s blocked  "

// threadColumns is when a thread ran and waited, as far as that is known of any.
func (r *report) threadColumns(t *reel.ThreadSummary) string {
	switch {
	case t.HasStates:
		return fmt.Sprintf(stateColumns, shortSpan(t.States.Running), shortSpan(t.States.Ready), shortSpan(t.States.Blocked))
	case t.HasSums:
		return fmt.Sprintf(stateColumns, shortSpan(t.Sums.Running), shortSpan(t.Sums.Ready), "-")
	case r.HasStates || r.hasSums():
		return fmt.Sprintf(stateColumns, "-", "-", "-")
	}
	return ""
}

// GoroutineStatesJSON is what is known of what a goroutine did; the keys are promised. Times are in nanoseconds.
type GoroutineStatesJSON struct {
	CPUNS     uint64 `json:"cpu_ns"`
	ReadyNS   uint64 `json:"ready_ns"`
	BlockedNS uint64 `json:"blocked_ns"`
	UnknownNS uint64 `json:"unknown_ns,omitempty"`
}

func (r *report) goroutineStates(g *reel.GoroutineSummary) *GoroutineStatesJSON {
	if !r.goroutinesKnown {
		return nil
	}
	return &GoroutineStatesJSON{g.States.Running, g.States.Ready, g.States.Blocked, g.Unknown}
}

func (r *report) goroutineColumns(g *reel.GoroutineSummary) string {
	if !r.goroutinesKnown {
		return ""
	}
	cpu, ready, blocked := stateTexts(1, g.States)
	return fmt.Sprintf(stateColumns, cpu, ready, blocked)
}

// hasSums says whether the kernel's sums are known of a thread.
func (r *report) hasSums() bool {
	for i := range r.Threads {
		if r.Threads[i].HasSums {
			return true
		}
	}
	return false
}

// faultsText says how many page faults a thread had, if any.
func faultsText(t *reel.ThreadSummary) string {
	n := t.MinorFaults + t.MajorFaults
	switch {
	case n == 0:
		return ""
	case t.MajorFaults == 0:
		return ", " + things(n, "page fault")
	}
	return fmt.Sprintf(", %s, %s from disk", things(n, "page fault"), count(t.MajorFaults))
}
