package main

import (
	"bufio"
	"fmt"
	"io"

	"github.com/callreel/callreel/internal/safejson"
	"github.com/callreel/callreel/sampler"
	"github.com/callreel/callreel/unwind"
)

// The objects of stacks --json; the keys are promised.
type (
	stackImage struct {
		ID     string `json:"id"`
		Load   string `json:"load"`
		Size   uint64 `json:"size"`
		Path   string `json:"path"`
		Arch   string `json:"arch"`
		Offset string `json:"file_offset,omitempty"`
	}
	stackThread struct {
		TID     int          `json:"tid"`
		Name    string       `json:"name"`
		State   string       `json:"state"`
		Signal  int          `json:"signal,omitempty"`
		StoodNS int64        `json:"stood_ns,omitempty"`
		End     string       `json:"end"`
		EndSays string       `json:"end_says,omitempty"`
		Frames  []stackFrame `json:"frames"`
	}
	// framePlace is what both have that tell of stacks.
	framePlace struct {
		Address  string `json:"address"`
		Function string `json:"function"`
		Image    string `json:"image"`
		Offset   string `json:"offset,omitempty"`
		File     string `json:"file"`
		Line     uint32 `json:"line"`
		Inlined  bool   `json:"inlined"`
	}
	stackFrame struct {
		framePlace
		Kind  string `json:"kind,omitempty"` // "signal": the code that a handler returns to
		Exact bool   `json:"interrupted,omitempty"`
		By    string `json:"by"`
		Late  bool   `json:"late,omitempty"`
	}
)

func stacksJSON(w io.Writer, c *sampler.Capture) error {
	b := bufio.NewWriter(w)
	name, err := safejson.Marshal(c.Name)
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "{\"pid\":%d,\"name\":%s,\"arch\":%q,\n", c.PID, name, c.Arch)
	err = jsonList(b, "images", len(c.Images), func(i int) any {
		im := c.Images[i]
		out := stackImage{ID: im.ID(), Load: hexadecimal(im.Load), Size: im.Size, Path: im.Path, Arch: c.Arch}
		if im.Offset != 0 {
			out.Offset = hexadecimal(im.Offset)
		}
		return out
	})
	if err != nil {
		return err
	}
	b.WriteString(",\n")
	if err := jsonList(b, "threads", len(c.Threads), func(i int) any { return stackJSON(&c.Threads[i]) }); err != nil {
		return err
	}
	b.WriteString("\n}\n")
	return b.Flush()
}

func hexadecimal(v uint64) string { return fmt.Sprintf("%#x", v) }

func stackJSON(t *sampler.Thread) stackThread {
	out := stackThread{
		TID: t.TID, Name: t.Name, State: t.State, Signal: t.Signal, StoodNS: t.Stopped.Nanoseconds(),
		End: t.End.Reason.String(), Frames: make([]stackFrame, len(t.Frames)),
	}
	if !t.End.Complete() {
		out.EndSays = t.End.String()
	}
	for k := range t.Frames {
		f := &t.Frames[k]
		s := stackFrame{
			framePlace: framePlace{Address: hexadecimal(f.Address), Function: f.Function, File: f.File, Line: f.Line, Inlined: f.Inlined},
			Exact:      f.Flags.Has(unwind.Exact) && k > 0, By: f.By.String(), Late: f.Flags.Has(unwind.Late),
		}
		if f.Image != nil {
			s.Image, s.Offset = f.Image.Path, hexadecimal(f.Offset)
		}
		if f.Flags.Has(unwind.SignalFrame) {
			s.Kind = "signal"
		}
		out.Frames[k] = s
	}
	return out
}

// stacksText writes stacks for people, in the manner of debuggers.
func stacksText(w io.Writer, c *sampler.Capture) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%d %s: %s\n", c.PID, printable(c.Name), things(uint64(len(c.Threads)), "thread"))
	for k := range c.Threads {
		t := &c.Threads[k]
		fmt.Fprintf(b, "\nThread %d", t.TID)
		if t.Name != "" {
			fmt.Fprintf(b, " %q", printable(t.Name))
		}
		if t.State != "" {
			fmt.Fprintf(b, " (%s)", t.State)
		}
		if t.Signal != 0 {
			fmt.Fprintf(b, ", got signal %d", t.Signal)
		}
		b.WriteString(":\n")
		number := 0
		for i := range t.Frames {
			f := &t.Frames[i]
			frameText(b, number, f)
			number++
		}
		if !t.End.Complete() {
			fmt.Fprintf(b, "  the stack is not whole (%s): %s\n", t.End.Reason, printable(t.End.String()))
		}
	}
	return b.Flush()
}

func frameText(b *bufio.Writer, number int, f *sampler.Frame) {
	fmt.Fprintf(b, "#%-3d ", number)
	if f.Inlined {
		fmt.Fprintf(b, "%18s ", "(inlined)")
	} else {
		fmt.Fprintf(b, "%#016x ", f.Address)
	}
	at := frameAt{function: f.Function, file: f.File, line: f.Line, signal: f.Flags.Has(unwind.SignalFrame), offset: f.Offset}
	if f.Image != nil && !f.Inlined {
		at.inImage, at.image = true, f.Image.Name()
	}
	at.write(b)
	switch f.By {
	case unwind.ByCode:
		b.WriteString(" [by code]")
	case unwind.ByFramePointer:
		b.WriteString(" [by frame pointer]")
	case unwind.ByLeaf:
		b.WriteString(" [by top of stack]")
	}
	if f.Flags.Has(unwind.Late) {
		b.WriteString(" [read late]")
	}
	b.WriteByte('\n')
}

// frameAt is where a frame is, of a stack that was just captured or out of a crash report.
type frameAt struct {
	function string // "" if it isn't known
	file     string
	line     uint32
	inImage  bool // false of inlined calls, too
	image    string
	offset   uint64
	signal   bool // the kernel has called a signal handler from there
}

func (f *frameAt) write(b *bufio.Writer) {
	if f.function != "" {
		b.WriteString(printable(f.function))
	} else {
		b.WriteString("??")
	}
	if f.signal {
		b.WriteString(" <signal handler called>")
	}
	switch {
	case f.file != "" && f.line > 0:
		fmt.Fprintf(b, " at %s:%d", printable(f.file), f.line)
	case f.file != "":
		fmt.Fprintf(b, " in %s", printable(f.file))
	}
	if f.inImage {
		fmt.Fprintf(b, " (%s+%#x)", printable(f.image), f.offset)
	}
}
