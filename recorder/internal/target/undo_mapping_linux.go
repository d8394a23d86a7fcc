package target

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/recovery"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// undoMapping takes away what was mapped for arenas, and opened, when not all of it could be, and returns why that was. undo does what is
// known to have been made; what has become of the call that failed, or after ErrLate of all, is looked for.
func (s *Target) undoMapping(st *process.Stopped, arenas []*Arena, undo []process.Call, why error) error {
	for _, a := range arenas {
		if a.Mem != nil {
			_ = unix.Munmap(a.Mem) // it is ours and mapped, so it can't fail
			a.Mem = nil
		}
	}
	if errors.Is(why, process.ErrLate) {
		undo = nil
	}
	found, err := s.remains(arenas)
	if err != nil {
		why = errors.Join(why, err)
	}
	for _, c := range found {
		if !slices.ContainsFunc(undo, func(u process.Call) bool { return u.Number == c.Number && u.Args[0] == c.Args[0] }) {
			undo = append(undo, c)
		}
	}
	for _, c := range undo {
		if _, err := st.SyscallBatch([]process.Call{c}); err != nil && !errors.Is(err, process.ErrLate) { // then it was made
			why = errors.Join(why, fmt.Errorf("undoing: %w", err))
		}
	}
	return why
}

// remains finds arenas, ring memory that isn't in use yet and descriptors of ours in the process, and returns what takes them away.
// Places and names tell; the process has run on meanwhile, and may have mapped and opened whatever it likes.
func (s *Target) remains(arenas []*Arena) (undo []process.Call, err error) {
	maps, err := s.Process.Maps()
	if err != nil {
		return nil, err
	}
	for _, a := range spansOf(arenas) {
		if isArena(maps, a) {
			undo = append(undo, process.Call{Number: unix.SYS_MUNMAP, Args: [6]uint64{a.Base, a.Size}})
		}
	}
	for i := range maps {
		if m := &maps[i]; s.Memory == nil && s.hasMade(m.Dev, m.Inode) && (m.Path == ring.MappingName || m.Path == recovery.MappingName) {
			undo = append(undo, process.Call{Number: unix.SYS_MUNMAP, Args: [6]uint64{m.Start, m.Size()}})
		}
	}
	open, err := s.Process.Descriptors(func(name string) bool {
		name = strings.TrimSuffix(name, " (deleted)")
		return name == ring.MappingName || name == codeMapping || name == recovery.MappingName
	})
	if err != nil {
		return undo, fmt.Errorf("callreel: %w", err)
	}
	for _, f := range open {
		if s.isFresh(f.Info) {
			undo = append(undo, process.Call{Number: unix.SYS_CLOSE, Args: [6]uint64{uint64(f.FD)}})
		}
	}
	return undo, nil
}

// hasMade says whether the process was made to open that memfd.
func (s *Target) hasMade(dev, inode uint64) bool {
	return slices.ContainsFunc(s.made, func(m process.Memfd) bool { return m.Dev == dev && m.Inode == inode })
}

// isFresh says whether a file was made while this recording made memfds: one of the same name may be somebody else's.
func (s *Target) isFresh(file os.FileInfo) bool {
	const coarse = 100 * time.Millisecond // the clock of files
	return file != nil && file.ModTime().After(s.began.Add(-coarse))
}
