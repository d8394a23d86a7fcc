package timeline

import "github.com/callreel/callreel/reel"

// Piece is a stretch of a thread's lane that can be read by itself.
type Piece struct {
	// Chunk is the index of its first chunk among [reel.File.Chunks] of the thread, Chunks how many it has.
	Chunk, Chunks int
	// Start and End are the ticks of its first and last event.
	Start, End uint64
	// Events is how many it has.
	Events uint64
}

// Pieces are the pieces of a thread's lane, in order; none of a lane of another kind.
func (t *Timeline) Pieces(lane uint32) (list []Piece) {
	snap := t.live.Load()
	l := snap.threadLane(lane)
	if l == nil {
		return nil
	}
	first := snap.clock.first
	for i := range l.segments {
		s := &l.segments[i]
		if s.chunks == 0 {
			return nil
		}
		list = append(list, Piece{int(s.chunk), int(s.chunks), first + s.start, first + s.end, uint64(s.events)})
	}
	return list
}

// PieceState is what a Pairer has to go on from at the beginning of a piece, given its index in [Timeline.Pieces].
func (t *Timeline) PieceState(lane uint32, piece int) (st reel.PairerState, ok bool) {
	snap := t.live.Load()
	l := snap.threadLane(lane)
	if l == nil || piece < 0 || piece >= len(l.segments) {
		return st, false
	}
	st = l.state(&l.segments[piece])
	for i := range st.Stacks {
		for k := range st.Stacks[i].Open {
			st.Stacks[i].Open[k].Start += snap.clock.first // a span's are from there on
		}
	}
	return st, true
}

// threadLane is the lane with the ID if it is a thread's, else nil.
func (s *snapshot) threadLane(id uint32) *lane {
	for _, l := range s.lanes {
		if l.ID == id && l.Goroutine == 0 && !s.f.Header().Goroutines {
			return l
		}
	}
	return nil
}
