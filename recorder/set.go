package recorder

import (
	"time"
)

// notSettable is ErrNotSettable as a recorder has said it.
type notSettable struct{ says string }

func (e *notSettable) Error() string { return "its recorder says: " + e.says }
func (e *notSettable) Unwrap() error { return ErrNotSettable }

// SetRequest says what is to change in a recording that is on.
type SetRequest struct {
	// All records all functions again that were chosen when recording began, Functions only those of them that match one of these globs,
	// as Choice has them; without either those that are recorded now. Of these, Exclude leaves out those that match.
	All                bool
	Functions, Exclude []string

	// Min is Filters.Min, and Threads Filters.Threads, from then on, if not 0 and empty: of recordings only that don't follow children. An armed
	// one must have begun with a Min, and its Threads stay.
	Min     time.Duration
	Threads []string
	// NoMin sets Filters.Min to 0: all calls are kept.
	NoMin bool
	// Keep is Arming.Keep, if not 0. When are conditions as ParseTrigger takes them, each of which takes the place of the one that the
	// recording was armed with for the same function and comparison, but for the number.
	Keep time.Duration
	When []string
}

// changesFilters says whether it asks for anything but functions.
func (q *SetRequest) changesFilters() bool {
	return q.changesMin() || len(q.Threads) > 0 || q.Keep > 0 || len(q.When) > 0
}

// changesMin says whether it asks for another Filters.Min.
func (q *SetRequest) changesMin() bool { return q.Min > 0 || q.NoMin }

// SetAnswer says what became of it.
type SetAnswer struct {
	On      int `json:"on"`      // functions that are recorded now
	Off     int `json:"off"`     // functions that could be, and are not
	Changed int `json:"changed"` // how many were on and are off, or the other way round
	Kept    int `json:"kept"`    // of those that are on: they don't match, but have triggers, or are named by --inside
	// Waiting says which globs match nothing yet, but may in a library that is loaded later.
	Waiting []string `json:"waiting,omitempty"`
}

// changesFunctions says whether it asks for anything.
func (q *SetRequest) changesFunctions() bool {
	return q.All || len(q.Functions)+len(q.Exclude) > 0
}
