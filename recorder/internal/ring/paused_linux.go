package ring

import "sync/atomic"

// SetPaused says whether the recorder wants no events to be written. Threads that are within an event's code by then write that one still.
func (m *Memory) SetPaused(on bool) {
	if on {
		atomic.OrUint32(m.u32(HdrPaused), PausedByRecorder)
	} else {
		atomic.AndUint32(m.u32(HdrPaused), ^uint32(PausedByRecorder))
	}
}

// PausedSelf says whether the program wants none, where children aren't followed.
func (m *Memory) PausedSelf() bool {
	return atomic.LoadUint32(m.u32(HdrPaused))>>(8*PausedSelf)&0xFF != 0
}
