package main

import (
	"bufio"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/callreel/callreel/demangle"
	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/reel/waiting"
)

// lockJSON is a lock as --locks has it with --json; the keys are promised. Times are in nanoseconds.
type lockJSON struct {
	Address   string           `json:"address"` // hexadecimal; "" if it isn't known
	Name      string           `json:"name,omitempty"`
	Kind      string           `json:"kind"`
	PID       int              `json:"pid,omitempty"`
	Waits     uint64           `json:"waits"`
	WaitNS    uint64           `json:"wait_ns"`
	MaxWaitNS uint64           `json:"max_wait_ns"`
	Threads   int              `json:"threads"`
	Holders   []lockHolderJSON `json:"holders"`
	UnknownNS uint64           `json:"unknown_ns,omitempty"` // of which it isn't known who held it
}

// lockHolderJSON is a function that held a lock, or let threads go on.
type lockHolderJSON struct {
	Function string   `json:"function"`
	Module   string   `json:"module,omitempty"`
	In       []string `json:"in,omitempty"`
	NS       uint64   `json:"ns"`
	Waits    uint64   `json:"waits"`
}

// lockReport writes what threads waited for.
func (f *reportFlags) lockReport(w io.Writer, file *reel.File) error {
	if f.by != "" || len(f.functions) > 0 {
		return usageError("callreel report: --locks goes with neither -f nor --by")
	}
	scheduling, _ := file.Scheduling()
	locks, left := []waiting.Lock(nil), 0
	if file.HasStates() {
		locks, left = waiting.Locks(file, waiting.Options{})
	}
	r := lockReport{file: file, list: locks}
	if f.limit > 0 {
		r.list = r.list[:min(f.limit, len(r.list))]
	}
	b := bufio.NewWriter(w)
	if f.json {
		b.WriteString("{")
		if err := jsonList(b, "locks", len(r.list), func(i int) any { return r.json(&r.list[i]) }); err != nil {
			return err
		}
		if left > 0 {
			fmt.Fprintf(b, ",\n\"left_out\":%d", left)
		}
		b.WriteString("}\n")
		return b.Flush()
	}
	if len(locks) == 0 {
		fmt.Fprintf(b, "%s\n", noLocks(file, &scheduling))
		return b.Flush()
	}
	fmt.Fprintf(b, "%10s %10s %10s  %-10s %s\n", "waits", "waited", "worst", "kind", "lock, and who held it how long meanwhile")
	for i := range r.list {
		r.text(b, &r.list[i])
	}
	if n := len(locks) - len(r.list); n > 0 {
		fmt.Fprintf(b, "and %s\n", things(uint64(n), "other lock"))
	}
	if left > 0 {
		fmt.Fprintf(b, "%s left out, which were shorter\n", things(uint64(left), "wait"))
	}
	return b.Flush()
}

// noLocks says why no lock is listed.
func noLocks(file *reel.File, s *reel.Scheduling) string {
	switch {
	case file.HasStates():
		return "No thread is known to have waited for a lock."
	case s.Reason != "":
		return "When threads ran and waited isn't known: " + printable(s.Reason)
	}
	return "When threads ran and waited isn't known: it wasn't recorded."
}

// lockReport is what is written.
type lockReport struct {
	file *reel.File
	list []waiting.Lock
}

// name is a function's name and module.
func (r *lockReport) name(id uint32) (name, module string) {
	if id == 0 {
		return "?", ""
	}
	fn, ok := r.file.Function(id)
	if !ok {
		return fmt.Sprintf("function #%d", id), ""
	}
	name = fn.Name
	if n, ok := r.file.Naming(id); ok {
		name = n.Name
	}
	if m, ok := r.file.Image(fn.Image); ok {
		module = path.Base(m.Path)
	}
	return demangle.Name(name), module
}

func (r *lockReport) json(l *waiting.Lock) lockJSON {
	ns := r.file.Clock().Nanoseconds
	j := lockJSON{Kind: l.Kind.String(), Waits: l.Waits, WaitNS: ns(l.Waited), MaxWaitNS: ns(l.Worst), Threads: l.Threads, UnknownNS: ns(l.Unknown), Holders: []lockHolderJSON{}}
	if l.Address != 0 {
		j.Address = fmt.Sprintf("0x%x", l.Address)
		j.Name, _ = waiting.Place(r.file, l.Address)
	}
	if l.Process != r.file.Header().PID {
		j.PID = l.Process
	}
	for _, h := range l.Holders {
		x := lockHolderJSON{NS: ns(h.Time), Waits: h.Waits}
		x.Function, x.Module = r.name(h.Function)
		for _, id := range h.In {
			name, _ := r.name(id)
			x.In = append(x.In, name)
		}
		j.Holders = append(j.Holders, x)
	}
	return j
}

// shownHolders is how many functions are written of a lock for people.
const shownHolders = 5

func (r *lockReport) text(b *bufio.Writer, l *waiting.Lock) {
	ns := r.file.Clock().Nanoseconds
	where := "address not known"
	if l.Address != 0 {
		where = fmt.Sprintf("0x%x", l.Address)
		if name, ok := waiting.Place(r.file, l.Address); ok {
			where += " (" + printable(name) + ")"
		}
	}
	if l.Process != r.file.Header().PID && l.Process != 0 {
		where += fmt.Sprintf(" of process %d", l.Process)
	}
	fmt.Fprintf(b, "%10s %10s %10s  %-10s %s, %s\n", count(l.Waits), span(ns(l.Waited)), span(ns(l.Worst)), l.Kind, where, things(uint64(l.Threads), "thread"))
	for i := range l.Holders[:min(len(l.Holders), shownHolders)] {
		h := &l.Holders[i]
		name, module := r.name(h.Function)
		fmt.Fprintf(b, "%10s %10s %10s  %-10s   %s!%s", "", span(ns(h.Time)), "", "", printable(module), printable(name))
		if len(h.In) > 0 {
			var in []string
			for _, id := range h.In {
				name, _ := r.name(id)
				in = append(in, printable(name))
			}
			fmt.Fprintf(b, ", in %s", strings.Join(in, " > "))
		}
		b.WriteString("\n")
	}
	if n := len(l.Holders) - shownHolders; n > 0 {
		fmt.Fprintf(b, "%10s %10s %10s  %-10s   and %s\n", "", "", "", "", things(uint64(n), "other function"))
	}
	if l.Unknown > l.Waited/100 {
		fmt.Fprintf(b, "%10s %10s %10s  %-10s   not known whose\n", "", span(ns(l.Unknown)), "", "")
	}
}
