package recovery

import (
	"time"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/owner"
)

// recorderLives says whether the recorder with that PID and start time is at work. One that is being killed isn't, but
// may still be about it: then it waits a little for its end.
func recorderLives(pid int, start uint64) bool {
	for try := 0; ; try++ {
		now, err := process.StartTime(pid, pid)
		if err != nil || now != start {
			return false
		}
		dying, dead := process.Ending(pid)
		if dead {
			return false
		}
		if !dying || try >= 100 {
			return true
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// RecorderLives says whether the recorder is at work, by what is in its word of the header, at HdrOwner. Where PIDs mean here what
// they meant there, one that is just being killed is waited for.
func (a *About) RecorderLives(word uint32) bool {
	if !owner.Lives(word) {
		return false
	}
	return a.RecorderNS != process.OwnPIDNamespace() || recorderLives(a.Recorder, a.RecorderStart)
}
