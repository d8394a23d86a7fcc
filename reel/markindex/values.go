package markindex

import (
	"slices"

	"github.com/callreel/callreel/reel"
)

// Told is a mark as the reel has it, and the thread that told it.
type Told struct {
	reel.Mark
	Thread uint32
}

// Beginning is the mark that an item begins with, Ending that which a span ends with. They are read from the reel, ok is false if they aren't
// found there: marks of one title that a thread makes at the same time are not told apart.
func (x *Index) Beginning(it *Item) (Told, bool) {
	switch it.Kind {
	case SpanItem:
		if it.Flags&Unstarted == 0 {
			return x.told(it, it.Start, reel.MarkBegin)
		}
	case AsyncItem:
		if it.Flags&Unstarted == 0 {
			return x.told(it, it.Start, reel.MarkAsyncBegin)
		}
	case InstantItem:
		return x.told(it, it.Start, reel.MarkInstant)
	case ValueItem:
		return x.told(it, it.Start, reel.MarkCounter)
	}
	return Told{}, false
}

// Ending is the mark that a span ends with, see Beginning.
func (x *Index) Ending(it *Item) (Told, bool) {
	if it.Flags&Unfinished != 0 {
		return Told{}, false
	}
	switch it.Kind {
	case SpanItem:
		return x.told(it, it.End, reel.MarkEnd)
	case AsyncItem:
		return x.told(it, it.End, reel.MarkAsyncEnd)
	}
	return Told{}, false
}

// maxThreads is how many threads are searched for a mark that may be any one's.
const maxThreads = 256

// told finds a mark at a tick.
func (x *Index) told(it *Item, tick uint64, kind reel.MarkKind) (Told, bool) {
	title, ok := x.Title(it.Title)
	if !ok {
		return Told{}, false
	}
	var threads []uint32
	if it.Thread != 0 {
		threads = append(threads, it.Thread)
	}
	// Goroutines, and asynchronous spans, may end on another thread; a counter is everybody's.
	if it.Kind != SpanItem && it.Kind != InstantItem || it.Lane.Goroutine != 0 {
		for i := range x.f.Threads() {
			if k := x.f.Threads()[i].Key; k != it.Thread && len(threads) < maxThreads {
				threads = append(threads, k)
			}
		}
	}
	for _, thread := range threads {
		r := x.f.Marks(thread)
		r.Seek(tick)
		for m, ok := r.Next(); ok && m.Time == tick; m, ok = r.Next() {
			k, known := x.f.Marker(m.Marker)
			switch {
			case !known || k.Kind != kind || m.Goroutine != it.Lane.Goroutine && it.Kind != AsyncItem && it.Kind != ValueItem:
				continue
			case it.Kind == AsyncItem:
				if id, ok := k.IDOf(m); !ok || id != it.ID {
					continue
				}
			case kind == reel.MarkEnd && k.Title != "" && short(k.Title) != title.Name:
				continue
			case kind != reel.MarkEnd && short(k.TitleOf(m)) != title.Name && title.Name != reel.OtherTitles:
				continue
			}
			return Told{reel.Mark{Time: m.Time, Marker: m.Marker, Goroutine: m.Goroutine, Values: cloned(m.Values)}, thread}, true
		}
	}
	return Told{}, false
}

// StepMark is the mark of a step.
func (x *Index) StepMark(s *reel.SpanStep) (Told, bool) {
	r := x.f.Marks(s.Thread)
	r.Seek(s.Time)
	for m, ok := r.Next(); ok && m.Time == s.Time; m, ok = r.Next() {
		if m.Marker == s.Marker {
			return Told{reel.Mark{Time: m.Time, Marker: m.Marker, Goroutine: m.Goroutine, Values: cloned(m.Values)}, s.Thread}, true
		}
	}
	return Told{}, false
}

func cloned(list []reel.Value) []reel.Value {
	list = slices.Clone(list)
	for i := range list {
		list[i].Bytes = slices.Clone(list[i].Bytes)
	}
	return list
}
