package ring

import (
	"sync/atomic"
	"time"
)

// LongSilence is after how much of it threads may have closed the gate: somewhat less than HdrCloseLimit says.
const LongSilence = 20 * time.Second

// beats are the recorder's heartbeats as it remembers them: in the memory anybody can write.
type beats struct {
	perSecond    uint64
	last, silent atomic.Uint64 // when the last was, and for how long there was none when that was long, in ticks
	silentUntil  atomic.Uint64 // up to when
}

// Beat tells the target's threads that the recorder is alive.
func (m *Memory) Beat() {
	now := Ticks()
	b := &m.beats
	if last := b.last.Swap(now); last != 0 && b.perSecond != 0 {
		silent := now - last
		if int64(silent) < 0 {
			silent = -silent
		}
		if silent > TicksOf(LongSilence, b.perSecond) {
			b.silent.Store(silent)
			b.silentUntil.Store(now)
		}
	}
	atomic.StoreUint64(m.u64(HdrHeartbeat), now)
}

// Silence is for how long there was no heartbeat by the clock of events, and when that was over, in ticks; 0 if it never was longer than
// LongSilence, or that is over for as long. Neither the recorder nor the target need have stood still then: this clock goes on, or is set back,
// while a machine sleeps or is moved to another host. A thread that looks at it before the recorder does takes it for dead.
func (m *Memory) Silence() (silent time.Duration, until uint64) {
	b := &m.beats
	until = b.silentUntil.Load()
	if long := TicksOf(LongSilence, b.perSecond); until == 0 || Ticks()-until > long {
		return 0, 0
	}
	return time.Duration(float64(b.silent.Load()) / float64(b.perSecond) * float64(time.Second)), until
}
