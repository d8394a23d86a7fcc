package reel

import (
	"fmt"
	"math"
)

// MarkKind says what a mark is. The numbers stand in files.
type MarkKind uint8

// The kinds.
const (
	MarkInstant    MarkKind = iota + 1
	MarkBegin               // a span of the thread, or the goroutine, begins
	MarkEnd                 // the innermost open span with the same Pair ends; with Pair "" the innermost of the same Provider
	MarkAsyncBegin          // an asynchronous span: Pair and ID tell which
	MarkAsyncStep
	MarkAsyncEnd
	MarkFlowOut // something leaves for another place: Pair and ID tell what. It belongs to the innermost span around it, else to the call
	MarkFlowIn
	MarkCounter // a number that goes up and down

	lastMarkKind = MarkCounter
)

var markKinds = [...]string{"", "instant", "begin", "end", "async-begin", "async-step", "async-end", "flow-out", "flow-in", "counter"}

// String returns the kind as reports spell it.
func (k MarkKind) String() string {
	if int(k) < len(markKinds) {
		return markKinds[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// HasID says whether an ID tells which of several marks of the kind belong together.
func (k MarkKind) HasID() bool { return k >= MarkAsyncBegin && k <= MarkFlowIn }

// Marker is a place of the program that says something when it is passed: a site of SystemTap's SDT, or a call of package mark. IDs count
// from 1, in the order in which markers were added.
type Marker struct {
	// Provider and Name are as the program has them: "postgresql", "query__start".
	Provider, Name string
	// Title is what the spans, counters and so on are called that it tells of: "query". It is "" where TitleArg says it.
	Title string
	// Pair is what begins, steps and ends have in common.
	Pair string
	// Category is "" for the provider.
	Category string
	Kind     MarkKind
	// Image and Addr are where the site is; Addr is a link address. Image is 0 for none.
	Image ImageID
	Addr  uint64
	// Arguments are what is recorded with each passing.
	Arguments []Argument
	// TitleArg, IDArg and ValueArg are which of them say the title, the ID and the counter's value, -1 for none.
	TitleArg, IDArg, ValueArg int
}

// Mark is one passing of a marker.
type Mark struct {
	Time      uint64 // ticks; in a file it is rounded down to a few nanoseconds
	Marker    uint32 // ID
	Goroutine uint64 // 0 outside of Go programs
	// Values are in the order of the marker's Arguments.
	Values []Value
}

// Pause is a time in which nothing was recorded because somebody had asked for that.
type Pause struct {
	From, To uint64 // ticks; To is 0 for up to the end
	// By is who asked: "command", "page" or "program".
	By string
	// Process is the one that was paused, 0 for all.
	Process int
}

// TitleOf is what a mark is called: by its marker, or by what one of its values says.
func (m *Marker) TitleOf(x *Mark) string {
	if m.Title != "" || m.TitleArg < 0 || m.TitleArg >= len(m.Arguments) || m.TitleArg >= len(x.Values) {
		return m.Title
	}
	return m.Arguments[m.TitleArg].Text(x.Values[m.TitleArg])
}

// IDOf is the number by which marks belong together; ok is false if it isn't known.
func (m *Marker) IDOf(x *Mark) (id uint64, ok bool) {
	if m.IDArg < 0 || m.IDArg >= len(x.Values) || x.Values[m.IDArg].State != ValueKnown {
		return 0, false
	}
	return x.Values[m.IDArg].Bits, true
}

// ValueOf is what a counter was; ok is false if that isn't known.
func (m *Marker) ValueOf(x *Mark) (v float64, ok bool) {
	if m.ValueArg < 0 || m.ValueArg >= len(x.Values) || m.ValueArg >= len(m.Arguments) || x.Values[m.ValueArg].State != ValueKnown {
		return 0, false
	}
	return m.Arguments[m.ValueArg].number(x.Values[m.ValueArg])
}

// Of is the category that the marker's marks are in.
func (m *Marker) Of() string {
	if m.Category != "" {
		return m.Category
	}
	return m.Provider
}

// number is a value as a number; ok is false of what is none.
func (a *Argument) number(v Value) (n float64, ok bool) {
	switch a.Kind {
	case ArgumentString, ArgumentBytes:
		return 0, false
	case ArgumentUint, ArgumentPointer:
		return float64(v.Bits), true
	case ArgumentFloat:
		n = math.Float64frombits(v.Bits)
	case ArgumentFloat32:
		n = float64(math.Float32frombits(uint32(v.Bits)))
	default:
		return float64(int64(v.Bits)), true
	}
	return n, !math.IsNaN(n) && !math.IsInf(n, 0)
}
