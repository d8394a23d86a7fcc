package recorder

import (
	"time"

	"github.com/callreel/callreel/recorder/internal/trigger"
	"github.com/callreel/callreel/reel"
)

// Trigger is a condition on which the last moments are dumped, as ParseTrigger reads it. Text is the condition as it was given, Function
// the glob of the functions that it is about, as in a Choice, and Kind what it looks at. With OnDuration the call's time is compared with
// Duration, with OnResult what it returns with Value; Op is how, one of > >= < <= == !=. With OnCall Value is the number of the call, from
// 1, or 0 for every call. With OnStall Duration is how long the stall is, and there is no Function.
type Trigger = trigger.Trigger

// TriggerKind says what a Trigger looks at.
type TriggerKind = trigger.Kind

// The kinds of triggers.
const (
	OnDuration = trigger.OnDuration // F > 5ms: how long the call took; for > and >= also one that has not returned
	OnResult   = trigger.OnResult   // F == 0: what it returns
	OnCall     = trigger.OnCall     // F, F #100: that it is called, or the Nth time
	OnStall    = trigger.OnStall    // stall:200ms: that the main thread makes no progress; the recorder's user sees to that
)

// ErrTrigger is wrapped by ParseTrigger's errors.
var ErrTrigger = trigger.Err

// ParseTrigger reads a condition: "F > 5ms", "F == 0", "F < 0", "F", "F #100" or "stall:200ms". A number with a unit is a duration,
// one without is compared with what F returns.
func ParseTrigger(text string) (Trigger, error) { return trigger.Parse(text) }

// Arming lets a recording keep the last moments in memory, and dump them when something happens, instead of writing all down.
type Arming struct {
	Triggers []Trigger
	// Keep is how long the last moments are.
	Keep time.Duration
	// Max is how many dumps triggers may make; 0 for any number.
	Max int
	// Memory is how many bytes are used for what the rings have held, encoded, besides the rings themselves; 0 is DefaultMemory.
	Memory uint64
	// With are more processes that are recorded in the same way: each dump, whichever of them it is made for, has the same time of all. One
	// that ends doesn't end the recording of the others. Each trigger, and each glob, must match in one of them; each must have something to
	// record, and none be a Go program, or none is touched.
	With []int
	// Requests are for dumps that are asked for; nil if none will be.
	Requests <-chan DumpRequest
	// Begun, if not nil, is told the process when recording is on.
	Begun func(pid int)
	// Dumped, if not nil, is told of each dump. It is called by another goroutine than Record's.
	Dumped func(Dumped)
}

// DefaultKeep is for how long the last moments are kept where nobody says.
const DefaultKeep = 2 * time.Second

// DefaultMemory is how much memory is used for what the rings have held where nobody says: as much as for the rings.
const DefaultMemory = DefaultRingSize

// MinMemory is the least, in bytes.
const MinMemory = 2 << 20

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
	Frozen  time.Duration `json:"frozen_ns"` // from the trigger on, until calls that no chunk was left for were recorded again
	Events  uint64        `json:"events"`
	Missing int           `json:"missing"` // stretches of time of a thread that are not in it
	Took    time.Duration `json:"took_ns"` // from when the recorder began with it until the file had its name
}

// Past is what an armed recording keeps besides what the rings hold.
type Past struct {
	Memory int    // bytes that may be used for it
	Used   int    // bytes that are
	Events uint64 // that are kept
	// Lasts is how much time the memory is for at the rate of the last seconds; 0 if nothing comes.
	Lasts time.Duration
	// ReachesBack is since when all calls of all threads are kept; 0 if since recording began.
	ReachesBack time.Duration
}

// Triggers counts what became of triggers.
type Triggers struct {
	Fired      int
	Dumped     int // dumps that they made
	Suppressed int // those that made none: within another dump, too many at a time, or more than Arming.Max
}
