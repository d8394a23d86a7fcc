package collect

import (
	"github.com/callreel/callreel/recorder/internal/waitcalls"
	"github.com/callreel/callreel/reel"
)

// Sink takes what is recorded. An error of any method ends the recording.
type Sink interface {
	// Thread begins with a thread; the same ID may come again, as another thread.
	Thread(t reel.Thread) (ThreadSink, error)
	// ClockPair tells one instant on both clocks, about once a second.
	ClockPair(tick uint64, unixNS int64) error
	// Round follows each round through all threads: events from before that tick have come, but for those that a thread was about to write
	// just then.
	Round(tick uint64) error
	// Flush is called some times a second.
	Flush() error
}

// ThreadSink takes what is recorded of one thread.
type ThreadSink interface {
	// Append takes the next events. It must not keep the slice.
	Append(events []reel.Event) error
	// Dropped says that calls were not recorded since the last event, or before: entries with their exits, exits without their entries.
	Dropped(entries, exits, tick uint64) error
	Rename(name string) error
	// End says that the thread has ended, at that tick or, if that is later, with its last event; 0 if only that is known.
	End(tick uint64) error
}

// valueSink is a ThreadSink that also takes values of arguments and results.
type valueSink interface {
	AppendWith(events []reel.Event, values []reel.ValueSet) error
}

// keptSink is a ThreadSink that wants to know what calls that took long were about. It is told behind their events.
type keptSink interface {
	Kept(calls []waitcalls.Kept) error
}
