package target

import "github.com/callreel/callreel/recorder/internal/ring"

// Alive says whether the process hasn't ended.
func (s *Target) Alive() bool { return s.Process.Alive() }

// PrepareSyscalls makes ready what makes the process call, see process.Process.PrepareSyscalls.
func (s *Target) PrepareSyscalls() error { return s.Process.PrepareSyscalls() }

// Sandboxed says whether the process is about to restrict its own system calls, which ends recording.
func (s *Target) Sandboxed() bool { return s.Memory.Sandboxed() }

// OwnName is the name that a thread, by its ID in its namespace, has given itself last.
func (s *Target) OwnName(nstid int) ring.OwnName { return s.Memory.OwnName(nstid) }

// Lazy says whether probes are made on the first call.
func (s *Target) Lazy() bool { return s.Runtime.Lazy }

// Every is of how many calls one is recorded; 0 if all are.
func (s *Target) Every() uint32 { return s.Runtime.Every }
