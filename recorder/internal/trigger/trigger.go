// Package trigger knows what --when asks for: conditions on calls, which functions have them, and what stubs compare for them.
package trigger

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Trigger is a condition on which the last moments are dumped.
type Trigger struct {
	// Text is the condition as it was given.
	Text string
	// Function names the function that it is about: a glob, as in a Choice.
	Function string
	// Marker names the marker that it is about, provider:name or a glob of that, and Span the title of a span, or a glob; there is no Function
	// then.
	Marker, Span string
	Kind         Kind
	// Op compares, for the durations and results: one of > >= < <= == !=.
	Op string
	// Duration is what the call's is compared with, or the length of a stall.
	Duration time.Duration
	// Value is what the result is compared with, or the number of the call, from 1; 0 for every call.
	Value int64
}

// Kind says what a Trigger looks at.
type Kind uint8

// The kinds of triggers.
const (
	OnDuration Kind = iota // F > 5ms: how long the call took; for > and >= also one that has not returned
	OnResult               // F == 0: what it returns
	OnCall                 // F, F #100: that it is called, or the Nth time
	OnStall                // stall:200ms: that the main thread makes no progress; the recorder's user sees to that
)

// Err is wrapped by Parse's errors.
var Err = errors.New("not a condition")

var (
	comparison = regexp.MustCompile(`^(.+?)\s*(>=|<=|==|!=|>|<|=)\s*([-+]?[0-9][0-9A-Za-z.µ]*)$`)
	nthCall    = regexp.MustCompile(`^(.+?)\s*#\s*([0-9]+)$`)
)

// aboutMark finds the conditions that are about markers.
var aboutMark = regexp.MustCompile(`^(marker|span)\s+(\S.*)$`)

// parseMark reads what follows "marker" or "span".
func (t *Trigger) parseMark(what, rest string) error {
	inner, err := Parse(rest)
	switch {
	case err != nil:
		return err
	case what == "marker" && inner.Kind != OnCall || inner.Kind == OnStall:
		return fmt.Errorf("%q is %w: of a marker it is that it is passed: 'marker provider:name', or with #100 behind it", t.Text, Err)
	case what == "span" && inner.Kind != OnDuration:
		return fmt.Errorf("%q is %w: a span is compared with a duration: 'span query > 20ms'", t.Text, Err)
	case inner.Marker != "" || inner.Span != "":
		return fmt.Errorf("%q is %w", t.Text, Err)
	}
	t.Kind, t.Op, t.Duration, t.Value = inner.Kind, inner.Op, inner.Duration, inner.Value
	if what == "marker" {
		t.Marker = inner.Function
	} else {
		t.Span = inner.Function
	}
	return nil
}

// isMark says whether it is about markers.
func (t *Trigger) isMark() bool { return t.Marker != "" || t.Span != "" }

// Parse reads a condition: "F > 5ms", "F == 0", "F < 0", "F", "F #100", "marker provider:name", "span title > 20ms" or "stall:200ms". A number with a unit is a duration,
// one without is compared with what F returns.
func Parse(text string) (Trigger, error) {
	t := Trigger{Text: text}
	s := strings.TrimSpace(text)
	if over, found := strings.CutPrefix(s, "stall:"); found {
		d, err := time.ParseDuration(over)
		if err != nil || d <= 0 {
			return t, fmt.Errorf("%q is %w: stall: wants a duration, such as stall:200ms", text, Err)
		}
		t.Kind, t.Duration = OnStall, d
		return t, nil
	}
	if m := aboutMark.FindStringSubmatch(s); m != nil {
		return t, t.parseMark(m[1], m[2])
	}
	if m := comparison.FindStringSubmatch(s); m != nil {
		t.Function, t.Op = m[1], m[2]
		if t.Op == "=" {
			t.Op = "=="
		}
		if v, err := strconv.ParseInt(m[3], 0, 64); err == nil {
			t.Kind, t.Value = OnResult, v
			return t, nil
		}
		d, err := time.ParseDuration(m[3])
		if err != nil || d < 0 {
			return t, fmt.Errorf("%q is %w: %q is neither a duration, such as 5ms, nor a whole number", text, Err, m[3])
		}
		if t.Op == "==" || t.Op == "!=" {
			return t, fmt.Errorf("%q is %w: no call takes exactly %v; use > or <", text, Err, d)
		}
		t.Kind, t.Duration = OnDuration, d
		return t, nil
	}
	t.Kind, t.Function = OnCall, s
	if m := nthCall.FindStringSubmatch(s); m != nil {
		n, err := strconv.ParseInt(m[2], 10, 64)
		if err != nil || n == 0 {
			return t, fmt.Errorf("%q is %w: calls are counted from #1", text, Err)
		}
		t.Function, t.Value = m[1], n
	}
	if t.Function == "" {
		return t, fmt.Errorf("%q is %w: it names no function", text, Err)
	}
	return t, nil
}

// hint says what may help where no marker has a trigger.
func (t *Trigger) hint() string {
	if t.Span != "" {
		return ": --markers says which are, and callreel markers which begin and end spans"
	}
	return ": callreel markers lists those that there are"
}
