package ring

import (
	"testing"
	"time"
)

// A heartbeat that comes late by the clock that threads go by is noticed, whichever way the clock was set, and for a while.
func TestLateHeartbeatsAreNoticed(t *testing.T) {
	m := memoryOf(t, Setup{Chunks: MinChunks})
	perSecond := m.beats.perSecond
	m.Beat()
	m.Beat()
	if silent, _ := m.Silence(); silent != 0 {
		t.Errorf("%v of silence", silent)
	}
	for _, d := range []int64{40, -40} {
		m.beats.last.Store(Ticks() - uint64(d)*perSecond)
		m.Beat()
		m.Beat()
		silent, until := m.Silence()
		if silent < 39*time.Second || silent > 60*time.Second || Ticks()-until > 20*perSecond {
			t.Errorf("%d s: %v of silence until %d", d, silent, until)
		}
	}
	m.beats.silentUntil.Store(Ticks() - 21*perSecond)
	if silent, _ := m.Silence(); silent != 0 {
		t.Errorf("%v of silence, which is long over", silent)
	}
}
