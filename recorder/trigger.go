package recorder

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/callreel/callreel/reel"
)

// Trigger is a condition on which the last moments are dumped.
type Trigger struct {
	// Text is the condition as it was given.
	Text string
	// Function names the function that it is about: a glob, as in a Choice.
	Function string
	Kind     TriggerKind
	// Op compares, for the durations and results: one of > >= < <= == !=.
	Op string
	// Duration is what the call's is compared with, or the length of a stall.
	Duration time.Duration
	// Value is what the result is compared with, or the number of the call, from 1; 0 for every call.
	Value int64
}

// TriggerKind says what a Trigger looks at.
type TriggerKind uint8

// The kinds of triggers.
const (
	OnDuration TriggerKind = iota // F > 5ms: how long the call took; for > and >= also one that has not returned
	OnResult                      // F == 0: what it returns
	OnCall                        // F, F #100: that it is called, or the Nth time
	OnStall                       // stall:200ms: that the main thread makes no progress; the recorder's user sees to that
)

// ErrTrigger is wrapped by ParseTrigger's errors.
var ErrTrigger = errors.New("not a condition")

var (
	comparison = regexp.MustCompile(`^(.+?)\s*(>=|<=|==|!=|>|<|=)\s*([-+]?[0-9][0-9A-Za-z.µ]*)$`)
	nthCall    = regexp.MustCompile(`^(.+?)\s*#\s*([0-9]+)$`)
)

// ParseTrigger reads a condition: "F > 5ms", "F == 0", "F < 0", "F", "F #100" or "stall:200ms". A number with a unit is a duration,
// one without is compared with what F returns.
func ParseTrigger(text string) (Trigger, error) {
	t := Trigger{Text: text}
	s := strings.TrimSpace(text)
	if over, found := strings.CutPrefix(s, "stall:"); found {
		d, err := time.ParseDuration(over)
		if err != nil || d <= 0 {
			return t, fmt.Errorf("%q is %w: stall: wants a duration, such as stall:200ms", text, ErrTrigger)
		}
		t.Kind, t.Duration = OnStall, d
		return t, nil
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
			return t, fmt.Errorf("%q is %w: %q is neither a duration, such as 5ms, nor a whole number", text, ErrTrigger, m[3])
		}
		if t.Op == "==" || t.Op == "!=" {
			return t, fmt.Errorf("%q is %w: no call takes exactly %v; use > or <", text, ErrTrigger, d)
		}
		t.Kind, t.Duration = OnDuration, d
		return t, nil
	}
	t.Kind, t.Function = OnCall, s
	if m := nthCall.FindStringSubmatch(s); m != nil {
		n, err := strconv.ParseInt(m[2], 10, 64)
		if err != nil || n == 0 {
			return t, fmt.Errorf("%q is %w: calls are counted from #1", text, ErrTrigger)
		}
		t.Function, t.Value = m[1], n
	}
	if t.Function == "" {
		return t, fmt.Errorf("%q is %w: it names no function", text, ErrTrigger)
	}
	return t, nil
}

// Arming lets a recording keep the last moments in memory, and dump them when something happens, instead of writing all down.
type Arming struct {
	Triggers []Trigger
	// Keep is how long the last moments are.
	Keep time.Duration
	// Max is how many dumps triggers may make; 0 for any number.
	Max int
	// Requests are for dumps that are asked for; nil if none will be.
	Requests <-chan DumpRequest
	// Begun, if not nil, is told the process when recording is on.
	Begun func(pid int)
	// Dumped, if not nil, is told of each dump. It is called by another goroutine than Record's.
	Dumped func(Dumped)
}

// DefaultKeep is for how long the last moments are kept where nobody says.
const DefaultKeep = 2 * time.Second

// DumpRequest asks for a dump.
type DumpRequest struct {
	Kind              reel.TriggerKind
	Condition, Detail string
	// TID is the thread that it is about, 0 if none.
	TID int
	// From and To are when that was which the dump is for; zero if it isn't known, To also of what goes on.
	From, To time.Time
	// Keep is how long the last moments are; 0 for what the Arming says, which is the least for a stall.
	Keep time.Duration
	// Answer, if not nil, is told what came of it.
	Answer func(Dumped, error)
}

// Dumped is a dump that was made.
type Dumped struct {
	File    string        `json:"file"`
	Reason  string        `json:"reason"`    // the condition, and what there is to say besides
	Frozen  time.Duration `json:"frozen_ns"` // from the trigger on, until calls that no room was left for were recorded again
	Events  uint64        `json:"events"`
	Missing int           `json:"missing"` // stretches of time of a thread that are not in it
}

// Triggers counts what became of triggers.
type Triggers struct {
	Fired      int
	Dumped     int // dumps that they made
	Suppressed int // those that made none: within another dump, too many at a time, or more than Arming.Max
}
