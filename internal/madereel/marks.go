package madereel

import (
	"testing"

	"github.com/callreel/callreel/reel"
)

// The markers of Markers, by their IDs.
const (
	MarkRequest     = iota + 1 // a span, with a text and a number
	MarkRequestDone            // its end, with a number
	MarkBegin                  // a span whose title is its first argument
	MarkEnd                    // of the innermost
	MarkJob                    // an asynchronous span
	MarkJobStep
	MarkJobEnd
	MarkSend // a flow
	MarkReceive
	MarkQueue // a counter
	MarkLoad  // a counter with fractions
	MarkNote  // an instant with a text
	MarkTick  // an instant
)

// Markers are one of each kind, and some more.
func Markers() []reel.Marker {
	none := reel.Marker{Provider: "made", TitleArg: -1, IDArg: -1, ValueArg: -1}
	of := func(kind reel.MarkKind, name, title string, args ...reel.Argument) reel.Marker {
		m := none
		m.Kind, m.Name, m.Title, m.Pair, m.Arguments = kind, name, title, title, args
		return m
	}
	id := reel.Argument{Name: "id", Kind: reel.ArgumentUint}
	numbered := func(kind reel.MarkKind, name, title string) reel.Marker {
		m := of(kind, name, title, id)
		m.IDArg = 0
		return m
	}
	value := func(title string, kind reel.ArgumentKind) reel.Marker {
		m := of(reel.MarkCounter, "counter__"+title, title, reel.Argument{Name: "value", Kind: kind})
		m.ValueArg = 0
		return m
	}
	named := of(reel.MarkBegin, "begin", "", reel.Argument{Name: "title", Kind: reel.ArgumentString})
	named.TitleArg = 0
	end := of(reel.MarkEnd, "end", "")
	return []reel.Marker{
		of(reel.MarkBegin, "request__start", "request", reel.Argument{Name: "path", Kind: reel.ArgumentString}, reel.Argument{Name: "bytes", Kind: reel.ArgumentInt}),
		of(reel.MarkEnd, "request__done", "request", reel.Argument{Name: "status", Kind: reel.ArgumentInt}),
		named, end,
		numbered(reel.MarkAsyncBegin, "job__begin", "job"), numbered(reel.MarkAsyncStep, "job__step", "job"), numbered(reel.MarkAsyncEnd, "job__end", "job"),
		numbered(reel.MarkFlowOut, "send", "message"), numbered(reel.MarkFlowIn, "receive", "message"),
		value("queue", reel.ArgumentInt), value("load", reel.ArgumentFloat),
		of(reel.MarkInstant, "note", "note", reel.Argument{Name: "text", Kind: reel.ArgumentString}), of(reel.MarkInstant, "tick", "tick"),
	}
}

// Number and Text are values of marks.
func Number(n uint64) reel.Value { return reel.Value{Bits: n} }

// Text is a text as a value.
func Text(s string) reel.Value { return reel.Value{Bytes: []byte(s)} }

// AddMarkers adds Markers, which must be the reel's first.
func AddMarkers(t testing.TB, w *reel.Writer) {
	t.Helper()
	first, err := w.AddMarkers(Markers())
	if err != nil || first != 1 {
		t.Fatalf("markers from %d on: %v", first, err)
	}
}

// Marks collects the marks of a thread.
type Marks struct {
	List      []reel.Mark
	Goroutine uint64
}

// At adds a passing of a marker.
func (m *Marks) At(tick uint64, marker uint32, values ...reel.Value) *Marks {
	m.List = append(m.List, reel.Mark{Time: tick, Marker: marker, Goroutine: m.Goroutine, Values: values})
	return m
}

// Write adds them to the thread.
func (m *Marks) Write(t testing.TB, tw *reel.ThreadWriter) {
	t.Helper()
	if err := tw.Marks(m.List); err != nil {
		t.Fatal(err)
	}
}
