package target

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/owner"
	"github.com/callreel/callreel/recorder/internal/recovery"
	"github.com/callreel/callreel/recorder/internal/refusal"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// Flags of memfd_create(2); the latter two are since Linux 6.3, and quiet a warning there.
const (
	cloexecMemfd  = 1
	sealableMemfd = 2
	noExecMemfd   = 8
	execMemfd     = 16
)

// noFile is the descriptor of a mapping without a file.
const noFile = ^uint64(0)

// memfd makes the target open a memfd, and returns its number there, and the same file opened here.
func (s *Target) memfd(st *process.Stopped, name string, flag uint64) (there uint64, own process.Memfd, err error) {
	own.FD = -1
	const flags = cloexecMemfd | sealableMemfd
	var r process.SyscallResult
	for _, flags := range []uint64{flags | flag, flags} {
		res, err := st.SyscallBatch([]process.Call{{Number: unix.SYS_MEMFD_CREATE, Args: [6]uint64{0, flags}, Data: []byte(name + "\x00"), DataArg: 0}})
		if err != nil {
			return 0, own, err
		}
		if r = res[0]; r.Errno != unix.EINVAL {
			break
		}
	}
	if r.Errno != 0 {
		return 0, own, fmt.Errorf("callreel: process %d: %w: memfd_create: %w", s.Process.Pid(), refusal.Err, r.Errno)
	}
	own, err = st.TakeMemfd(int(r.Value))
	if err != nil {
		_, e := st.SyscallBatch([]process.Call{{Number: unix.SYS_CLOSE, Args: [6]uint64{r.Value}}})
		return 0, own, errors.Join(fmt.Errorf("callreel: %w", err), e)
	}
	s.made = append(s.made, own)
	return r.Value, own, nil
}

// initMemory lays the recovery memory and the ring memory out.
func (s *Target) initMemory(set ring.Setup, rec, rings process.Memfd) (err error) {
	if s.Owner == nil {
		if s.Owner, err = owner.New(recovery.HdrOwner); err != nil {
			return err
		}
		s.ownsOwner = true
	}
	if s.rec, err = recovery.New(s.Owner, rec, s.Records); err != nil {
		return err
	}
	if err := recovery.GiveSize(rings.FD, s.Size); err != nil {
		return fmt.Errorf("callreel: ring memory: %w", err)
	}
	if s.Memory, err = ring.Map(rings.FD, s.Size); err != nil {
		return err
	}
	s.RingFile = rings // RingsShared is to have one seal yet
	if err := s.Memory.Init(set); err != nil {
		return err
	}
	about, err := recovery.AboutUs(s.Process, rings, s.lang.golang)
	if err != nil {
		return err
	}
	key, err := recovery.Key()
	if err != nil && s.Unsigned != nil {
		s.Unsigned(err)
	}
	s.rec.Sign(about, key)
	s.journal = s.rec.Journal()
	return nil
}

// farFrom returns where a mapping finds a place out of the reach of all that is mapped, as arenas are within it; 0 if there is none.
func farFrom(maps []process.Mapping, size uint64) uint64 {
	const distance = 4 * reach
	var largest, at uint64
	for i := 1; i < len(maps); i++ {
		gap := maps[i].Start - min(maps[i].Start, maps[i-1].End)
		if gap > largest && maps[i].Start < addressTop(maps) && maps[i].Special != "[stack]" {
			largest, at = gap, maps[i].Start-min(maps[i].Start, distance+size)
		}
	}
	if largest < 2*distance+size {
		return 0
	}
	return at &^ (PageSize - 1)
}

// mapping is shared memory that the target is to map.
type mapping struct {
	fd, size, prot uint64
	hint           uint64 // where, if that can be; 0 for anywhere
	alone          bool   // children that are forked don't have it
	what           string
}

// mapShared maps shared memory and closes its descriptor. A process that locks its memory (mlockall) would have all of it filled and
// locked at once; there it is mapped without access first, and unlocked before that changes.
func (s *Target) mapShared(st *process.Stopped, m mapping) (uint64, error) {
	const dontFork = 10 // MADV_DONTFORK
	locks := s.locksMemory()
	prot := m.prot
	if locks {
		prot = unix.PROT_NONE
	}
	res, err := st.SyscallBatch([]process.Call{
		{Number: unix.SYS_MMAP, Args: [6]uint64{m.hint, m.size, prot, unix.MAP_SHARED | unix.MAP_NORESERVE, m.fd}},
		{Number: unix.SYS_CLOSE, Args: [6]uint64{m.fd}},
	})
	if err != nil {
		return 0, err
	}
	if e := res[0].Errno; e != 0 {
		return 0, fmt.Errorf("callreel: process %d: %w: mapping %d MiB of address space for %s: %w (an address-space limit or locked memory, see ulimit -v and -l)",
			s.Process.Pid(), refusal.Err, m.size>>20, m.what, e)
	}
	at := res[0].Value
	calls := []process.Call{{Number: unix.SYS_MADVISE, Args: [6]uint64{at, m.size, unix.MADV_DONTDUMP}}}
	needed := len(calls)
	if m.alone {
		calls = append(calls, process.Call{Number: unix.SYS_MADVISE, Args: [6]uint64{at, m.size, dontFork}})
	}
	if locks {
		calls = append(calls,
			process.Call{Number: unix.SYS_MUNLOCK, Args: [6]uint64{at, m.size}},
			process.Call{Number: unix.SYS_MPROTECT, Args: [6]uint64{at, m.size, m.prot}})
	}
	res, err = st.SyscallBatch(calls)
	for i := needed; err == nil && i < len(res); i++ {
		if res[i].Errno != 0 {
			err = fmt.Errorf("callreel: process %d: %w: memory for %s can't be kept from being locked, or from children: system call %d: %w",
				s.Process.Pid(), refusal.Err, m.what, calls[i].Number, res[i].Errno)
		}
	}
	if err != nil {
		_, e := st.SyscallBatch([]process.Call{{Number: unix.SYS_MUNMAP, Args: [6]uint64{at, m.size}}})
		return 0, errors.Join(err, e)
	}
	return at, nil
}

// locksMemory says whether the process has locked memory, and so may have asked for all that it will map to be locked.
func (s *Target) locksMemory() bool {
	st, err := s.Process.Status()
	return err == nil && st.VMLock != 0
}

// closeMemory lets go of the ring memory, and the recovery memory, on our side. The latter says then that nobody is at work.
func (s *Target) closeMemory() {
	if s.rec != nil {
		_ = s.rec.Close() // it is ours and mapped, so it can't fail
		s.rec = nil
	}
	if s.Memory != nil {
		s.Memory.Close()
		s.Memory = nil
	}
	for _, a := range s.Arenas {
		if a.Mem != nil {
			_ = unix.Munmap(a.Mem) // it is ours and mapped, so it can't fail
			a.Mem = nil
		}
	}
	if s.FD >= 0 {
		unix.Close(s.FD)
		s.FD = -1
	}
}
