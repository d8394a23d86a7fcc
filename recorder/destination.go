package recorder

import "github.com/callreel/callreel/reel"

// Destination takes what is recorded, as a [reel.Writer] does, and does with it what it likes. Begin is called first, when recording
// is on; an error of any method ends the recording. AddImage and AddFunctions may be called while events come, by another
// goroutine than the rest, but before the first event that needs them.
type Destination interface {
	Begin(h reel.Header) error
	AddImage(m reel.Image) (reel.ImageID, error)
	// AddFunctions gives functions consecutive IDs, from 1 on, and returns the first.
	AddFunctions(list []reel.Function) (firstID uint32, err error)
	// Thread begins with a thread; the same ID may come again, as another thread.
	Thread(t reel.Thread) (DestinationThread, error)
	// ClockPair tells one instant on both clocks, about once a second.
	ClockPair(tick uint64, unixNS int64) error
	// Round follows each round through all threads, up to some thousand times a second: events from before that tick have come, but
	// for those that a thread was about to write just then.
	Round(tick uint64) error
	// Flush is called some times a second.
	Flush() error
	// Close is called when the process has been left.
	Close() error
}

// DestinationThread takes what is recorded of one thread.
type DestinationThread interface {
	// Append takes the next events. It must not keep the slice.
	Append(events []reel.Event) error
	// Dropped says that calls were not recorded since the last event, or before: entries with their exits, exits without
	// their entries.
	Dropped(entries, exits, tick uint64) error
	Rename(name string) error
	// End says that the thread has ended, at that tick or, if that is later, with its last event; 0 if only that is known.
	End(tick uint64) error
}

// ArgumentsTaker is a Destination that also takes values of arguments and results; others get the events alone. AddArguments is called
// before the first values of a function.
type ArgumentsTaker interface {
	AddArguments(function uint32, atReturn bool, args []reel.Argument) error
}

// ValuesTaker is a DestinationThread that takes values: see [reel.ThreadWriter.AppendWith].
type ValuesTaker interface {
	AppendWith(events []reel.Event, values []reel.ValueSet) error
}

// MarkersTaker is a Destination that also takes the passings of markers; others get none. AddMarkers numbers markers from 1 on, before their
// first marks, and returns the first number.
type MarkersTaker interface {
	AddMarkers(markers []reel.Marker) (firstID uint32, err error)
}

// MarksTaker is a DestinationThread that takes them: see [reel.ThreadWriter.Marks].
type MarksTaker interface {
	Marks(marks []reel.Mark) error
}
