package recorder

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/probe"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// makeRoom maps arenas and ring memory in the target. It is the first of two short stops: what takes long, the making
// and writing of stubs, is done between them while the process runs.
func (s *session) makeRoom(ctx context.Context, set ring.Setup) error {
	for try := 0; ; try++ {
		d, err := s.p.Stop(ctx, process.StopOptions{}, func(st *process.Stopped) error { return s.roomIn(st, set) })
		s.stopped += d
		// The threads that could do it may be on an alternate signal stack, say, at this moment.
		if (errors.Is(err, process.ErrNoSafeThread) || errors.Is(err, process.ErrLate)) && try < stopRetries {
			time.Sleep(time.Millisecond << min(try, 5))
			continue
		}
		return err
	}
}

// roomIn does makeRoom's work in a process that stands.
func (s *session) roomIn(st *process.Stopped, set ring.Setup) error {
	maps, err := s.p.Maps()
	if err != nil {
		return err
	}
	if m := ringMapping(maps); m != nil {
		return fmt.Errorf("callreel: process %d: %w", s.p.Pid(), ErrRecorded)
	}
	if err := s.checkSeccomp(st); err != nil {
		return err
	}
	if s.golang != nil {
		err = s.checkGo(st)
	} else {
		s.rt.TIDOffset, err = st.TIDOffset()
	}
	if err != nil {
		return err
	}
	if err := placeAll(s.arenas, maps); err != nil {
		return err
	}
	if err := s.checkClock(st); err != nil {
		return err
	}
	return s.mapAll(st, set)
}

func placeAll(arenas []*arena, maps []process.Mapping) error {
	for i, a := range arenas {
		if err := a.place(maps, arenas[:i]); err != nil {
			return err
		}
	}
	return nil
}

// checkClock makes sure that code in the arena may read the time-stamp counter: a process can give that up (PR_SET_TSC),
// and is killed then for trying.
func (s *session) checkClock(st *process.Stopped) error {
	const prTSCSigsegv = 2
	mode := make([]byte, 4)
	res, err := st.SyscallBatch([]process.Call{{Number: unix.SYS_PRCTL, Args: [6]uint64{unix.PR_GET_TSC}, Data: mode, DataArg: 1}})
	if err != nil {
		return err
	}
	if res[0].Errno == 0 && binary.LittleEndian.Uint32(mode) == prTSCSigsegv {
		return fmt.Errorf("callreel: process %d: %w: it has forbidden itself to read the time-stamp counter (PR_SET_TSC), which probes do", s.p.Pid(), ErrRefused)
	}
	return nil
}

// checkSeccomp makes sure that no filter of any thread forbids what code in the arena may call.
func (s *session) checkSeccomp(st *process.Stopped) error {
	for _, t := range st.Threads() {
		if mode, err := t.SeccompMode(); err != nil || mode == 0 {
			continue
		}
		calls := probe.SlowSyscalls()
		if s.rt.Follow {
			calls = append(calls, probe.FollowSyscalls()...)
		}
		if s.argRooms != 0 && s.reads {
			calls = append(calls, probe.ReadSyscalls()...)
		}
		if s.watches != 0 {
			calls = append(calls, probe.WatchSyscalls()...)
		}
		for _, nr := range calls {
			ok, err := t.SeccompAllows(uintptr(nr))
			if err != nil {
				return err
			}
			if !ok {
				return &process.SeccompError{TID: t.TID, Number: nr, Why: "stubs need it when a ring is full"}
			}
		}
	}
	return nil
}

// mapAll maps the ring memory, away from the arenas' places, and then the arenas. The memory carries the recorder's identity and those
// places before it is mapped: whoever finds it in a process can tell whether its recorder lives, and what there may be of arenas.
func (s *session) mapAll(st *process.Stopped, set ring.Setup) (err error) {
	var undo []process.Call
	defer func() {
		if err == nil {
			return
		}
		s.closeMemory()
		err = s.undoRoom(st, s.arenas, undo, err)
	}()
	fd, err := s.memfd(st, ring.MemfdName, noExecMemfd)
	if err != nil {
		return err
	}
	closing := process.Call{Number: unix.SYS_CLOSE, Args: [6]uint64{fd}}
	undo = append(undo, closing)
	if err := s.initMemory(st, fd, set); err != nil {
		return err
	}
	maps, err := s.p.Maps()
	if err != nil {
		return err
	}
	if s.rt.Ring, err = s.mapRing(st, closing, farFrom(maps, s.size)); err != nil {
		return err
	}
	undo = []process.Call{{Number: unix.SYS_MUNMAP, Args: [6]uint64{s.rt.Ring, s.size}}} // the descriptor is closed
	mapped, err := s.mapArenas(st, s.arenas)
	undo = append(undo, mapped...)
	if err != nil {
		return err
	}
	if s.golang != nil {
		s.rt.Go.Stacks = s.rt.Ring + s.goStacks
	}
	if s.areas != 0 {
		s.rt.Areas = s.rt.Ring + s.areas
		s.memory.SetAreas(s.areas)
	}
	if s.argRooms != 0 {
		s.rt.Args = s.rt.Ring + s.argRooms
	}
	if s.counts != 0 {
		s.rt.Counts = s.rt.Ring + s.counts
		s.memory.SetCounts(s.counts)
	}
	if s.watches != 0 {
		s.rt.Watches = s.rt.Ring + s.watches
	}
	s.memory.SetBase(s.rt.Ring)
	return s.listGates(s.arenas)
}

// listGates tells guards which gates there are.
func (s *session) listGates(arenas []*arena) error {
	var gates []uint64
	for _, a := range arenas {
		gates = append(gates, a.gate())
	}
	return s.memory.SetGates(gates)
}

// mapArenas maps arenas, with room for the code of their stubs in one file, which is mapped here, too: so events can be changed while
// they run. Where there can't be such a file that is done without, unless probes are made on the first call. It returns what takes away
// again what it has mapped.
func (s *session) mapArenas(st *process.Stopped, arenas []*arena) (undo []process.Call, err error) {
	code := noFile
	if s.golang == nil {
		code, err = s.memfd(st, codeName, execMemfd)
		if err != nil && (s.rt.Lazy || !errors.Is(err, ErrRefused)) {
			return nil, err
		}
		if err != nil {
			code = noFile
		}
	}
	if code != noFile {
		closeCode := process.Call{Number: unix.SYS_CLOSE, Args: [6]uint64{code}}
		defer func() {
			_, e := st.SyscallBatch([]process.Call{closeCode})
			err = errors.Join(err, e)
		}()
		if err := s.shareCode(st, code, arenas); err != nil {
			return nil, err
		}
	}
	at := uint64(0)
	for _, a := range arenas {
		mapped, err := s.mapArena(st, a, code, at)
		undo = append(undo, mapped...)
		if err != nil {
			return undo, err
		}
		at += a.size
	}
	return undo, nil
}

// Flags of memfd_create(2) since Linux 6.3, which quiet a warning there.
const (
	noExecMemfd = 8
	execMemfd   = 16
)

// noFile is the descriptor of a mapping without a file.
const noFile = ^uint64(0)

// memfd makes the target open a memfd, and returns its number there.
func (s *session) memfd(st *process.Stopped, name string, flag uint64) (uint64, error) {
	const cloexec = 1
	var r process.SyscallResult
	for _, flags := range []uint64{cloexec | flag, cloexec} {
		res, err := st.SyscallBatch([]process.Call{{Number: unix.SYS_MEMFD_CREATE, Args: [6]uint64{0, flags}, Data: []byte(name + "\x00"), DataArg: 0}})
		if err != nil {
			return 0, err
		}
		if r = res[0]; r.Errno != unix.EINVAL {
			break
		}
	}
	if r.Errno != 0 {
		return 0, fmt.Errorf("callreel: process %d: %w: memfd_create: %w", s.p.Pid(), ErrRefused, r.Errno)
	}
	return r.Value, nil
}

// openMemfd opens a memfd of the target's from here.
func (s *session) openMemfd(st *process.Stopped, fd uint64) (int, error) {
	// By a thread that is there: the main thread may have ended.
	path := fmt.Sprintf("/proc/%d/task/%d/fd/%d", s.p.Pid(), st.Threads()[0].TID, fd)
	own, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("callreel: opening the ring memory: %s: %w", path, err)
	}
	return own, nil
}

// initMemory opens the target's memfd from here and lays the ring memory out.
func (s *session) initMemory(st *process.Stopped, fd uint64, set ring.Setup) (err error) {
	if s.fd, err = s.openMemfd(st, fd); err != nil {
		return err
	}
	if err := unix.Ftruncate(s.fd, int64(s.size)); err != nil {
		return fmt.Errorf("callreel: ring memory of %d bytes: %w", s.size, err)
	}
	if s.memory, err = ring.Map(s.fd, s.size); err != nil {
		return err
	}
	s.chunks = set.Chunks
	if err := s.memory.Init(set); err != nil {
		return err
	}
	s.journal = journal{space: s.memory.Recovery()}
	return s.journal.add(&recovery{arenas: spansOf(s.arenas)})
}

// spansOf are arenas with their gates.
func spansOf(arenas []*arena) []span {
	var all []span
	for _, a := range arenas {
		all = append(all, span{a.base, a.size + pageSize})
	}
	return all
}

// mapArena maps an arena and its gate at their places, and returns what takes away again what it has mapped.
// Its code is in the file fd at that offset, if there is one.
func (s *session) mapArena(st *process.Stopped, a *arena, fd, off uint64) (undo []process.Call, err error) {
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
		{Number: unix.SYS_MMAP, Args: [6]uint64{a.base, a.size, unix.PROT_READ | unix.PROT_EXEC, flags, fd, off}},
		{Number: unix.SYS_MMAP, Args: [6]uint64{a.gate(), pageSize, unix.PROT_READ | unix.PROT_WRITE, fixed, noFile}},
		{Number: unix.SYS_MADVISE, Args: [6]uint64{a.gate(), pageSize, wipeOnFork}},
		{Number: unix.SYS_PRCTL, Args: [6]uint64{prSetVMA, prVMAName, a.base, a.size, 0}, Data: []byte("callreel\x00"), DataArg: 4},
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
			return undo, fmt.Errorf("callreel: process %d: %w: arena of %d bytes at %#x, step %d: %w", s.p.Pid(), ErrRefused, a.size, a.base, i, r.Errno)
		}
		if i < 2 && r.Value != calls[i].Args[0] { // a kernel before 4.17 takes FIXED_NOREPLACE for a hint
			return undo, fmt.Errorf("callreel: process %d: %w: the kernel mapped %#x instead of %#x", s.p.Pid(), ErrRefused, r.Value, calls[i].Args[0])
		}
	}
	return undo, nil
}

// farFrom returns where there is room for a mapping out of the reach of all that is mapped, as arenas are within it; 0 if there is none.
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
	return at &^ (pageSize - 1)
}

// mapRing maps the ring memory, at hint if that can be, and closes its descriptor. A process that locks its memory (mlockall) would have all of
// it filled and locked at once; there it is mapped without access first, and unlocked before that changes.
func (s *session) mapRing(st *process.Stopped, closing process.Call, hint uint64) (uint64, error) {
	const readWrite = unix.PROT_READ | unix.PROT_WRITE
	fd, locks := closing.Args[0], s.locksMemory()
	prot := uint64(readWrite)
	if locks {
		prot = unix.PROT_NONE
	}
	res, err := st.SyscallBatch([]process.Call{
		{Number: unix.SYS_MMAP, Args: [6]uint64{hint, s.size, prot, unix.MAP_SHARED | unix.MAP_NORESERVE, fd}},
		closing,
	})
	if err != nil {
		return 0, err
	}
	if e := res[0].Errno; e != 0 {
		return 0, fmt.Errorf("callreel: process %d: %w: mapping %d MiB of address space for rings: %w (an address-space limit or locked memory, see ulimit -v and -l)",
			s.p.Pid(), ErrRefused, s.size>>20, e)
	}
	at := res[0].Value
	calls := []process.Call{{Number: unix.SYS_MADVISE, Args: [6]uint64{at, s.size, unix.MADV_DONTDUMP}}}
	if locks {
		calls = append(calls,
			process.Call{Number: unix.SYS_MUNLOCK, Args: [6]uint64{at, s.size}},
			process.Call{Number: unix.SYS_MPROTECT, Args: [6]uint64{at, s.size, readWrite}})
	}
	res, err = st.SyscallBatch(calls)
	if err == nil && locks && (res[1].Errno != 0 || res[2].Errno != 0) {
		err = fmt.Errorf("callreel: process %d: %w: it locks its memory, and the ring memory can't be left out: %v, %v", s.p.Pid(), ErrRefused, res[1].Errno, res[2].Errno)
	}
	if err != nil {
		_, e := st.SyscallBatch([]process.Call{{Number: unix.SYS_MUNMAP, Args: [6]uint64{at, s.size}}})
		return 0, errors.Join(err, e)
	}
	return at, nil
}

// locksMemory says whether the process has locked memory, and so may have asked for all that it will map to be locked.
func (s *session) locksMemory() bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(s.p.Pid()) + "/status")
	if err != nil {
		return false
	}
	_, rest, found := strings.Cut(string(text), "\nVmLck:")
	line, _, _ := strings.Cut(rest, "\n")
	return found && strings.TrimSpace(line) != "0 kB"
}

// closeMemory lets go of the ring memory on our side.
func (s *session) closeMemory() {
	if s.memory != nil {
		s.memory.Close()
		s.memory = nil
	}
	for _, a := range s.arenas {
		if a.mem != nil {
			_ = unix.Munmap(a.mem) // it is ours and mapped, so it can't fail
			a.mem = nil
		}
	}
	if s.fd >= 0 {
		unix.Close(s.fd)
		s.fd = -1
	}
}
