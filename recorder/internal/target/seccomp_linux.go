package target

import (
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// checkSeccomp makes sure that no filter of any thread forbids what the stubs in arenas may call.
func (s *Target) checkSeccomp(st *process.Stopped, arenas []*Arena) error {
	no, err := firstForbidden(st, s.purposes(arenas))
	if err == nil && no != nil {
		return no
	}
	return err
}

// purposes are what the stubs in arenas can't do without.
func (s *Target) purposes(arenas []*Arena) []stub.Purpose {
	all := []stub.Purpose{stub.ForRings}
	for _, p := range []struct {
		is bool
		of stub.Purpose
	}{
		{s.Runtime.Follow, stub.ForChildren},
		{s.Runtime.NoTLS, stub.ForThreadIDs},
		{s.readsMemory(arenas), stub.ForReading},
		{s.Predicates != 0, stub.ForPredicates},
		{s.Runtime.Loads, stub.ForLoader},
	} {
		if p.is {
			all = append(all, p.of)
		}
	}
	return all
}

// readsMemory says whether stubs in arenas read values in the process's memory.
func (s *Target) readsMemory(arenas []*Arena) bool {
	captures := s.Runtime.Captures
	if len(captures) == 0 {
		return false
	}
	for _, a := range arenas {
		for i := range a.Fns {
			if c := captures[a.Fns[i].ID]; c != nil && c.Reads() {
				return true
			}
		}
	}
	return false
}

// mayCall says whether no filter of any thread forbids what stubs do for a purpose that recording can do without.
func mayCall(st *process.Stopped, p stub.Purpose) (bool, error) {
	no, err := firstForbidden(st, []stub.Purpose{p})
	return err == nil && no == nil, err
}

// firstForbidden returns a system call that stubs make for one of the purposes, and a thread may not make; nil if there is none. A thread
// whose state can't be read has gone.
func firstForbidden(st *process.Stopped, purposes []stub.Purpose) (*process.SeccompError, error) {
	for _, t := range st.Threads() {
		if mode, err := t.SeccompMode(); err != nil || mode == 0 {
			continue
		}
		for _, p := range purposes {
			for _, c := range generator().Syscalls(p) {
				ok, err := t.SeccompAllows(uintptr(c.Number), c.Args...)
				if err != nil {
					return nil, err
				}
				if !ok {
					return &process.SeccompError{TID: t.TID, Number: c.Number, Why: "stubs need it " + p.String()}, nil
				}
			}
		}
	}
	return nil, nil
}
