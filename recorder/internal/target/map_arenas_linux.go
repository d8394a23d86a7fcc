package target

import (
	"fmt"
	"time"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/recovery"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// MapArenas maps more arenas in a process that stands.
func (s *Target) MapArenas(st *process.Stopped, fresh []*Arena) (err error) {
	maps, err := s.Process.Maps()
	if err != nil {
		return err
	}
	if !s.Holds(maps) {
		return fmt.Errorf("callreel: process %d: %w", s.Process.Pid(), process.ErrExec)
	}
	if len(s.Arenas)+len(fresh) > ring.MaxGates {
		return ring.ErrGates
	}
	if err := s.checkSeccomp(st); err != nil {
		return err
	}
	if err := placeAll(fresh, maps); err != nil {
		return err
	}
	s.began = time.Now()
	code, err := s.shareCode(st, fresh)
	if err != nil {
		return err
	}
	if err := s.journal.Add(&recovery.Record{Arenas: spansOf(fresh)}); err != nil {
		var undo []process.Call
		if code != noFile {
			undo = append(undo, closing(code))
		}
		return s.undoMapping(st, fresh, undo, err)
	}
	undo, err := s.mapArenas(st, fresh, code)
	if err == nil {
		err = s.checkMapped()
	}
	if err != nil {
		return s.undoMapping(st, fresh, undo, err)
	}
	s.Mu.Lock()
	s.Arenas = append(s.Arenas, fresh...)
	s.Mu.Unlock()
	return s.listGates(s.Arenas)
}
