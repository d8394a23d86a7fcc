package reel

import "slices"

// LiveSums is what happened in a stretch of time. Times are in ticks.
type LiveSums struct {
	Start, End uint64
	// Threads lists the threads that there were, in order of appearance.
	Threads []LiveThreadSums
	// Dropped counts calls that were not recorded for want of room, LostExits exits of recorded calls.
	Dropped, LostExits uint64
	// Ignored counts entries that were not summed up since too many calls were open.
	Ignored uint64

	functions []*liveFunction // by ID; nil where nothing happened
	spare     []*liveFunction // the same, of those that were cleared
	there     []uint32        // IDs of those that are there
	ordered   bool            // there is in order
}

// LiveThreadSums is what a thread did.
type LiveThreadSums struct {
	Key     uint32
	Calls   uint64 // entries
	Dropped uint64
	Ended   bool
	// Depth is how many calls are open at the end of the stretch, Function the innermost of them, which began at the tick Since.
	Depth    int
	Function uint32
	Since    uint64
}

// LiveFunction is what the calls of a function came to. Times are in ticks.
type LiveFunction struct {
	// Calls counts entries, Ended calls that ended, Open those that were open at the end of the stretch.
	Calls, Ended, Open uint64
	// Self is the time in the function without the calls that it made.
	Self uint64
	// Max is the longest of the calls that ended in the stretch, and of those that were open at its end up to there.
	Max uint64
}

// liveFunction has the durations of complete calls, besides.
type liveFunction struct {
	LiveFunction
	durations histogram
	beneath   beneath
}

// beneath is how many calls were made within complete calls of a function, at any depth, by the rows of its durations' histogram.
type beneath struct{ rows *[65 - histogramBits]uint64 }

func (b *beneath) add(took, calls uint64) {
	if b.rows == nil {
		b.rows = new([65 - histogramBits]uint64)
	}
	b.rows[rowOf(took)] += calls
}

func (b *beneath) merge(o *beneath) {
	if o.rows == nil {
		return
	}
	if b.rows == nil {
		b.rows = new([65 - histogramBits]uint64)
	}
	for i, n := range o.rows {
		b.rows[i] += n
	}
}

func (b *beneath) clear() {
	if b.rows != nil {
		clear(b.rows[:])
	}
}

// ended adds the end of a complete call.
func (f *liveFunction) ended(took, self uint64) {
	f.Ended++
	f.Self += self
	f.Max = max(f.Max, took)
	f.durations.add(took)
}

// make returns the function's sums; those of functions that nobody knows are one.
func (s *LiveSums) make(id, known uint32) *liveFunction {
	if id > known {
		id = 0
	}
	if n := int(id) + 1 - len(s.functions); n > 0 {
		s.functions = append(s.functions, make([]*liveFunction, n)...)
	}
	if s.functions[id] == nil {
		if int(id) < len(s.spare) && s.spare[id] != nil {
			s.functions[id], s.spare[id] = s.spare[id], nil
		} else {
			s.functions[id] = new(liveFunction)
		}
		s.there = append(s.there, id)
		s.ordered = false
	}
	return s.functions[id]
}

// each yields the functions that something happened in, by ID. It is an iter.Seq2.
func (s *LiveSums) each(yield func(id uint32, f *liveFunction) bool) {
	if !s.ordered {
		slices.Sort(s.there)
		s.ordered = true
	}
	for _, id := range s.there {
		f := s.functions[id]
		if f.Calls|f.Ended|f.Open|f.Self|f.Max != 0 && !yield(id, f) {
			return
		}
	}
}

// Functions calls yield with what each function's calls came to, by ID, until it returns false; 0 are those that nobody knows. Functions
// that nothing happened in are left out. It is an iter.Seq2.
func (s *LiveSums) Functions(yield func(id uint32, f *LiveFunction) bool) {
	for id, f := range s.each {
		if !yield(id, &f.LiveFunction) {
			return
		}
	}
}

// Percentile is the duration, in ticks, that so many of a hundred complete calls of the function did not exceed (nearest rank), right to
// 0.8 %; false if none was complete.
func (s *LiveSums) Percentile(id uint32, percent uint64) (uint64, bool) {
	if int(id) >= len(s.functions) || s.functions[id] == nil {
		return 0, false
	}
	f := s.functions[id]
	if f.durations.total() == 0 {
		return 0, false
	}
	return min(f.Max, f.durations.percentile(percent)), true
}

// Typical is how long complete calls of the function took on average, in ticks, and how many calls were made within each of them, at any depth.
// It is of so many of a hundred, those that took least: of those of about the same duration as the longest among them all count in part. calls is how
// many complete calls there were.
func (s *LiveSums) Typical(id uint32, percent uint64) (ticks, beneath float64, calls uint64) {
	if int(id) >= len(s.functions) || s.functions[id] == nil {
		return 0, 0, 0
	}
	f := s.functions[id]
	calls = f.durations.total()
	most := float64(calls) * float64(percent) / 100
	left := most
	for i, row := range f.durations.hits {
		n, sum := 0.0, 0.0
		for j, k := range row {
			n += float64(k)
			sum += float64(k) * float64(bucketMiddle(i, uint64(j)))
		}
		part := min(left/n, 1)
		ticks += part * sum
		if f.beneath.rows != nil {
			beneath += part * float64(f.beneath.rows[i])
		}
		if left -= part * n; left <= 0 {
			break
		}
	}
	return ticks / max(most, 1), beneath / max(most, 1), calls
}

// Add adds the stretch that followed, or one that follows later. What is of the end is o's then: Threads and the calls that are open.
func (s *LiveSums) Add(o *LiveSums) {
	if s.Start == 0 && s.End == 0 {
		s.Start = o.Start
	}
	s.End = o.End
	s.Dropped += o.Dropped
	s.LostExits += o.LostExits
	s.Ignored += o.Ignored
	s.addThreads(o.Threads)
	for _, id := range s.there {
		s.functions[id].Open = 0
	}
	last := uint32(max(len(o.functions), 1) - 1)
	for id, from := range o.each {
		to := s.make(id, last)
		to.Calls += from.Calls
		to.Ended += from.Ended
		to.Open = from.Open
		to.Self += from.Self
		to.Max = max(to.Max, from.Max)
		to.beneath.merge(&from.beneath)
		to.durations.merge(&from.durations)
	}
}

// addThreads adds what threads did; those that had ended before are left out.
func (s *LiveSums) addThreads(list []LiveThreadSums) {
	before := make(map[uint32]LiveThreadSums, len(s.Threads))
	for _, t := range s.Threads {
		before[t.Key] = t
	}
	s.Threads = s.Threads[:0]
	for _, t := range list {
		b := before[t.Key]
		t.Calls += b.Calls
		t.Dropped += b.Dropped
		s.Threads = append(s.Threads, t)
	}
}

// Clear makes the sums those of nothing, and keeps their memory. What it costs then to go through them depends on the functions that something
// happens in, and not on those that were ever met.
func (s *LiveSums) Clear() {
	s.Start, s.End, s.Dropped, s.LostExits, s.Ignored = 0, 0, 0, 0, 0
	s.Threads = s.Threads[:0]
	if n := len(s.functions) - len(s.spare); n > 0 {
		s.spare = append(s.spare, make([]*liveFunction, n)...)
	}
	for _, id := range s.there {
		f := s.functions[id]
		f.LiveFunction = LiveFunction{}
		f.durations.clear()
		f.beneath.clear()
		s.functions[id], s.spare[id] = nil, f
	}
	s.there, s.ordered = s.there[:0], true
}
