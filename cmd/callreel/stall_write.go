package main

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"

	"github.com/callreel/callreel/sampler"
)

// The objects of stall --json; the keys are promised.
type (
	stallObject struct {
		TID        int          `json:"tid"`
		Name       string       `json:"name"`
		StartNS    int64        `json:"start_ns"` // since 1970
		DurationNS int64        `json:"duration_ns"`
		State      string       `json:"state"`
		Ongoing    bool         `json:"ongoing,omitempty"`
		Samples    int          `json:"samples"`
		Partial    int          `json:"partial,omitempty"`
		Stack      []stallFrame `json:"stack"`
		// Reel has the last moments of the stall, where an armed recorder is at work; NoReel says why there is none then.
		Reel   string `json:"reel,omitempty"`
		NoReel string `json:"no_reel,omitempty"`
	}
	stallFrame struct {
		framePlace
		Samples int `json:"samples"`
	}
)

func stallJSON(w io.Writer, s *sampler.Stall, reel, noReel string) error {
	out := stallObject{
		TID: s.TID, Name: s.Name, StartNS: s.Start.UnixNano(), DurationNS: s.Duration.Nanoseconds(), State: string(s.State),
		Ongoing: s.Ongoing, Samples: s.Samples, Partial: s.Partial, Stack: make([]stallFrame, len(s.Stack)),
		Reel: reel, NoReel: noReel,
	}
	for k := range s.Stack {
		f := &s.Stack[k]
		out.Stack[k] = stallFrame{
			framePlace: framePlace{Address: hexadecimal(f.Address), Function: f.Function, Image: f.Image, File: f.File, Line: f.Line, Inlined: f.Inlined},
			Samples:    f.Samples,
		}
		if f.Image != "" {
			out.Stack[k].Offset = hexadecimal(f.Offset)
		}
	}
	return writeJSON(w, out)
}

// stallText writes a stall for people, innermost call first as stacks does.
func stallText(w io.Writer, s *sampler.Stall, reel, noReel string) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s  thread %d %q stalled for %s: %s", s.Start.Format("2006-01-02 15:04:05.000"), s.TID, printable(s.Name),
		span(uint64(max(s.Duration, 0))), s.State)
	if s.Ongoing {
		b.WriteString(", and is still stalled")
	}
	fmt.Fprintf(&b, " (%s", things(uint64(s.Samples), "sample"))
	if s.Partial > 0 {
		fmt.Fprintf(&b, ", %d not whole", s.Partial)
	}
	b.WriteString(")\n")
	for k := range s.Stack {
		f := &s.Stack[k]
		name := printable(f.Function)
		if name == "" {
			name = "?? " + hexadecimal(f.Address)
		}
		fmt.Fprintf(&b, "%7d %4d%%  %s", f.Samples, 100*f.Samples/max(s.Samples, 1), name)
		if f.File != "" && f.Line > 0 {
			fmt.Fprintf(&b, " at %s:%d", printable(f.File), f.Line)
		}
		switch {
		case f.Inlined:
			b.WriteString(" (inlined)")
		case f.Image != "":
			fmt.Fprintf(&b, " (%s+%#x)", printable(filepath.Base(f.Image)), f.Offset)
		}
		b.WriteByte('\n')
	}
	switch {
	case reel != "":
		fmt.Fprintf(&b, "its last moments are in %s\n", printable(reel))
	case noReel != "":
		fmt.Fprintf(&b, "its last moments could not be had: %s\n", printable(noReel))
	}
	b.WriteByte('\n')
	_, err := w.Write(b.Bytes()) // whole, for who reads along
	return err
}
