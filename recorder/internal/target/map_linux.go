package target

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/refusal"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// MapMemory maps arenas and ring memory in the target. It is the first of two short stops: what takes long, the making
// and writing of stubs, is done between them while the process runs.
func (s *Target) MapMemory(ctx context.Context, set ring.Setup) error {
	for try := 0; ; try++ {
		d, err := s.Process.Stop(ctx, s.lang.stopOptions(), func(st *process.Stopped) error { return s.MapMemoryIn(st, set) })
		s.Stopped += d
		// The threads that could do it may be on an alternate signal stack, say, at this moment.
		if (errors.Is(err, process.ErrNoSafeThread) || errors.Is(err, process.ErrLate)) && try < StopRetries {
			time.Sleep(time.Millisecond << min(try, 5))
			continue
		}
		return err
	}
}

// MapMemoryIn does MapMemory's work in a stopped process.
func (s *Target) MapMemoryIn(st *process.Stopped, set ring.Setup) error {
	maps, err := s.Process.Maps()
	if err != nil {
		return err
	}
	if l, err := findRemainsIn(s.Process, maps); err != nil || l != nil {
		return errors.Join(err, fmt.Errorf("callreel: process %d: %w", s.Process.Pid(), ErrRecorded))
	}
	if err := s.lang.identify(s, st); err != nil {
		return err
	}
	if err := s.checkSeccomp(st, s.Arenas); err != nil {
		return err
	}
	if s.ArgBuffers != 0 { // libraries that come may have values in memory, though none has now
		if s.MayRead, err = mayCall(st, stub.ForReading); err != nil {
			return err
		}
	}
	if err := s.findLoader(st); err != nil {
		return err
	}
	if s.Runtime.Names, err = s.mayKeepNames(st); err != nil {
		return err
	}
	if err := s.placeAll(s.Arenas, maps); err != nil {
		return err
	}
	if err := s.checkClock(st); err != nil {
		return err
	}
	return s.mapAll(st, maps, set)
}

// checkClock makes sure that code in the arena may read the time-stamp counter: a process can give that up (PR_SET_TSC),
// and is killed then for trying.
func (s *Target) checkClock(st *process.Stopped) error {
	const prTSCSigsegv = 2
	mode := make([]byte, 4)
	res, err := st.SyscallBatch([]process.Call{{Number: unix.SYS_PRCTL, Args: [6]uint64{unix.PR_GET_TSC}, Data: mode, DataArg: 1}})
	if err != nil {
		return err
	}
	if res[0].Errno == 0 && binary.LittleEndian.Uint32(mode) == prTSCSigsegv {
		return fmt.Errorf("callreel: process %d: %w: it has forbidden itself to read the time-stamp counter (PR_SET_TSC), which probes do", s.Process.Pid(), refusal.Err)
	}
	return nil
}

// mapAll maps the recovery memory, the ring memory, away from the arenas' places, and then the arenas. The recovery memory carries the
// recorder's identity and those places before anything is mapped, and is mapped first: whoever finds anything in a process can tell
// whether its recorder lives, and what there may be of arenas.
func (s *Target) mapAll(st *process.Stopped, maps []process.Mapping, set ring.Setup) error {
	m := &mapper{s: s, st: st}
	err := m.open(set)
	if err == nil {
		err = m.mapMemory(maps)
	}
	if err == nil {
		err = m.mapArenas(s.Arenas)
	}
	if err == nil {
		err = s.checkMapped()
	}
	if err != nil {
		s.closeMemory()
		return s.undoMapping(st, s.Arenas, m.undo, err)
	}
	s.placeParts()
	s.Memory.SetBase(s.Runtime.Ring)
	return s.listGates(s.Arenas)
}

// placeParts says where the parts of the ring memory are that not every recording has.
func (s *Target) placeParts() {
	if s.GoStacks != 0 {
		s.Runtime.Go.Stacks = s.Runtime.Ring + s.GoStacks
	}
	if s.Areas != 0 {
		s.Runtime.Areas = s.Runtime.Ring + s.Areas
		s.Memory.SetAreas(s.Areas)
	}
	if s.ArgBuffers != 0 {
		s.Runtime.Args = s.Runtime.Ring + s.ArgBuffers
	}
	if s.Kept != 0 {
		s.Runtime.Kept = s.Runtime.Ring + s.Kept
	}
	if s.Counts != 0 {
		s.Runtime.Counts = s.Runtime.Ring + s.Counts
		s.Memory.SetCounts(s.Counts)
	}
	if s.Predicates != 0 {
		s.Runtime.Predicates = s.Runtime.Ring + s.Predicates
	}
}

// findPrivileges finds out whether the process may do more than other processes of its user, or than some of its own children may.
func (s *Target) findPrivileges() error {
	st, err := s.Process.Status()
	if err != nil {
		return err
	}
	several := func(ids [4]int) bool { return ids[1] != ids[0] || ids[2] != ids[0] || ids[3] != ids[0] }
	s.privileged = st.Capable != 0 || st.UIDs[0] == 0 || several(st.UIDs) || several(st.GIDs)
	return nil
}

// checkMapped makes sure that the files that have been mapped are those that were looked at: somebody may have changed the descriptors
// in between, see process.TakeMemfd.
func (s *Target) checkMapped() error {
	maps, err := s.Process.Maps()
	if err != nil {
		return err
	}
	if !s.Holds(maps) {
		return fmt.Errorf("callreel: process %d: %w: other files were mapped than it was told to: something shares its descriptors", s.Process.Pid(), refusal.Err)
	}
	for _, a := range s.Arenas {
		m := process.FindMapping(maps, a.Base)
		if m == nil || a.Inode != 0 && (m.Dev != a.Dev || m.Inode != a.Inode) {
			return fmt.Errorf("callreel: process %d: %w: another file was mapped for stubs than it was told to: something shares its descriptors", s.Process.Pid(), refusal.Err)
		}
	}
	return nil
}

// Holds says whether the process has this recording's own memory mapped where it was. It hasn't when it has replaced its program.
func (s *Target) Holds(maps []process.Mapping) bool {
	return !slices.ContainsFunc(s.Shared(), func(m sharedSpan) bool { return !m.isIn(maps) })
}

// listGates tells hooks which gates there are.
func (s *Target) listGates(arenas []*Arena) error {
	var gates []uint64
	for _, a := range arenas {
		gates = append(gates, a.Gate())
	}
	return s.Memory.SetGates(gates)
}
