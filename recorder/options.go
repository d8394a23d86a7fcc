package recorder

import (
	"context"
	"io/fs"
	"syscall"
	"time"

	"github.com/callreel/callreel/reel"
)

// Options say what to record, and how.
type Options struct {
	// PID is the process to attach to; 0 with Command.
	PID int
	// Command is a program to start and record from its entry point on, with its arguments.
	Command []string
	// Ignored are the signals that the command is started to ignore. All others have their default effect in it.
	Ignored []syscall.Signal

	Choice Choice

	// Output is the reel's path; Force replaces one that is there: its name, not what a symbolic link of that name leads to.
	Output string
	Force  bool
	// Mode is the reel's, or that of each dump, exactly, whatever the umask is; 0 is 0600. A folder for dumps that has to be made lets in
	// who may read them.
	Mode fs.FileMode
	// Armed, if not nil, keeps the last moments in memory only, and dumps them into the folder Output when something happens.
	Armed *Arming
	// To, if not nil, takes the events, and there is no reel.
	To Destination
	// Duration ends the recording; 0 leaves that to the context, or to the process's end.
	Duration time.Duration
	// RingSize is how much memory all threads' events may wait in, in bytes; 0 is DefaultRingSize.
	RingSize uint64
	// Clock says which events carry the time.
	Clock reel.ClockMode
	// Lazy says whether probes are made when a function is first called.
	Lazy Laziness
	// Args and Returns say of which functions argument values, or results, are recorded: a function's name or glob, and in parentheses
	// which, separated by commas; without parentheses all. Such functions are chosen whatever Choice says of names.
	Args, Returns []string
	// Markers say which markers that the program has compiled in (SDT, USDT) are recorded: provider:name or a glob of that, with the arguments
	// that are wanted in parentheses; without parentheses all. Pairs are 'begin=end', names of markers that begin and end spans, besides those
	// that are known by their names. See Choice.NoFunctions.
	Markers, Pairs []string
	// Imports say calls to which functions of libraries are recorded by the slots of their callers' images: 'LIB:FUNC', globs. See
	// Choice.NoFunctions.
	Imports []string
	// Conditions are such as "F: size > 4096": only calls for which they hold are recorded. Without F they are on the functions of Args and
	// Returns.
	Conditions []string
	// Follow records forked children, and the programs that processes are replaced by, as well.
	Follow bool
	// Paused begins with a pause: nothing is recorded until somebody asks for it, see AskToResume, or the
	// program says so itself.
	Paused bool
	// Lossless lets the target wait for room instead of dropping calls.
	Lossless bool
	// Scheduling says whether it is recorded when threads run, are ready and wait. Nothing of it goes to To, or where Clock is
	// reel.ClockNone.
	Scheduling SchedulingMode

	// Filters leaves out calls.
	Filters Filters
	// Budget leaves out functions, for what recording them costs.
	Budget Budget

	// Tool names the program and its version for the reel.
	Tool string
	// Started is called once, when recording is on; nil if nobody wants to know.
	Started func()
	// Index is called when the process has been left and the reel's index begins to be made, which may take as long as the recording did. If
	// the context that it returns ends before, the reel has none. done is called behind that. nil is for an index in any case.
	Index func(ctx context.Context) (during context.Context, done func())
	// Notice is told what the user should know as it happens; nil if nobody wants to. It and Progress are called by
	// several goroutines, but one at a time.
	Notice func(format string, args ...any)
	// Progress is called some times a second while recording; nil if nobody wants to.
	Progress func(Progress)
}

// needsAreas says whether threads keep an open stack.
func (o *Options) needsAreas() bool { return len(o.Conditions) > 0 || o.Filters.decideAtEntry() }

// triggers are those of an armed recording; another has none.
func (o *Options) triggers() []Trigger {
	if o.Armed == nil {
		return nil
	}
	return o.Armed.Triggers
}

// Laziness says when probes are made.
type Laziness uint8

// When probes are made.
const (
	LazyAuto Laziness = iota // on the first call, if more than LazyLimit functions are chosen
	Lazy                     // on the first call of each function
	Eager                    // all at once
)

// LazyLimit is up to how many functions get their probes at once by default.
const LazyLimit = 4096

// SchedulingMode says whether it is recorded when threads run, are ready and wait.
type SchedulingMode uint8

// Whether it is.
const (
	SchedulingAuto SchedulingMode = iota // as well as it is permitted; that it isn't is no error
	SchedulingOff                        // it isn't
)

// DefaultRingSize holds 4 M events: a tenth of a second of the busiest program.
const DefaultRingSize = 64 << 20

// Progress is how a recording stands.
type Progress struct {
	Elapsed time.Duration
	Calls   uint64
	Dropped uint64
	Bytes   int64
	Threads int
	// Armed says that the last moments are kept only; Triggers is what became of triggers.
	Armed    bool
	Triggers Triggers
	// Indexed is how many of the reel's events, Indexing, have been indexed since the process was left; both are 0 before.
	Indexed, Indexing uint64
	// Ending says that recording is over, and that the process is being left.
	Ending bool
}

// Result is what a recording came to.
type Result struct {
	Seen    int            // functions chosen
	Traced  int            // of them probed
	Made    int            // of them called at least once, so that their probe was made; all of them with Eager
	Refused map[string]int // the others, by reason
	Images  []Coverage     // those that were there when recording began, the chosen ones

	// Markers is what was asked for of markers.
	Markers Markers

	// Imports is what was asked for of imports.
	Imports Imports

	Calls   uint64 // entries recorded
	Marks   uint64 // passings of markers recorded; Events doesn't count them
	Events  uint64
	Dropped uint64 // entries, and passings of markers, not recorded for want of room
	// Ring is how much memory there was for events to wait in, in bytes, RingEnough how much there would have to have been for none to be
	// dropped; 0 if none were. Scarce says that it is more than there is.
	Ring, RingEnough int64
	Scarce           bool
	LostExits        uint64 // exits of recorded calls that were lost, which takes more open calls than the reserve has room for
	Torn             uint64 // events a thread had begun when it died
	Bytes            int64  // of the reel
	Threads          int

	Libraries Libraries // that came and went while recording
	Processes Processes // that were followed
	Triggers  Triggers  // of an armed recording
	Past      Past      // of one, when it ended
	// Budget is nil where there was none, or none could be kept.
	Budget *BudgetKept
	// Scheduling is nil where it was not to be recorded.
	Scheduling *Scheduling

	AttachStop   time.Duration // for which the target was stopped
	DetachStop   time.Duration
	TextVerified bool   // after detaching the text is the files', byte for byte; true for a process that has ended
	Ended        bool   // the process ended, or replaced its program, before the recording did
	Sandboxed    bool   // recording ended as the process began to restrict its own system calls (seccomp)
	Left         string // why memory of ours stays mapped in the target, empty if it doesn't

	// ExitCode is the command's own, or 128+signal.
	ExitCode int
}

// Markers is what became of the markers that were asked for: of their sites, of which each may have several.
type Markers struct {
	Seen     int
	Recorded int
	Refused  map[string]int // the others, by reason
}

// Imports is what became of the imports that were asked for: of the slots of images for them, of which each function may have several.
type Imports struct {
	Seen     int
	Recorded int
	Refused  map[string]int // the others, by reason
	// Calls is how many places were found that call by a slot which is recorded, Ends of how many of them the end of the call is seen. The calls
	// of others have no end of their own: they end with what comes next.
	Calls, Ends int
}

// Scheduling is what was learned of when threads run, are ready and wait.
type Scheduling struct {
	// Source is "bpf", "perf", or "schedstat", which has sums only. Reason says why it is no better one, and what would make that work.
	Source, Reason string
	Switches       uint64 // words of the scheduler: leaving a processor, coming onto one, being woken, and page faults
	Lost           uint64 // words that are missing
	Waits          uint64 // of which it is known what they were for
}

// Libraries is what came and went while recording.
type Libraries struct {
	Loaded   int // times that a library's functions were probed
	Unloaded int // times that a probed library was found gone
	Stops    int // that this took
	// Stopped is how long the process was stopped for all of it, Longest the longest stop.
	Stopped, Longest time.Duration
}

// Processes is what came of processes that were followed.
type Processes struct {
	Forked     int // children that were recorded with their parent's program
	Executed   int // programs that were recorded from their entry point on
	Late       int // programs that were recorded some time after they had begun
	Unrecorded int // programs that could not be recorded
}
