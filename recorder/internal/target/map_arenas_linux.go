package target

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/recovery"
	"github.com/callreel/callreel/recorder/internal/refusal"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// MapArenas maps more arenas in a stopped process.
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
	if err := s.checkSeccomp(st, fresh); err != nil {
		return err
	}
	if err := s.placeAll(fresh, maps); err != nil {
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

func (s *Target) placeAll(arenas []*Arena, maps []process.Mapping) error {
	stack := s.stackLimit()
	for i, a := range arenas {
		if err := a.place(maps, arenas[:i], stack); err != nil {
			return err
		}
	}
	return nil
}

// stackLimit is how much the first thread's stack may grow at most: four times its limit, since the program may raise that.
func (s *Target) stackLimit() uint64 {
	var limit unix.Rlimit
	if err := unix.Prlimit(s.Process.Pid(), unix.RLIMIT_STACK, nil, &limit); err != nil || limit.Cur > growth {
		return growth
	}
	return 4 * limit.Cur
}

// mapArenas maps arenas, whose code is in the target's descriptor code, if there is that, and closes it. It returns what takes away again
// what it has mapped.
func (s *Target) mapArenas(st *process.Stopped, arenas []*Arena, code uint64) (undo []process.Call, err error) {
	if code != noFile {
		closeCode := process.Call{Number: unix.SYS_CLOSE, Args: [6]uint64{code}}
		defer func() {
			_, e := st.SyscallBatch([]process.Call{closeCode})
			err = errors.Join(err, e)
		}()
	}
	at := uint64(0)
	for _, a := range arenas {
		mapped, err := s.mapArena(st, a, code, at)
		undo = append(undo, mapped...)
		if err != nil {
			return undo, err
		}
		at += a.Size
	}
	return undo, nil
}

// spansOf are arenas with their data.
func spansOf(arenas []*Arena) []recovery.Arena {
	var all []recovery.Arena
	for _, a := range arenas {
		all = append(all, recovery.Arena{Span: recovery.Span{Base: a.Base, Size: a.Size + dataSize}, Dev: a.Dev, Inode: a.Inode})
	}
	return all
}

// mapArena maps an arena and its data at their places, and returns what takes away again what it has mapped.
// Its code is in the file fd at that offset, if there is one.
func (s *Target) mapArena(st *process.Stopped, a *Arena, fd, off uint64) (undo []process.Call, err error) {
	const (
		fixed      = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_FIXED_NOREPLACE
		wipeOnFork = 18 // MADV_WIPEONFORK
		prSetVMA   = 0x53564d41
		prVMAName  = 0
	)
	flags := uint64(fixed)
	switch {
	case fd == noFile:
	case sharesCode:
		flags = unix.MAP_SHARED | unix.MAP_FIXED_NOREPLACE
	default:
		flags &^= unix.MAP_ANONYMOUS
	}
	calls := []process.Call{
		{Number: unix.SYS_MMAP, Args: [6]uint64{a.Base, a.Size, unix.PROT_READ | unix.PROT_EXEC, flags, fd, off}},
		{Number: unix.SYS_MMAP, Args: [6]uint64{a.data(), dataSize, unix.PROT_READ | unix.PROT_WRITE, fixed, noFile}},
		{Number: unix.SYS_MADVISE, Args: [6]uint64{a.Gate(), PageSize, wipeOnFork}},
		{Number: unix.SYS_PRCTL, Args: [6]uint64{prSetVMA, prVMAName, a.Base, a.Size, 0}, Data: []byte("callreel\x00"), DataArg: 4},
	}
	res, err := st.SyscallBatch(calls)
	if err != nil {
		return nil, err
	}
	for i, r := range res[:2] {
		if r.Errno == 0 {
			undo = append(undo, process.Call{Number: unix.SYS_MUNMAP, Args: [6]uint64{r.Value, calls[i].Args[1]}})
		}
	}
	for i, r := range res[:3] {
		if r.Errno != 0 {
			return undo, fmt.Errorf("callreel: process %d: %w: arena of %d bytes at %#x, step %d: %w", s.Process.Pid(), refusal.Err, a.Size, a.Base, i, r.Errno)
		}
		if i < 2 && r.Value != calls[i].Args[0] { // a kernel before 4.17 takes FIXED_NOREPLACE for a hint
			return undo, fmt.Errorf("callreel: process %d: %w: the kernel mapped %#x instead of %#x", s.Process.Pid(), refusal.Err, r.Value, calls[i].Args[0])
		}
	}
	return undo, nil
}
