package process

import (
	"os"
	"syscall"
)

// An Identity names a process for good, and means the same in every PID namespace.
type Identity struct {
	PIDNamespace uint64 // the inode of the innermost one (pid_namespaces(7)); 0 if it isn't known
	PID          int    // in that one
	Start        uint64 // when it was started, in clock ticks since boot, as TimeNamespace counts
	// TimeNamespace is the inode of the reader's time namespace (time_namespaces(7)), in which start times are told; 0 if there are none.
	TimeNamespace uint64
}

// Is says whether both are one process.
func (i Identity) Is(j Identity) bool {
	return i.PIDNamespace == j.PIDNamespace && i.PID == j.PID && (i.Start == j.Start || i.TimeNamespace != j.TimeNamespace)
}

// Identity returns what names the process.
func (p *Process) Identity() (Identity, error) {
	s, err := p.Status()
	if err != nil {
		return Identity{}, err
	}
	i := Identity{PIDNamespace: namespaceOf(p.path("ns/pid")), PID: p.pid, Start: p.start, TimeNamespace: namespaceOf("/proc/self/ns/time")}
	if n := len(s.NSPIDs); n > 0 {
		i.PID = s.NSPIDs[n-1]
	}
	return i, nil
}

// OwnPIDNamespace returns the inode of the PID namespace of this process; 0 if it isn't known.
func OwnPIDNamespace() uint64 { return namespaceOf("/proc/self/ns/pid") }

// namespaceOf returns the inode of a namespace by its link in /proc, 0 if there is none.
func namespaceOf(path string) uint64 {
	fi, err := os.Stat(path)
	if err != nil {
		return 0
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return st.Ino
}
