package timeline

import "github.com/callreel/callreel/reel"

// Options say how a timeline is opened.
type Options struct {
	// Progress, if set, is called now and then while the reel is being indexed,
	// with the events done and those there are. It may be called by several
	// goroutines, though not at once.
	Progress func(done, total uint64)
	// Workers is how many goroutines index; 0 means one for each processor.
	Workers int
	// Cache is how many bytes decoded calls may take; 0 means 256 MiB.
	Cache int64

	segment int    // events of a segment
	small   int    // calls of a segment without summaries
	atOnce  uint64 // events that are decoded rather than summed up
}

// Lane is one lane of the timeline.
type Lane struct {
	// ID is the lane's place in Lanes. It stays what it is when a reel grows.
	ID uint32
	// Thread is the key of the thread; of a goroutine that of the last it ran on.
	Thread uint32
	// Goroutine is the goroutine's ID, 0 for a thread.
	Goroutine uint64
	// TID, Process and Name are those of the thread.
	TID, Process int
	Name         string
	// Calls counts entries.
	Calls uint64
	// Rows is how many rows there are.
	Rows int
	// Start and End are the time of the first event and when the last call ended.
	Start, End uint64
	// Dropped counts the events that are missing from it.
	Dropped uint64
	// States says that it is a thread of which the reel knows when it ran.
	States bool
}

// LaneRows chooses Count rows of a lane from First on.
type LaneRows struct {
	Lane         uint32
	First, Count int
}

// Query asks for what is to be seen from From to To (exclusive) on a screen
// Width pixels wide.
type Query struct {
	From, To uint64
	Width    int
	Lanes    []LaneRows
	// Quick asks for an answer at once: where far more would have to be decoded
	// than where the index has all its levels, that takes what there is, and
	// View.Coarse says so. The same query without Quick gives the finer picture.
	Quick bool
	// States asks for the states of the lanes' threads, too. With Summed only those that are summed up: an answer waits for none, and
	// View.Unsummed says whether some are left out.
	States, Summed bool
}

// Bar is a call, or several that are each narrower than a pixel.
type Bar struct {
	Start, Duration uint64
	// Busy is the time in calls: Duration for a call, no more for several.
	Busy uint64
	// Func is the function's ID; of several calls that of one that takes much of
	// the time.
	Func uint32
	// Calls is how many calls the bar stands for.
	Calls uint32
	// Flags are the call's, or those that any of several has.
	Flags reel.CallFlags
}

// Row is one row of a lane.
type Row struct {
	Lane uint32
	Row  int
	// Bars are those that reach into the range, in order of time; the first and
	// the last may reach beyond it.
	Bars []Bar
}

// Gap is a stretch in which events are missing: dropped, or damaged in the file.
type Gap struct {
	Start, End uint64
	// Events is how many are missing, 0 if that is not known.
	Events uint64
}

// LaneGaps are the gaps of a lane that reach into the range.
type LaneGaps struct {
	Lane uint32
	Gaps []Gap
}

// StateSpan is a stretch in which a thread was in one state, or about a pixel in which it was in several or had page faults. Times are in
// nanoseconds; what is missing to its duration isn't known.
type StateSpan struct {
	Start, Duration         uint64
	Running, Ready, Blocked uint64
	// Uninterruptible is the part of Blocked that was in state D.
	Uninterruptible uint64
	// Minor and Major count page faults.
	Minor, Major uint32
}

// LaneStates is what a lane's thread did, in order of time. Stretches of which nothing is known are left out.
type LaneStates struct {
	Lane  uint32
	Spans []StateSpan
}

// View is the answer to a Query.
//
// What a pixel is, is rounded to the nearest power of two of ticks. A call at least
// that long is a bar by itself. Shorter ones of a row are merged as long as
// they begin in the same 16 pixels and nothing between them is as wide as a
// pixel. Each call is in one bar, and which one depends on the resolution only,
// not on the range.
type View struct {
	Rows []Row      // as asked for, those without bars left out
	Gaps []LaneGaps // of the lanes asked for that have any
	// States are those of the lanes asked for that have any, if they were asked for.
	States []LaneStates
	// Unsummed says that the states of some lanes are left out, as they aren't summed up yet; see SumStates.
	Unsummed bool
	// Coarse says that bars may be merged from calls up to Pixels pixels wide.
	Coarse bool
	Pixels int
}

// Overview is the whole recording in columns of equal width. Of a dump it is the window
// that was asked for: what is before that are entries of calls that were open then, which may be far.
type Overview struct {
	// From is where the first column begins.
	From uint64
	// Busy is the time in calls at depth 0, summed over all lanes.
	Busy []uint64
	// Gaps are those of all lanes, merged where they are less than a column apart.
	Gaps []Gap
}

// Position is a place on the timeline.
type Position struct {
	Lane uint32
	Row  int
	At   uint64
}

// Found is a call.
type Found struct {
	Lane uint32
	Row  int
	Func uint32
	// Start, Duration and Self are those of reel.Call in nanoseconds, Tick is its Start.
	Start, Duration, Self uint64
	Tick                  uint64
	Depth, Stack          int
	Flags                 reel.CallFlags
	// Callers are the calls around it on its stack, outermost first.
	Callers []Found
}
