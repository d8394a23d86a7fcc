package ring

import "testing"

func TestChunksThatWereOverwrittenUnreadAreCounted(t *testing.T) {
	state := func(changes, is uint32) uint32 { return changes<<ChunkChanges | is }
	for _, c := range []struct {
		before, now uint32
		taken       bool
		want        uint64
	}{
		{state(0, ChunkFull), state(0, ChunkFull), true, 0},
		{state(0, ChunkFull), state(1, ChunkTaken), true, 0},
		{state(0, ChunkFull), state(2, ChunkOwned), true, 0},  // somebody's now
		{state(0, ChunkFull), state(2, ChunkOwned), false, 1}, // it waited for an event, and has been overwritten
		{state(0, ChunkFull), state(3, ChunkFull), true, 0},   // full again: it can be taken now
		{state(0, ChunkFull), state(5, ChunkOwned), true, 1},  // was full meanwhile
		{state(0, ChunkFull), state(6, ChunkFull), true, 1},   // the one before is gone
		{state(5, ChunkOwned), state(6, ChunkFull), false, 0}, // can be taken now
		{state(5, ChunkOwned), state(7, ChunkTaken), false, 1},
		{state(5, ChunkOwned), state(8, ChunkOwned), false, 1},
		{state(4, ChunkTaken), state(5, ChunkOwned), false, 0},
		{state(5, ChunkOwned), state(7, ChunkOwned), false, 1},       // its thread has overwritten its own
		{state(1<<30-1, ChunkOwned), state(1, ChunkTaken), false, 1}, // the count has gone round
		{state(0, ChunkApart), state(1, ChunkOwned), false, 0},
	} {
		if got := unread(c.before, c.now, c.taken); got != c.want {
			t.Errorf("from %#x to %#x, taken %v: %d, want %d", c.before, c.now, c.taken, got, c.want)
		}
	}
}
