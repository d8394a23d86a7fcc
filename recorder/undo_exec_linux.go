package recorder

import (
	"github.com/callreel/callreel/process"
)

// takeBack undoes in a process that stands what was done to it, which may be anything up to all that recording takes.
func (s *session) takeBack(st *process.Stopped) error {
	if s.memory == nil || s.rt.Ring == 0 {
		return nil // the mapping of arenas undoes itself
	}
	w, err := prepareUndo(s.p, s.recovery())
	if err != nil {
		return err
	}
	w.shared = s.shared()
	w.judgeBy(s)
	_, err = w.in(st)
	return err
}
