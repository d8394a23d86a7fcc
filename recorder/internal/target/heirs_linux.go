package target

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/recovery"
)

// Heirs is what was removed from processes that were forked from one that was recorded, and their forked children.
type Heirs struct {
	Processes    int    // that were restored
	TextVerified bool   // in all of them
	Left         string // why arenas stay mapped in one, empty if they don't
	Failed       error  // why one was not restored, nil if all were
}

// RemoveFromHeirs undoes what such processes have inherited, in all that the user may look at. It comes after Remove, with the same
// recovery memory still known. users are those of the process that was recorded, pid its ID. Nobody is older than since, in clock ticks since
// boot; 0 where that isn't known.
func (l *Remains) RemoveFromHeirs(ctx context.Context, pid int, users [4]int, since uint64) (h Heirs, err error) {
	const rounds = 20 // new ones may be forked from those that aren't restored yet
	h.TextVerified = true
	done := map[int]uint64{}
	for range rounds {
		all, err := process.IDs()
		if err != nil {
			return h, err
		}
		found := false
		for _, other := range slices.Backward(all) {
			if other == pid || other == os.Getpid() {
				continue
			}
			if start, err := process.StartTime(other, other); err != nil || start < since {
				continue
			}
			removed, err := l.removeFrom(ctx, other, users, done)
			if err != nil && h.Failed == nil {
				h.Failed = err
			}
			if removed == nil {
				continue
			}
			found = true
			h.Processes++
			h.TextVerified = h.TextVerified && removed.TextVerified
			if h.Left == "" {
				h.Left = removed.Left
			}
		}
		if !found {
			break
		}
	}
	return h, nil
}

// RemoveFromHeirs does that for a recorder that has left the process itself.
func (s *Target) RemoveFromHeirs(ctx context.Context, users [4]int, since uint64) (Heirs, error) {
	if s.rec == nil {
		return Heirs{TextVerified: true}, nil
	}
	return (&Remains{Memory: s.Shared()[0]}).RemoveFromHeirs(ctx, s.PID(), users, since)
}

// HeirsHaveRings says whether forked processes have the ring memory: those of a process that may do more than others don't, unless they
// are followed.
func (s *Target) HeirsHaveRings() bool { return !s.privileged || s.Runtime.Follow }

// removeFrom does it in one process, but for those that are done; nil if it has nothing of that, any more. Its users have to be those of
// the process that was recorded, unless one of these is root, who may be anybody.
func (l *Remains) removeFrom(ctx context.Context, pid int, users [4]int, done map[int]uint64) (*Removed, error) {
	if !l.isMappedIn(pid) {
		return nil, nil
	}
	heir, err := process.Open(pid)
	if err != nil {
		return nil, unlessGone(err)
	}
	defer heir.Close()
	if start, is := done[pid]; is && start == heir.StartTime() {
		return nil, nil
	}
	if st, err := heir.Status(); err != nil || st.UIDs != users && !slices.Contains(users[:3], 0) {
		return nil, unlessGone(err)
	}
	its, err := FindRemains(heir)
	if err != nil || its == nil || !its.Inherited || its.Memory.Dev != l.Memory.Dev || its.Memory.Inode != l.Memory.Inode {
		return nil, unlessGone(err)
	}
	done[pid] = heir.StartTime()
	removed, err := its.Remove(ctx, heir, nil)
	if err != nil && !heir.Alive() {
		return nil, nil
	}
	return removed, unlessGone(err)
}

// isMappedIn says whether a process has the recovery memory where it was.
func (l *Remains) isMappedIn(pid int) (is bool) {
	_ = process.VisitMaps(pid, func(m *process.Mapping) bool { // of another user's nothing is known
		is = m.Start == l.Memory.Base && m.Dev == l.Memory.Dev && m.Inode == l.Memory.Inode && m.Path == recovery.MappingName
		return !is && m.Start <= l.Memory.Base
	})
	return is
}

func unlessGone(err error) error {
	if errors.Is(err, process.ErrNoProcess) {
		return nil
	}
	return err
}
