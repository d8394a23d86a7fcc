package recorder

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/probe"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// session is one recording's hold on a process.
type session struct {
	p      *process.Process
	images []*image
	arenas []*arena
	rt     probe.Runtime
	memory *ring.Memory
	fd     int // of the ring memory, -1 when there is none
	size   uint64
	chunks int // of the pool

	restorers []uint64 // see findRestorers
	patches   []probe.Patch
	patched   bool
	stopped   time.Duration // that the process stood still for attaching
}

// stopRetries is how often a stop is tried that found a thread where it must not be.
const stopRetries = 20

// openSession checks that recording can begin at all.
func openSession(pid int) (*session, error) {
	p, err := process.Open(pid)
	if err != nil {
		return nil, err
	}
	s := &session{p: p, fd: -1}
	st, err := p.Status()
	if err == nil && st.Seccomp == 1 {
		err = fmt.Errorf("callreel: process %d: %w: it runs in strict seccomp mode, which kills on any system call that setting up would need", pid, ErrRefused)
	}
	if err == nil {
		err = p.PrepareSyscalls()
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// close lets go of everything on our side.
func (s *session) close() {
	for _, im := range s.images {
		im.close()
	}
	s.images = nil
	if s.memory != nil {
		s.memory.Close()
	}
	if s.fd >= 0 {
		unix.Close(s.fd)
		s.fd = -1
	}
	s.p.Close()
}

// makeRoom maps arenas and ring memory in the target. It is the first of two short stops: what takes long, the making
// and writing of stubs, is done between them while the process runs.
func (s *session) makeRoom(ctx context.Context) error {
	for try := 0; ; try++ {
		d, err := s.p.Stop(ctx, process.StopOptions{}, s.roomIn)
		s.stopped += d
		// The threads that could do it may be on an alternate signal stack, say, at this moment.
		if errors.Is(err, process.ErrNoSafeThread) && try < stopRetries {
			time.Sleep(time.Millisecond << min(try, 5))
			continue
		}
		return err
	}
}

// roomIn does makeRoom's work in a process that stands.
func (s *session) roomIn(st *process.Stopped) error {
	maps, err := s.p.Maps()
	if err != nil {
		return err
	}
	if m := ringMapping(maps); m != nil {
		return fmt.Errorf("callreel: process %d: %w", s.p.Pid(), ErrRecorded)
	}
	if err := checkSeccomp(st); err != nil {
		return err
	}
	if s.rt.TIDOffset, err = st.TIDOffset(); err != nil {
		return err
	}
	for i, a := range s.arenas {
		if err := a.place(maps, s.arenas[:i]); err != nil {
			return err
		}
	}
	return s.mapAll(st)
}

// checkSeccomp makes sure that no filter of any thread forbids what code in the arena may call.
func checkSeccomp(st *process.Stopped) error {
	for _, t := range st.Threads() {
		status, err := st.Process().ThreadStatus(t.TID)
		if err != nil || status.Seccomp == 0 {
			continue
		}
		for _, nr := range probe.SlowSyscalls() {
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

// mapAll maps the arenas first, so that nothing else takes their places, then the ring memory.
func (s *session) mapAll(st *process.Stopped) (err error) {
	const (
		fixed        = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_FIXED_NOREPLACE
		wipeOnFork   = 18 // MADV_WIPEONFORK
		prSetVMA     = 0x53564d41
		prVMAName    = 0
		mfdCloexec   = 1
		mfdNoexec    = 8 // MFD_NOEXEC_SEAL, Linux 6.3: quiets a warning there
		sysMemfd     = unix.SYS_MEMFD_CREATE
		noSuchMemory = ^uint64(0)
	)
	var undo []process.Call
	defer func() {
		if err == nil {
			return
		}
		if s.fd >= 0 {
			unix.Close(s.fd)
			s.fd = -1
		}
		for _, c := range undo {
			if _, e := st.SyscallBatch([]process.Call{c}); e != nil {
				err = errors.Join(err, fmt.Errorf("undoing: %w", e))
			}
		}
	}()
	for _, a := range s.arenas {
		calls := []process.Call{
			{Number: unix.SYS_MMAP, Args: [6]uint64{a.base, a.size, unix.PROT_READ | unix.PROT_EXEC, fixed, noSuchMemory}},
			{Number: unix.SYS_MMAP, Args: [6]uint64{a.gate(), pageSize, unix.PROT_READ | unix.PROT_WRITE, fixed, noSuchMemory}},
			{Number: unix.SYS_MADVISE, Args: [6]uint64{a.gate(), pageSize, wipeOnFork}},
			{Number: unix.SYS_PRCTL, Args: [6]uint64{prSetVMA, prVMAName, a.base, a.size, 0}, Data: []byte("callreel\x00"), DataArg: 4},
		}
		res, err := st.SyscallBatch(calls)
		if err != nil {
			return err
		}
		for i, r := range res[:3] {
			if r.Errno != 0 {
				return fmt.Errorf("callreel: process %d: %w: arena of %d bytes at %#x, step %d: %w", s.p.Pid(), ErrRefused, a.size, a.base, i, r.Errno)
			}
			if i < 2 {
				undo = append(undo, process.Call{Number: unix.SYS_MUNMAP, Args: [6]uint64{calls[i].Args[0], calls[i].Args[1]}})
			}
		}
		for i := range 2 {
			if res[i].Value != calls[i].Args[0] { // a kernel before 4.17 takes FIXED_NOREPLACE for a hint
				undo = append(undo, process.Call{Number: unix.SYS_MUNMAP, Args: [6]uint64{res[i].Value, calls[i].Args[1]}})
				return fmt.Errorf("callreel: process %d: %w: the kernel mapped %#x instead of %#x", s.p.Pid(), ErrRefused, res[i].Value, calls[i].Args[0])
			}
		}
	}
	memfd := func(flags uint64) (process.SyscallResult, error) {
		res, err := st.SyscallBatch([]process.Call{{Number: sysMemfd, Args: [6]uint64{0, flags}, Data: []byte(ring.MemfdName + "\x00"), DataArg: 0}})
		if err != nil {
			return process.SyscallResult{}, err
		}
		return res[0], nil
	}
	r, err := memfd(mfdCloexec | mfdNoexec)
	if err == nil && r.Errno == unix.EINVAL {
		r, err = memfd(mfdCloexec)
	}
	if err != nil {
		return err
	}
	if r.Errno != 0 {
		return fmt.Errorf("callreel: process %d: %w: memfd_create: %w", s.p.Pid(), ErrRefused, r.Errno)
	}
	fd := r.Value
	closing := process.Call{Number: unix.SYS_CLOSE, Args: [6]uint64{fd}}
	undo = append(undo, closing)
	s.fd, err = unix.Open(fmt.Sprintf("/proc/%d/fd/%d", s.p.Pid(), fd), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("callreel: opening the ring memory: %w", err)
	}
	if err := unix.Ftruncate(s.fd, int64(s.size)); err != nil {
		return fmt.Errorf("callreel: ring memory of %d bytes: %w", s.size, err)
	}
	res, err := st.SyscallBatch([]process.Call{
		{Number: unix.SYS_MMAP, Args: [6]uint64{0, s.size, unix.PROT_READ | unix.PROT_WRITE, unix.MAP_SHARED | unix.MAP_NORESERVE, fd}},
		closing,
	})
	if err != nil {
		return err
	}
	undo = undo[:len(undo)-1]
	if e := res[0].Errno; e != 0 {
		return fmt.Errorf("callreel: process %d: %w: mapping %d MiB of address space for rings: %w (an address-space limit or locked memory, see ulimit -v and -l)",
			s.p.Pid(), ErrRefused, s.size>>20, e)
	}
	s.rt.Ring = res[0].Value
	if _, err := st.SyscallBatch([]process.Call{{Number: unix.SYS_MADVISE, Args: [6]uint64{s.rt.Ring, s.size, unix.MADV_DONTDUMP}}}); err != nil {
		return err
	}
	return nil
}

// prepare makes the stubs and writes them, and everything else that doesn't need the process to stand.
func (s *session) prepare(set ring.Setup) (islands, all []page, err error) {
	rec := recovery{}
	for _, a := range s.arenas {
		if err := a.compile(s.rt); err != nil {
			return nil, nil, err
		}
		if _, err := s.p.WriteAt(a.code.Bytes, a.base); err != nil {
			return nil, nil, err
		}
		s.patches = append(s.patches, a.code.Patches...)
		rec.arenas = append(rec.arenas, span{a.base, a.size + pageSize})
	}
	rec.patches = s.patches
	maps, err := s.p.Maps()
	if err != nil {
		return nil, nil, err
	}
	s.restorers = findRestorers(s.p, maps)
	if s.memory, err = ring.Map(s.fd, s.size); err != nil {
		return nil, nil, err
	}
	set.Base = s.rt.Ring
	s.chunks = set.Chunks
	if err := s.memory.Init(set); err != nil {
		return nil, nil, err
	}
	if err := s.memory.Populate(); err != nil {
		return nil, nil, err
	}
	if err := rec.put(s.memory.Recovery()); err != nil {
		return nil, nil, err
	}
	island, _ := split(s.patches)
	if islands, err = preparePages(s.p, island); err != nil {
		return nil, nil, err
	}
	all, err = preparePages(s.p, s.patches)
	return islands, all, err
}

// errInTheWay: a thread stood inside a site.
var errInTheWay = errors.New("a thread stands inside a site")

// switchOn writes the sites while the process stands, and opens the gate.
func (s *session) switchOn(ctx context.Context, islands, all []page) error {
	for try := 0; ; try++ {
		d, err := s.p.Stop(ctx, process.StopOptions{}, func(st *process.Stopped) error { return s.onIn(st, islands, all) })
		s.stopped += d
		if errors.Is(err, errInTheWay) && try < stopRetries {
			time.Sleep(time.Millisecond << min(try, 5))
			continue
		}
		return err
	}
}

// onIn does switchOn's work in a process that stands.
func (s *session) onIn(st *process.Stopped, islands, all []page) error {
	maps, err := s.p.Maps()
	if err != nil {
		return err
	}
	if m := ringMapping(maps); m == nil || m.Start != s.rt.Ring {
		return fmt.Errorf("callreel: process %d: %w", s.p.Pid(), process.ErrExec)
	}
	s.mapChunks(st)
	if err := s.clearSites(st, maps); err != nil {
		return err
	}
	s.patched = true
	if err := writePages(s.p, islands, newSide); err != nil {
		return err
	}
	if err := writePages(s.p, all, newSide); err != nil {
		return err
	}
	return s.gate(s.rt.Ring + ring.SlotsOff)
}

// maxMapped bounds how much of the chunks is mapped ahead, since the process stands meanwhile: some 2 ms.
const maxMapped = 64 << 20

// mapChunks makes the target's page tables ready for the chunks, whose pages exist already: otherwise its threads take
// a page fault for every 256 events at first, which is a fifth of a call's cost. Reading maps 16 pages a fault, and
// writable, since nobody wants to know of writes to a memfd's pages. It is not needed, so nothing comes of its failing.
func (s *session) mapChunks(st *process.Stopped) {
	const populateRead = 22 // MADV_POPULATE_READ, Linux 5.14
	size := min(uint64(s.chunks)*ring.ChunkSize, maxMapped)
	_, _ = st.SyscallBatch([]process.Call{{Number: unix.SYS_MADVISE, Args: [6]uint64{s.rt.Ring + ring.ChunksOff, size, populateRead}}})
}

// clearSites moves threads that stand inside a site to the same instruction in its stub, where they go on as if they
// had come by the site; and the same for PCs that signal handlers will return to.
func (s *session) clearSites(st *process.Stopped, maps []process.Mapping) error {
	inside := func(pc uint64) *probe.Code {
		for _, a := range s.arenas {
			if a.code.Inside(pc) {
				return a.code
			}
		}
		return nil
	}
	for _, t := range st.Threads() {
		regs, err := t.Regs()
		if err != nil {
			return err
		}
		code := inside(regs.Rip)
		if code == nil {
			continue
		}
		to, ok := code.StubFor(regs.Rip)
		if !ok {
			return fmt.Errorf("callreel: process %d, thread %d at %#x: %w", s.p.Pid(), t.TID, regs.Rip, errInTheWay)
		}
		if _, in, err := t.InSyscall(); err != nil || in {
			// A restart would take two bytes off the new PC. No site holds a system call, so this is only a stop on its way.
			return fmt.Errorf("callreel: process %d, thread %d at %#x: %w", s.p.Pid(), t.TID, regs.Rip, errInTheWay)
		}
		regs.Rip = to
		if err := t.SetRegs(regs); err != nil {
			return err
		}
	}
	frames, err := interruptedPCs(st, maps, s.restorers, func(pc uint64) bool { return inside(pc) != nil })
	if err != nil {
		return err
	}
	for _, f := range frames {
		to, ok := inside(f.pc).StubFor(f.pc)
		if !ok {
			return fmt.Errorf("callreel: process %d, thread %d in a handler above %#x: %w", s.p.Pid(), f.tid, f.pc, errInTheWay)
		}
		if err := s.writeWord(f.at, to); err != nil {
			return err
		}
	}
	return nil
}

// gate opens all gates with the address of the slots, or closes them with 0.
func (s *session) gate(v uint64) error {
	for _, a := range s.arenas {
		if err := s.writeWord(a.gate(), v); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) writeWord(addr, v uint64) error {
	b := [8]byte{byte(v), byte(v >> 8), byte(v >> 16), byte(v >> 24), byte(v >> 32), byte(v >> 40), byte(v >> 48), byte(v >> 56)}
	_, err := s.p.WriteAt(b[:], addr)
	return err
}

// ringMapping finds a recorder's ring memory in a process.
func ringMapping(maps []process.Mapping) *process.Mapping {
	for i := range maps {
		if maps[i].Path == ring.MappingName {
			return &maps[i]
		}
	}
	return nil
}
