package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/callreel/callreel/demangle"
	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/viewer"
	"github.com/callreel/callreel/why"
)

// explainCall says for the page why a call was slow, in the words of callreel why.
func explainCall(ctx context.Context, f *reel.File, id viewer.CallID) (*viewer.Explanation, error) {
	call := why.CallID{Thread: id.Thread, Start: id.Start, Function: id.Function}
	r, err := why.Explain(ctx, f, why.Options{Call: &call, Name: demangle.Name})
	if errors.Is(err, why.ErrNoTimes) || errors.Is(err, why.ErrNoCall) {
		return nil, fmt.Errorf("%w: %w", viewer.ErrNotExplained, err)
	}
	if err != nil {
		return nil, err
	}
	x := &viewer.Explanation{}
	for i := range r.Calls {
		a := &r.Calls[i]
		x.Lines = append(x.Lines, answerLines(f, id.Thread, a)...)
		if p, err := why.ParseCallID(a.Peer); err == nil {
			x.Peer = &viewer.CallID{Thread: p.Thread, Start: p.Start, Function: p.Function}
		}
	}
	for _, n := range r.Notes {
		x.Lines = append(x.Lines, viewer.ExplanationLine{Kind: "note", Text: n})
	}
	return x, nil
}

// answerLines are the lines of an answer, with the places that they are about.
func answerLines(f *reel.File, thread uint32, a *why.Answer) []viewer.ExplanationLine {
	var lines []viewer.ExplanationLine
	var cause *why.Cause
	step := 0
	for i, text := range strings.Split(a.Text, "\n") {
		line := viewer.ExplanationLine{Kind: "note", Text: strings.TrimSpace(text)}
		at := slices.IndexFunc(a.Causes, func(c why.Cause) bool { return c.Text == line.Text })
		switch {
		case line.Text == "":
			continue
		case i == 0:
			line.Kind = "head"
		case at >= 0:
			cause, step = &a.Causes[at], 0
			line.Kind, line.Thread, line.From, line.To = "cause", thread, cause.FromNS, cause.ToNS
		case strings.HasPrefix(line.Text, "so: "):
			line.Kind = "head"
		case strings.HasPrefix(text, "    ") && cause != nil: // who was waited for
			line.Kind = "more"
			if step < len(cause.Chain) {
				line.Thread, line.From, line.To = threadOf(f, cause.Chain[step].TID), cause.FromNS, cause.ToNS
			}
			step++
		}
		lines = append(lines, line)
	}
	return lines
}

// threadOf is the key of a thread, by its ID; 0 if there is none.
func threadOf(f *reel.File, tid int) uint32 {
	for _, t := range f.Threads() {
		if t.TID == tid && tid != 0 {
			return t.Key
		}
	}
	return 0
}
