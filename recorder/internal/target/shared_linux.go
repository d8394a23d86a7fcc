package target

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/process"
)

// RingsShared says whether somebody else has the ring memory mapped still: the process, one that it has forked, or somebody who looks
// at it. It unmaps the rings here first, so it comes once they have been read to the end. It waits for a process that is ending, up to a
// minute. known is false where it can't be told: there are no rings, or whoever has them has seen to it.
//
// The kernel counts the shared mappings that a file may be written through, and refuses F_SEAL_WRITE while there are any (fcntl(2),
// "File Sealing"). A forked child's count from before it first runs. So no process is left out, as it would be that ends, or is made,
// while all processes are looked through, or that is in a namespace which we don't see.
func (s *Target) RingsShared() (shared, known bool) {
	if s.FD < 0 {
		return false, false
	}
	if s.Memory != nil {
		s.Memory.Close()
		s.Memory = nil
	}
	const (
		death = time.Minute // a process with much memory takes its time to end, and has the rings until then
		pause = 2 * time.Millisecond
	)
	for began := time.Now(); ; time.Sleep(pause) {
		switch _, err := unix.FcntlInt(uintptr(s.FD), unix.F_ADD_SEALS, unix.F_SEAL_WRITE); {
		case err == nil:
			return false, true
		case err != unix.EBUSY:
			return false, false
		}
		if ending, ended := process.Ending(s.PID()); !ending || ended || !s.Process.Alive() || time.Since(began) > death {
			return true, true
		}
	}
}
