package ring

import (
	"sync/atomic"

	"github.com/callreel/callreel/reel"
)

// SetMin says how many ticks a call must take at least, before and while recording.
func (m *Memory) SetMin(ticks uint64) { atomic.StoreUint64(m.u64(HdrMin), ticks) }

// SetDepth says how many recorded calls there may be above one another, where that is bounded.
func (m *Memory) SetDepth(n int) { atomic.StoreUint32(m.u32(HdrDepth), uint32(n)) }

// final is how many events of a run can't be taken back any more, in a chunk that the thread hasn't left and that has room: those up to
// the last exit, or mark. Only the last event that a thread has claimed is taken back, and only an entry.
func final(run []reel.Event) int {
	n := len(run)
	for n > 0 && !run[n-1].IsExit() && !IsMark(run[n-1].Word) {
		n--
	}
	for n > 0 && n < len(run) && isPayload(run[n].Word) { // of that one
		n++
	}
	return n
}

// clearBut clears a run that was handed on, but for an entry that a stub is just about to take back: a signal handler has come in
// between and written behind it. The stub will find that out, but may store 0 to its word before, and then what was there. So the event is
// cleared, and its chunk used again, when the thread's word at TakingOff says that it has done with that.
//
// That the word is seen here is since the stub sets it before it makes sure that the entry is the last event, and so before what made the
// entry final was written.
func (d *Drainer) clearBut(t *thread, run []reel.Event) {
	taking := atomic.LoadUint64(d.taking(t.tid))
	at := d.m.base + d.m.chunk(t.chunk-1) + ChunkHeader + uint64(t.pos)*EventSize
	k := int(int64(taking-at) / EventSize) // the event's in run, counted from 1
	if taking <= at || taking > at+uint64(len(run))*EventSize || k == 0 || run[k-1].IsExit() {
		clear(run)
		return
	}
	clear(run[:k-1])
	clear(run[k:])
	d.hold(t)
	d.clearSpent(t.torn)
	t.torn.spent, t.torn.taking = t.pos+k, taking
	t.holed = true
}

// clearSpent clears what clearBut has left, if it may now.
func (d *Drainer) clearSpent(c *tornChunk) {
	if c.spent == 0 || atomic.LoadUint64(d.taking(c.tid)) == c.taking {
		return
	}
	d.m.events(c.idx)[c.spent-1] = reel.Event{}
	c.spent = 0
}

// hold keeps the thread's chunk from being used again.
func (d *Drainer) hold(t *thread) {
	if t.torn == nil {
		t.torn = &tornChunk{tid: t.tid, idx: t.chunk - 1}
		d.torn = append(d.torn, t.torn)
	}
}

// taking is where a thread says which event it is about to take back.
func (d *Drainer) taking(tid int) *uint64 { return d.m.u64(TakingOff + 8*uint64(tid)) }

// SetAreas says where the threads' areas begin.
func (m *Memory) SetAreas(off uint64) { m.areas = off }

// SetCounts says where calls are counted.
func (m *Memory) SetCounts(off uint64) { m.counts = off }

// Count is how many calls of a function there were; 0 where they aren't counted.
func (m *Memory) Count(id uint32) uint64 {
	if m.counts == 0 || id >= MaxFunctions {
		return 0
	}
	return atomic.LoadUint64(m.u64(m.counts + 8*uint64(id)))
}
