package ring

import "sync/atomic"

// SetPaused says whether the recorder wants no events to be written. Threads that are within an event's code by then write that one still.
func (m *Memory) SetPaused(on bool) { m.setPaused(PausedByRecorder, on) }

// SetPausedAtFirst says whether recording has begun with a pause that is still on, unless the program has ended it.
func (m *Memory) SetPausedAtFirst(on bool) { m.setPaused(1<<(8*PausedAtFirst), on) }

func (m *Memory) setPaused(bit uint32, on bool) {
	if on {
		atomic.OrUint32(m.u32(PausedOff), bit)
	} else {
		atomic.AndUint32(m.u32(PausedOff), ^bit)
	}
}

// Paused says whether anybody wants none.
func (m *Memory) Paused() bool { return atomic.LoadUint32(m.u32(PausedOff)) != 0 }

// PausedSelf says whether the program wants none, where children aren't followed.
func (m *Memory) PausedSelf() bool { return m.pausedByte(PausedSelf) }

// PausedAtFirst says whether recording has begun with a pause that is still on.
func (m *Memory) PausedAtFirst() bool { return m.pausedByte(PausedAtFirst) }

func (m *Memory) pausedByte(n int) bool { return atomic.LoadUint32(m.u32(PausedOff))>>(8*n)&0xFF != 0 }
