package target

import (
	"github.com/callreel/callreel/process"
)

// TakeBack undoes in a stopped process what was done to it, which may be anything up to all that recording takes.
func (s *Target) TakeBack(st *process.Stopped) error {
	if s.Memory == nil || s.Runtime.Ring == 0 {
		return nil // the mapping of arenas undoes itself
	}
	w, err := prepareUndo(s.Process, s.Record())
	if err != nil {
		return err
	}
	w.shared = s.Shared()
	w.judgeBy(s)
	_, err = w.in(st)
	return err
}
