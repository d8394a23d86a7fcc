package armed

import (
	"time"

	"github.com/callreel/callreel/recorder/internal/budget"
	"github.com/callreel/callreel/recorder/internal/markers"
	"github.com/callreel/callreel/recorder/internal/overdue"
	"github.com/callreel/callreel/recorder/internal/probes"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/scheduling"
	"github.com/callreel/callreel/recorder/internal/tables"
	"github.com/callreel/callreel/recorder/internal/target"
	"github.com/callreel/callreel/recorder/internal/trigger"
	"github.com/callreel/callreel/recorder/internal/waitcalls"
	"github.com/callreel/callreel/reel"
)

// Config says what is recorded, and where dumps go.
type Config struct {
	Target    *target.Target
	Triggers  *trigger.Set
	Functions *tables.Late
	Values    Values
	// Marks returns what makes marks for a reel, which is w.
	Marks    func(w markers.Taker) *markers.Decoder
	Making   *probes.Maker
	Switches *probes.Switches
	// Tally counts calls by function; nil if nobody asks.
	Tally *budget.Tally
	// Naps says that there is a processor of Go's scheduler to keep while the rings aren't looked at.
	Naps bool
	// Overdue says what threads do while calls take long that triggers are about; nil if nobody is to be asked.
	Overdue *overdue.Watch
	Folder  Folder
	Catalog *Catalog
	// Couple are the recordings whose dumps have this one's part; nil for none.
	Couple *Couple
	// Keep is how long the last moments are, Max how many dumps triggers may make; 0 for any number.
	Keep time.Duration
	Max  int
	// Memory is how many bytes are used for what the rings have held, besides the rings themselves.
	Memory int
	// Scheduler has what the scheduler did with threads; nil if nobody watches it.
	Scheduler *scheduling.Moments
	// Pauses are the times within a window in which nothing was recorded because somebody had asked for that.
	Pauses func(from, to uint64) []reel.Pause
	// Offs are the times within a window in which functions were off for what their calls cost, by target IDs; Budget is what there is to say of that,
	// if anything is. Both may be nil.
	Offs   func(from, to uint64) []reel.Off
	Budget func() (b reel.Budget, ok bool)
	// WaitCalls are the functions whose arguments are kept; nil for none.
	WaitCalls *waitcalls.Set
	// Began is when recording was on, in TSC ticks, of which there are so many in a second. Min is for how many of them a call must take to be
	// in a dump; 0 is for all.
	Began, TicksPerSecond uint64
	Min                   uint64
	// Begun is told when triggers are looked for, Dumped of each dump, Progress some times a second, and Notice what the user should know.
	Begun    func()
	Dumped   func(Dumped)
	Progress func(Progress)
	Notice   func(format string, args ...any)
}

// Values reads what events carry besides.
type Values interface {
	// In returns what reads it for a reel, of which w is told what is recorded of functions.
	In(w ArgumentsSink) Decoder
}

// ArgumentsSink is told what is recorded of a function, before its first values.
type ArgumentsSink interface {
	AddArguments(function uint32, atReturn bool, args []reel.Argument) error
}

// Decoder reads what the events of one reel carry.
type Decoder interface {
	// Decode reads the values of events, whose functions have their target IDs. describe is called before the values are handed on, with the
	// events as they are then.
	Decode(events []reel.Event, payloads []ring.Payload) (sets []reel.ValueSet, describe func(events []reel.Event) error)
}

// Request asks for a dump.
type Request struct {
	Kind              reel.TriggerKind
	Condition, Detail string
	// TID is the thread that it is about, 0 if none.
	TID int
	// From and To are when that was which the dump is for; zero if it isn't known, To also of what goes on.
	From, To time.Time
	// Keep is how long the last moments are; 0 for what the Config says, which is the least for a stall.
	Keep time.Duration
	// Answer is told what came of it.
	Answer func(Dumped, error)
}

// Dumped is a dump that was made.
type Dumped struct {
	File    string
	Reason  string        // the condition, and what there is to say besides
	Frozen  time.Duration // from the trigger on, until calls that no chunk was left for were recorded again
	Events  uint64
	Missing int           // stretches of time of a thread that are not in it
	Took    time.Duration // from when it was begun until the file had its name
}

// Counts is what became of triggers.
type Counts struct {
	Fired      int
	Dumped     int // dumps that they made
	Suppressed int // those that made none: within another dump, too many at a time, or more than Config.Max
}

// Progress is how it stands.
type Progress struct {
	Elapsed time.Duration
	Threads int
	Counts  Counts
}
