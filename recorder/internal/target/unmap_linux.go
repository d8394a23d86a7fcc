package target

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/recovery"
)

// sharedSpan is where memory is mapped that is shared with the recorder, and the memfd that it is of, as process.Mapping has it.
type sharedSpan struct {
	recovery.Span
	Dev, Inode uint64
}

// isIn says whether it is still there.
func (s sharedSpan) isIn(maps []process.Mapping) bool {
	m := process.FindMapping(maps, s.Base)
	return m != nil && m.Start == s.Base && m.Dev == s.Dev && m.Inode == s.Inode
}

// unmap takes the arenas and the shared memory out of the process, the first of that last.
func unmap(st *process.Stopped, r *recovery.Record, shared []sharedSpan, maps []process.Mapping) error {
	var spans []recovery.Span
	for _, a := range r.Arenas {
		spans = append(spans, a.Span)
	}
	for _, m := range slices.Backward(shared) {
		if m.isIn(maps) {
			spans = append(spans, m.Span)
		}
	}
	var calls []process.Call
	for _, a := range spans {
		calls = append(calls, process.Call{Number: unix.SYS_MUNMAP, Args: [6]uint64{a.Base, a.Size}})
	}
	late := false
	for len(calls) > 0 {
		n := min(len(calls), process.MaxBatch)
		res, err := st.SyscallBatch(calls[:n])
		if errors.Is(err, process.ErrLate) {
			late = true // unmapped all the same, as a rule
		} else if err != nil {
			return err
		}
		for _, x := range res {
			if x.Errno != 0 {
				return fmt.Errorf("callreel: unmapping: %w", x.Errno)
			}
		}
		calls = calls[n:]
	}
	if !late {
		return nil
	}
	now, err := st.Process().Maps()
	if err == nil && shared[0].isIn(now) {
		return fmt.Errorf("callreel: unmapping: %w", process.ErrLate)
	}
	return err
}
