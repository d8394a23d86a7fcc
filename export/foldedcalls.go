package export

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/callreel/callreel/reel"
)

// FoldedCalls writes the reel in the form that Brendan Gregg's flamegraph.pl reads,
// as [Folded] does: a line for each stack, the process's name and then all functions from
// the outermost one on between semicolons, a space, and the nanoseconds that the
// innermost took itself; or as [Options.Weight] says, and where there was no clock, how
// often it was called there. Lines are in the order of the first calls; of a part of
// the time there are those that have any.
//
// The form can't say what was dropped, damaged or off: [Unrecorded] does. Calls that were open at the end,
// or ended without returning, count with the time until then. Memory is bounded as
// for [PProfCalls]: a stack may have several lines, which readers sum up.
func FoldedCalls(ctx context.Context, f *reel.File, w io.Writer, opt Options) error {
	t := newCallTree(ctx, f, opt)
	if t.weighed() && opt.Weight.state() != reel.StateUnknown {
		t.split()
	}
	return t.folded(w)
}

func (t *callTree) folded(w io.Writer) error {
	out := &foldedCalls{callTree: t, w: bufio.NewWriterSize(w, 1<<18), names: make(map[uint32]string), several: len(t.processes()) > 1}
	t.write = func(*callTree) { out.lines() }
	err := t.count("folded")
	if err == nil {
		err = out.w.Flush()
	}
	return err
}

// foldedCalls writes the lines.
type foldedCalls struct {
	*callTree
	w       *bufio.Writer
	names   map[uint32]string // by function ID
	several bool              // processes
	path    []uint32
	line    []byte
}

func (o *foldedCalls) lines() {
	for k := range o.nodes {
		if !o.counted(k) {
			continue
		}
		weight := o.weight(k)
		if weight == 0 && o.parts != nil {
			continue
		}
		o.path = o.path[:0]
		at := uint32(k)
		for ; o.nodes[at].parent != noParent; at = o.nodes[at].parent {
			o.path = append(o.path, o.nodes[at].fn)
		}
		o.line = append(o.line[:0], o.process(o.roots[o.nodes[at].fn])...)
		for i := len(o.path) - 1; i >= 0; i-- {
			o.line = append(append(o.line, ';'), o.name(o.path[i])...)
		}
		o.line = strconv.AppendUint(append(o.line, ' '), weight, 10)
		if _, o.err = o.w.Write(append(o.line, '\n')); o.err != nil || k%1024 == 0 && o.failed() {
			return
		}
	}
}

// weight is a stack's number.
func (o *foldedCalls) weight(k int) uint64 {
	n := &o.nodes[k]
	state := o.opt.Weight.state()
	switch {
	case o.opt.Weight == WeightCalls || o.untimed:
		return n.calls
	case state == reel.StateUnknown:
		return o.f.Clock().Nanoseconds(n.self)
	case o.parts == nil: // nothing is known of states
		return 0
	}
	return timeIn(o.part(k), state)
}

// timeIn is the time in a state.
func timeIn(t reel.StateTimes, state reel.RunState) uint64 {
	switch state {
	case reel.StateRunning:
		return t.Running
	case reel.StateReady:
		return t.Ready
	}
	return t.Blocked
}

func (o *foldedCalls) process(r treeRoot) string {
	name := foldable(o.processName())
	if o.several {
		name += fmt.Sprintf(" (%d)", r.pid)
	}
	return name
}

func (o *foldedCalls) name(fn uint32) string {
	text, ok := o.names[fn]
	if !ok {
		name, _ := o.frameName(fn)
		text = foldable(name)
		if len(o.names) < maxNames {
			o.names[fn] = text
		}
	}
	return text
}
