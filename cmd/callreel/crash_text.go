package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/callreel/callreel/crash"
)

// crashText writes a report for people: what happened and where first, and at the end what was
// missing.
func crashText(w io.Writer, r *crash.Report) error {
	b := bufio.NewWriter(w)
	name := r.Process.Name
	if name == "" {
		name = r.Process.Path
	}
	if name == "" {
		name = "a process"
	}
	fmt.Fprintf(b, "%s: %s", r.Format, printable(name))
	if r.Process.PID != 0 {
		fmt.Fprintf(b, " (%d)", r.Process.PID)
	}
	for _, text := range []string{r.OS, r.Version, r.Arch} {
		if text != "" {
			fmt.Fprintf(b, ", %s", printable(text))
		}
	}
	b.WriteByte('\n')
	if r.Time != "" {
		fmt.Fprintf(b, "Time: %s\n", printable(r.Time))
	}
	reason := r.Reason.Text
	if reason == "" {
		reason = "not known"
	}
	fmt.Fprintf(b, "Reason: %s\n", printable(reason))
	for _, text := range r.Reason.Details {
		fmt.Fprintf(b, "  %s\n", printable(text))
	}
	for k, t := range r.Threads {
		crashThreadText(b, t)
		if k == 0 && t.Crashed {
			crashRegistersText(b, t)
			crashCodeText(b, r)
		}
	}
	crashNotesText(b, r)
	if missing := r.Missing(); len(missing) > 0 {
		hint := "Missing on stacks; give them with --debug-dir, or set DEBUGINFOD_URLS:"
		if r.OS == "windows" {
			hint = "On stacks, and not read; their PDBs have these IDs:"
		}
		fmt.Fprintf(b, "\n%s\n", hint)
		for _, im := range missing {
			id := im.ID
			if id == "" {
				id = "no ID"
			}
			fmt.Fprintf(b, "  %-40s %s", printable(id), printable(im.Path))
			if im.DebugFile != "" {
				fmt.Fprintf(b, " (%s)", printable(im.DebugFile))
			}
			b.WriteByte('\n')
		}
	}
	return b.Flush()
}

// crashNotesText writes what the program told its crash reporter.
func crashNotesText(b *bufio.Writer, r *crash.Report) {
	if len(r.Annotations) > 0 {
		b.WriteString("\nAnnotations:\n")
	}
	for _, a := range r.Annotations {
		name := a.Name
		if a.Module != "" {
			name = strings.TrimSpace(a.Module + " " + name)
		}
		fmt.Fprintf(b, "  %s: %s\n", printable(name), printable(a.Value))
	}
}

func crashThreadText(b *bufio.Writer, t *crash.Thread) {
	fmt.Fprintf(b, "\nThread %d", t.TID)
	if t.Name != "" {
		fmt.Fprintf(b, " %q", printable(t.Name))
	}
	if t.State != "" {
		fmt.Fprintf(b, " (%s)", printable(t.State))
	}
	if t.Crashed {
		b.WriteString(", crashed")
	}
	b.WriteString(":\n")
	for k := 0; k < len(t.Frames); k++ {
		crashFrameText(b, k, &t.Frames[k])
		if calls, times := repeated(t.Frames[:k+1], t.Frames[k+1:]); times > 0 {
			if calls == 1 {
				fmt.Fprintf(b, "     (the last call %d times more)\n", times)
			} else {
				fmt.Fprintf(b, "     (the last %d calls %d times more)\n", calls, times)
			}
			k += calls * times
		}
	}
	if t.EndSays != "" {
		fmt.Fprintf(b, "  the stack is not whole (%s): %s\n", printable(t.End), printable(t.EndSays))
	}
}

const (
	// maxRepeated is the longest row of calls that is looked for in a recursion.
	maxRepeated = 8
	// leastRepeated is how many repetitions are told in one line.
	leastRepeated = 8
)

// repeated says how many calls at the end of what was written are how often repeated by what
// follows: in a stack that has overflowed these are tens of thousands.
func repeated(before, after []crash.Frame) (calls, times int) {
	same := func(a, b *crash.Frame) bool {
		return a.Address == b.Address && a.Function == b.Function && a.Line == b.Line && a.By == b.By && a.Inlined == b.Inlined
	}
	for calls := 1; calls <= min(maxRepeated, len(before)); calls++ {
		row := before[len(before)-calls:]
		n := 0
		for n < len(after) && same(&row[n%calls], &after[n]) {
			n++
		}
		if times := n / calls; times >= leastRepeated {
			return calls, times
		}
	}
	return 0, 0
}

func crashFrameText(b *bufio.Writer, number int, f *crash.Frame) {
	fmt.Fprintf(b, "#%-3d ", number)
	if f.Inlined {
		fmt.Fprintf(b, "%18s ", "(inlined)")
	} else {
		fmt.Fprintf(b, "0x%016x ", f.Address)
	}
	at := frameAt{function: f.Function, file: f.File, line: f.Line, signal: f.Signal, offset: f.Offset}
	if f.Image != nil && !f.Inlined {
		at.inImage, at.image = true, f.Image.Name()
	}
	at.write(b)
	switch f.By {
	case crash.ByFramePointer:
		b.WriteString(" [frame pointer]")
	case crash.ByScan:
		fmt.Fprintf(b, " [%s]", printable(f.Rule)) // of scans the one that says more: leaf, code
	}
	b.WriteByte('\n')
}

// crashRegistersText writes registers in columns.
func crashRegistersText(b *bufio.Writer, t *crash.Thread) {
	if len(t.Registers) == 0 {
		return
	}
	b.WriteString("Registers:\n")
	const columns = 4
	for k, reg := range t.Registers {
		fmt.Fprintf(b, " %6s 0x%016x", printable(reg.Name), reg.Value)
		if k%columns == columns-1 || k == len(t.Registers)-1 {
			b.WriteByte('\n')
		}
	}
}

// crashCodeText writes the code around the PC.
func crashCodeText(b *bufio.Writer, r *crash.Report) {
	if len(r.Code) == 0 {
		return
	}
	b.WriteString("Code:\n")
	for _, in := range r.Code {
		mark := "  "
		if in.At {
			mark = "=>"
		}
		fmt.Fprintf(b, " %s %#x: %-24x %s\n", mark, in.Address, in.Bytes, printable(in.Text))
	}
}
