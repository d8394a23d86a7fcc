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
	"github.com/callreel/callreel/recorder/internal/owner"
	"github.com/callreel/callreel/recorder/internal/recovery"
	"github.com/callreel/callreel/recorder/internal/refusal"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// MapMemory maps arenas and ring memory in the target. It is the first of two short stops: what takes long, the making
// and writing of stubs, is done between them while the process runs.
func (s *Target) MapMemory(ctx context.Context, set ring.Setup) error {
	for try := 0; ; try++ {
		d, err := s.Process.Stop(ctx, process.StopOptions{}, func(st *process.Stopped) error { return s.MapMemoryIn(st, set) })
		s.Stopped += d
		// The threads that could do it may be on an alternate signal stack, say, at this moment.
		if (errors.Is(err, process.ErrNoSafeThread) || errors.Is(err, process.ErrLate)) && try < StopRetries {
			time.Sleep(time.Millisecond << min(try, 5))
			continue
		}
		return err
	}
}

// MapMemoryIn does MapMemory's work in a process that stands.
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
	if err := s.checkSeccomp(st); err != nil {
		return err
	}
	if err := s.findLoader(st); err != nil {
		return err
	}
	if s.Runtime.Names, err = s.mayKeepNames(st); err != nil {
		return err
	}
	if err := placeAll(s.Arenas, maps); err != nil {
		return err
	}
	if err := s.checkClock(st); err != nil {
		return err
	}
	return s.mapAll(st, maps, set)
}

func placeAll(arenas []*Arena, maps []process.Mapping) error {
	for i, a := range arenas {
		if err := a.place(maps, arenas[:i]); err != nil {
			return err
		}
	}
	return nil
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

// mapper maps what a recording needs for the first time.
type mapper struct {
	s                *Target
	st               *process.Stopped
	undo             []process.Call // what takes away again what has been opened and mapped
	rec, rings, code uint64         // the target's descriptors
}

// open makes the memfds, and notes what is going to be mapped.
func (m *mapper) open(set ring.Setup) error {
	s := m.s
	s.began = time.Now()
	if err := s.findPrivileges(); err != nil {
		return err
	}
	var rec, rings process.Memfd
	var err error
	if m.rec, rec, err = m.memfd(recovery.MemfdName); err != nil {
		return err
	}
	defer unix.Close(rec.FD)
	if m.rings, rings, err = m.memfd(ring.MemfdName); err != nil {
		return err
	}
	s.FD = rings.FD
	if err := s.initMemory(set, rec, rings); err != nil {
		return err
	}
	if m.code, err = s.shareCode(m.st, s.Arenas); err != nil {
		return err
	}
	if m.code != noFile {
		m.undo = append(m.undo, closing(m.code))
	}
	return s.journal.Add(&recovery.Record{Arenas: spansOf(s.Arenas)})
}

func closing(fd uint64) process.Call {
	return process.Call{Number: unix.SYS_CLOSE, Args: [6]uint64{fd}}
}

func (m *mapper) memfd(name string) (fd uint64, own process.Memfd, err error) {
	fd, own, err = m.s.memfd(m.st, name, noExecMemfd)
	if err == nil {
		m.undo = append(m.undo, closing(fd))
	}
	return fd, own, err
}

// closed says that a descriptor has been closed.
func (m *mapper) closed(fd uint64) {
	m.undo = slices.DeleteFunc(m.undo, func(c process.Call) bool { return c.Number == unix.SYS_CLOSE && c.Args[0] == fd })
}

// mapMemory maps the recovery memory and the ring memory.
func (m *mapper) mapMemory(maps []process.Mapping) (err error) {
	s := m.s
	// One behind the other, so that neither takes a place of the arenas.
	hint, behind := farFrom(maps, s.rec.Size()+s.Size), uint64(0)
	if hint != 0 {
		behind = hint + s.rec.Size()
	}
	if s.rec.At, err = m.mapShared(mapping{fd: m.rec, size: s.rec.Size(), prot: unix.PROT_READ, hint: hint, what: "recovery records"}); err != nil {
		return err
	}
	// A process that may do more than others may not is not to be written to by what it forks, where nobody wants to follow that.
	s.Runtime.Ring, err = m.mapShared(mapping{fd: m.rings, size: s.Size, prot: unix.PROT_READ | unix.PROT_WRITE, hint: behind,
		alone: s.privileged && !s.Runtime.Follow, what: "rings"})
	return err
}

func (m *mapper) mapShared(what mapping) (uint64, error) {
	at, err := m.s.mapShared(m.st, what)
	if err == nil {
		m.closed(what.fd)
		m.undo = append(m.undo, process.Call{Number: unix.SYS_MUNMAP, Args: [6]uint64{at, what.size}})
	}
	return at, err
}

// mapArenas maps arenas, all or the first of them.
func (m *mapper) mapArenas(arenas []*Arena) error {
	m.closed(m.code) // whatever comes of it
	calls, err := m.s.mapArenas(m.st, arenas, m.code)
	m.undo = append(m.undo, calls...)
	return err
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
	if s.Counts != 0 {
		s.Runtime.Counts = s.Runtime.Ring + s.Counts
		s.Memory.SetCounts(s.Counts)
	}
	if s.Watches != 0 {
		s.Runtime.Predicates = s.Runtime.Ring + s.Watches
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
	rec, ringAt := process.FindMapping(maps, s.rec.At), process.FindMapping(maps, s.Runtime.Ring)
	return rec != nil && rec.Start == s.rec.At && rec.Dev == s.rec.File.Dev && rec.Inode == s.rec.File.Inode &&
		ringAt != nil && ringAt.Start == s.Runtime.Ring && ringAt.Dev == s.RingFile.Dev && ringAt.Inode == s.RingFile.Inode
}

// listGates tells guards which gates there are.
func (s *Target) listGates(arenas []*Arena) error {
	var gates []uint64
	for _, a := range arenas {
		gates = append(gates, a.Gate())
	}
	return s.Memory.SetGates(gates)
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
	if _, err := recovery.Seal(rings.FD, false); err != nil {
		return err
	}
	s.chunks, s.RingFile = set.Chunks, rings
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

// spansOf are arenas with their gates.
func spansOf(arenas []*Arena) []recovery.Arena {
	var all []recovery.Arena
	for _, a := range arenas {
		all = append(all, recovery.Arena{Span: recovery.Span{Base: a.Base, Size: a.Size + PageSize}, Dev: a.Dev, Inode: a.Inode})
	}
	return all
}

// mapArena maps an arena and its gate at their places, and returns what takes away again what it has mapped.
// Its code is in the file fd at that offset, if there is one.
func (s *Target) mapArena(st *process.Stopped, a *Arena, fd, off uint64) (undo []process.Call, err error) {
	const (
		fixed      = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_FIXED_NOREPLACE
		shared     = unix.MAP_SHARED | unix.MAP_FIXED_NOREPLACE
		wipeOnFork = 18 // MADV_WIPEONFORK
		prSetVMA   = 0x53564d41
		prVMAName  = 0
	)
	flags := uint64(fixed)
	if fd != noFile {
		flags = shared
	}
	calls := []process.Call{
		{Number: unix.SYS_MMAP, Args: [6]uint64{a.Base, a.Size, unix.PROT_READ | unix.PROT_EXEC, flags, fd, off}},
		{Number: unix.SYS_MMAP, Args: [6]uint64{a.Gate(), PageSize, unix.PROT_READ | unix.PROT_WRITE, fixed, noFile}},
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

// farFrom returns where a mapping finds a place out of the reach of all that is mapped, as arenas are within it; 0 if there is none.
func farFrom(maps []process.Mapping, size uint64) uint64 {
	const distance = 4 * reach
	var largest, at uint64
	for i := 1; i < len(maps); i++ {
		gap := maps[i].Start - min(maps[i].Start, maps[i-1].End)
		if gap > largest && maps[i].Start < 1<<47 && maps[i].Special != "[stack]" {
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
		_ = s.rec.Mem.Close() // it is ours and mapped, so it can't fail
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
