package markindex

import "github.com/callreel/callreel/reel"

// Bounds of what is kept. What is beyond is counted by Left, except where something else is said.
const (
	// maxItems is how many spans, values of counters, instants and flows are kept: 16 to 40 bytes each.
	maxItems = 1 << 25
	// maxTitles is how many titles are told apart; others are one.
	maxTitles = 1 << 16
	// maxLanes is how many threads and goroutines have marks.
	maxLanes = 1 << 18
	// maxTracks is how many titles of asynchronous spans, and of counters, have a track of their own. Further asynchronous spans share one.
	maxTracks = 256
	// MaxRows is how many rows a lane, or a track, has at most. The last one has all spans that are deeper, or for which there is no room.
	MaxRows = 24
)

// Title is what marks are called.
type Title struct {
	Name, Category string
	// Process is of counters, and 0 for titles of others.
	Process int
	// How often it occurs. Tracks are those of a counter and of asynchronous spans, -1 for none.
	Spans, Async, Counts, Instants, Flows uint64
	CounterTrack, AsyncTrack              int
}

// LaneKey names a thread, or a goroutine, whose Thread is 0 then.
type LaneKey struct {
	Thread    uint32
	Goroutine uint64
}

// Lane is what a thread's, or a goroutine's, marks say.
type Lane struct {
	LaneKey
	Spans    uint64
	Instants points
	rows     []row
}

// Rows is how many rows its spans take.
func (l *Lane) Rows() int { return len(l.rows) }

// Track is a counter, or the asynchronous spans of a title.
type Track struct {
	Title   uint32 // 0: of all titles that have no track of their own
	Counter bool
	Process int
	// Count is how many spans or values there are.
	Count uint64
	// Min, Max and Last are a counter's.
	Min, Max, Last float64
	// More is how many asynchronous spans are in the last row because there was no room for them.
	More uint64

	rows  []row
	steps []points // of rows
	graph graph
}

// Rows is how many rows its spans take, 1 for a counter.
func (t *Track) Rows() int {
	if t.Counter {
		return 1
	}
	return len(t.rows)
}

// Index holds the marks of a reel. It doesn't change.
type Index struct {
	f      *reel.File
	titles []Title // by ID; that with 0 is of none
	lanes  map[LaneKey]*Lane
	order  []*Lane
	tracks []*Track
	flows  flows
	// Marks is how many there are, Left how many spans and so on are not kept because there are too many, Lost how many marks were not
	// paired for want of memory.
	Marks, Left, Lost uint64
}

// None is an index of nothing.
func None(f *reel.File) *Index {
	return &Index{f: f, titles: make([]Title, 1), lanes: map[LaneKey]*Lane{}}
}

// Titles are what marks are called, by ID; there is none with ID 0. The caller must not change them.
func (x *Index) Titles() []Title { return x.titles }

// Title is that with an ID.
func (x *Index) Title(id uint32) (t Title, ok bool) {
	if id == 0 || uint64(id) >= uint64(len(x.titles)) {
		return Title{}, false
	}
	return x.titles[id], true
}

// Lanes are the threads and goroutines that have spans or instants, in order of their first. The caller must not change them.
func (x *Index) Lanes() []*Lane { return x.order }

// Lane is that of a thread or a goroutine, nil if it has no marks.
func (x *Index) Lane(k LaneKey) *Lane { return x.lanes[k] }

// Tracks are counters and asynchronous spans, in order of their first marks. The caller must not change them.
func (x *Index) Tracks() []*Track { return x.tracks }

// FlowCount is how many flows arrived.
func (x *Index) FlowCount() int { return len(x.flows.list) }

// Bytes is about how much memory the marks take.
func (x *Index) Bytes() (n uint64) {
	for _, l := range x.order {
		n += 128 + l.Instants.bytes()
		for i := range l.rows {
			n += l.rows[i].bytes()
		}
	}
	for _, t := range x.tracks {
		n += 256 + t.graph.bytes()
		for i := range t.rows {
			n += t.rows[i].bytes()
		}
		for i := range t.steps {
			n += t.steps[i].bytes()
		}
	}
	n += uint64(cap(x.flows.list))*flowSize + 4*uint64(cap(x.flows.byTo))
	for i := range x.titles {
		n += 128 + uint64(len(x.titles[i].Name)+len(x.titles[i].Category))
	}
	return n
}
