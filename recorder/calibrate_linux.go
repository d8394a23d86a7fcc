package recorder

import (
	"time"

	"github.com/callreel/callreel/internal/ticks"
)

// clock says how many ticks the time-stamp counter makes in a second.
type clock interface{ ticksPerSecond() uint64 }

// sameClock is a clock that was measured already.
type sameClock uint64

func (c sameClock) ticksPerSecond() uint64 { return uint64(c) }

// calibration measures the time-stamp counter's rate over what happens meanwhile. It only has to be good enough for the
// heartbeat and for a reel without clock pairs: those correct it.
type calibration struct {
	at   time.Time
	tick uint64
}

// minCalibration makes what a reading of two clocks may be wrong by (a microsecond) worth one in 10,000.
const minCalibration = 10 * time.Millisecond

func startCalibration() calibration {
	tick, at := ticks.Beside(time.Now)
	return calibration{at, tick}
}

func (c calibration) ticksPerSecond() uint64 {
	if d := time.Since(c.at); d < minCalibration {
		time.Sleep(minCalibration - d)
	}
	tick, at := ticks.Beside(time.Now)
	return uint64(float64(tick-c.tick) / at.Sub(c.at).Seconds())
}
