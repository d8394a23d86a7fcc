package main

import (
	"bufio"
	"fmt"
	"time"

	"github.com/callreel/callreel/internal/safejson"
	"github.com/callreel/callreel/viewer"
)

// dumpJSON adds what is known of a dump; "triggers" is there if there are several, "missing" if the window is not whole.
func dumpJSON(b *bufio.Writer, d *viewer.Dump) error {
	fmt.Fprintf(b, ",\n\"window_ns\":%d,\"window_from_ns\":%d", d.WindowNS(), d.FromNS())
	if d.Triggers() > 0 {
		line, err := safejson.Marshal(d.Trigger(0))
		if err != nil {
			return err
		}
		fmt.Fprintf(b, ",\n\"trigger\":%s", line)
	}
	if n := d.Triggers(); n > 1 {
		b.WriteString(",\n")
		if err := jsonList(b, "triggers", n, func(i int) any { return d.Trigger(i) }); err != nil {
			return err
		}
	}
	if n := d.Missing(); n > 0 {
		b.WriteString(",\n")
		return jsonList(b, "missing", n, func(i int) any { return d.MissingAt(i) })
	}
	return nil
}

// shownOfDump is how many triggers and missing stretches are written for people.
const shownOfDump = 10

// dumpText writes the head of a dump's report.
func dumpText(b *bufio.Writer, d *viewer.Dump) {
	fmt.Fprintf(b, "A dump of the last %s", span(d.WindowNS()))
	for i := range min(d.Triggers(), shownOfDump) {
		t := d.Trigger(i)
		if i == 0 {
			b.WriteString(", made for ")
		} else {
			b.WriteString("  also ")
		}
		fmt.Fprintf(b, "%s\n", triggerText(&t))
	}
	switch n := d.Triggers(); {
	case n == 0:
		b.WriteString("\n")
	case n > shownOfDump:
		fmt.Fprintf(b, "  and %s\n", things(uint64(n-shownOfDump), "other trigger"))
	}
	for i := range min(d.Missing(), shownOfDump) {
		m := d.MissingAt(i)
		of := "all threads"
		if m.TID != 0 {
			of = fmt.Sprintf("thread %d %s", m.TID, printable(d.ThreadName(i)))
		}
		fmt.Fprintf(b, "  missing: %s of %s, from %s on\n", span(m.ToNS-m.FromNS), of, relative(m.FromNS, d.FromNS()))
	}
	if n := d.Missing() - shownOfDump; n > 0 {
		fmt.Fprintf(b, "  missing: %s more, which --json lists\n", things(uint64(n), "piece"))
	}
	b.WriteString("\n")
}

// triggerText says what triggered, where, how long it took and when.
func triggerText(t *viewer.Trigger) string {
	s := printable(t.Condition)
	if t.Condition == "" {
		s = map[string]string{"request": "a request", "stall": "a stall", "end": "the end of the process"}[t.Kind]
	}
	if s == "" {
		s = t.Kind
	}
	switch {
	case t.Name != "" && t.Open:
		s += fmt.Sprintf(": %s had not returned after %s", printable(t.Name), span(t.DurationNS))
	case t.Name != "":
		s += fmt.Sprintf(": %s took %s", printable(t.Name), span(t.DurationNS))
	case t.DurationNS > 0:
		s += ": " + span(t.DurationNS)
	}
	if t.TID != 0 {
		s += fmt.Sprintf(", thread %d %s", t.TID, printable(t.Thread))
	}
	if t.StartUnixNS != 0 {
		s += time.Unix(0, t.StartUnixNS).UTC().Format(", at 2006-01-02 15:04:05.000000 UTC")
	}
	if t.Detail != "" {
		s += " (" + printable(t.Detail) + ")"
	}
	return s
}

// relative is a time seen from another one.
func relative(at, from uint64) string {
	if at < from {
		return span(from-at) + " before the window"
	}
	return span(at-from) + " of the window"
}
