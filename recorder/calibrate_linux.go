package recorder

import (
	"time"

	"github.com/callreel/callreel/recorder/internal/ring"
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

// minCalibration makes an interrupt between the two readings of each end (some µs) worth less than 1 in 1,000.
const minCalibration = 10 * time.Millisecond

func startCalibration() calibration { return calibration{time.Now(), ring.Ticks()} }

func (c calibration) ticksPerSecond() uint64 {
	if d := time.Since(c.at); d < minCalibration {
		time.Sleep(minCalibration - d)
	}
	return uint64(float64(ring.Ticks()-c.tick) / time.Since(c.at).Seconds())
}
