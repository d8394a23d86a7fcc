package ring

import "sync/atomic"

// Asked is how often a thread has asked for a probe.
func (m *Memory) Asked() uint64 { return atomic.LoadUint64(m.u64(HdrAsked)) }

// AskedWord has a bit for each of the functions from 64×i on that is asked for; i is below MaxFunctions/64. The bits stay set. Whether
// there are such functions is for the caller to check.
func (m *Memory) AskedWord(i int) uint64 { return atomic.LoadUint64(m.u64(AskedOff + 8*uint64(i))) }
