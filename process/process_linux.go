package process

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// A Process is a live process that may be read, written and stopped. Its
// methods may be called from several goroutines, but only one Stop runs at a
// time. Close lets go of its file descriptors and doesn't touch the process.
type Process struct {
	pid    int
	start  uint64 // clock ticks since boot: tells a reused PID
	mem    *os.File
	pidfd  int
	sameNS bool  // thread IDs mean the same here and in the target
	memory int64 // see LimitMemory

	stopping  sync.Mutex            // held by Stop
	restarted map[int]restartedCall // by thread, as the last stop left them
	sharing   sharing

	// breakpointsHit says whether this machine's breakpoints work, which is tried once.
	breakpointsHit func() error

	mu      sync.Mutex
	gadgets *gadgets // found so far; checked before each use
}

// Open finds a process and checks that it can be worked on. The errors are
// ErrNoProcess (ErrZombie among them), ErrKernelThread, ErrNotPermitted,
// ErrTraced, ErrForeignArch, ErrSelf and ErrThreadGroup. The process is not
// stopped or changed.
func Open(pid int) (*Process, error) {
	if pid == os.Getpid() {
		return nil, fmt.Errorf("process %d: %w; name another one", pid, ErrSelf)
	}
	return open(pid, false)
}

// Supported returns an ErrUnsupported on machines whose processor the package doesn't know well enough for live processes.
func Supported() error { return arch.supported() }

// OpenForCode is Open for those who put code into the process, or want to know where that goes. The error is ErrUnsupported where
// CodeSupported says so.
func OpenForCode(pid int) (*Process, error) {
	if err := CodeSupported(); err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	return Open(pid)
}

// CodeSupported returns nil where code can be put into processes, too, as recording takes: else an ErrUnsupported.
func CodeSupported() error { return arch.codeSupported() }

// CallsSupported returns nil where a thread can be made to call a function, see Thread.Invoke: else an ErrUnsupported.
func CallsSupported() error { return arch.callsSupported() }

// open leaves out the check for another tracer when we are that tracer.
func open(pid int, ours bool) (*Process, error) {
	if err := arch.supported(); err != nil {
		return nil, err
	}
	if pid <= 0 {
		return nil, fmt.Errorf("process %d: %w: IDs are positive", pid, ErrNoProcess)
	}
	status, err := readStatus(pid, pid)
	if err != nil {
		return nil, err
	}
	if status.TGID != pid {
		return nil, fmt.Errorf("process %d: %w: it belongs to process %d (%s), name that one",
			pid, ErrThreadGroup, status.TGID, comm(status.TGID))
	}
	st, err := readStat(pid, pid)
	if err != nil {
		return nil, err
	}
	// A leader may have ended with pthread_exit while the others go on.
	if st.flags&flagKernelThread != 0 {
		return nil, fmt.Errorf("process %d (%s): %w", pid, st.name, ErrKernelThread)
	}
	if (st.state == 'Z' || st.state == 'X') && liveThread(pid) == 0 {
		return nil, fmt.Errorf("process %d (%s): %w", pid, st.name, ErrZombie)
	}
	if !ours {
		if err := checkTracer(pid, status); err != nil {
			return nil, err
		}
	}
	p := &Process{pid: pid, start: st.startTime, pidfd: -1, sameNS: len(status.NSPIDs) <= 1, memory: DefaultMemory,
		breakpointsHit: sync.OnceValue(breakpointsHit)}
	if err := p.openFiles(status); err != nil {
		p.Close()
		return nil, err
	}
	if err := p.checkArch(); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// liveThread returns a thread that has not ended, 0 if there is none.
func liveThread(pid int) int {
	tids, err := taskIDs(pid)
	if err != nil {
		return 0
	}
	for _, tid := range tids {
		if st, err := readStat(pid, tid); err == nil && st.state != 'Z' && st.state != 'X' {
			return tid
		}
	}
	return 0
}

func checkTracer(pid int, s Status) error {
	if s.TracerPID == 0 {
		return nil
	}
	return fmt.Errorf("process %d (%s): %w by process %d (%s); end that tracer first",
		pid, s.Name, ErrTraced, s.TracerPID, comm(s.TracerPID))
}

func (p *Process) openFiles(s Status) error {
	fd, err := unix.PidfdOpen(p.pid, 0)
	switch {
	case err == nil:
		p.pidfd = fd
	case errors.Is(err, unix.ESRCH):
		return fmt.Errorf("process %d: %w: it ended just now", p.pid, ErrNoProcess)
	case !errors.Is(err, unix.ENOSYS): // before Linux 5.3 Alive makes do with /proc
		return fmt.Errorf("process %d: pidfd: %w", p.pid, err)
	}
	// The kernel checks this open as it checks an attach (PTRACE_MODE_ATTACH).
	p.mem, err = p.openFile("mem", os.O_RDWR)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrPermission):
		return notPermitted(p.pid, s, err)
	case errors.Is(err, os.ErrNotExist), errors.Is(err, unix.ESRCH):
		return fmt.Errorf("process %d: %w: it ended just now", p.pid, ErrNoProcess)
	}
	return fmt.Errorf("process %d: open memory: %w", p.pid, err)
}

// checkArch looks at the program's ELF header, for an x86-64 kernel also runs
// i386 and x32 programs.
func (p *Process) checkArch() error {
	f, err := p.openFile("exe", os.O_RDONLY)
	switch {
	case err != nil && !p.Alive():
		return fmt.Errorf("process %d: %w: it ended just now", p.pid, ErrNoProcess)
	case err != nil:
		return fmt.Errorf("process %d: open program: %w", p.pid, err)
	}
	defer f.Close()
	var header [20]byte
	if _, err := io.ReadFull(f, header[:]); err != nil {
		return fmt.Errorf("process %d: program's ELF header: %w", p.pid, err)
	}
	if err := checkELFHeader(header); err != nil {
		return fmt.Errorf("process %d (%s): %w", p.pid, p.Comm(), err)
	}
	return nil
}

func checkELFHeader(header [20]byte) error {
	if !bytes.HasPrefix(header[:], []byte(elf.ELFMAG)) {
		return fmt.Errorf("%w: its program file is not ELF", ErrForeignArch)
	}
	class, data := elf.Class(header[elf.EI_CLASS]), elf.Data(header[elf.EI_DATA])
	machine := elf.Machine(binary.LittleEndian.Uint16(header[18:]))
	if class != elf.ELFCLASS64 || data != elf.ELFDATA2LSB || machine != arch.elfMachine() {
		return fmt.Errorf("%w: it is %v, %v", ErrForeignArch, class, machine)
	}
	return nil
}

// Close lets go of the process. It may be called more than once.
func (p *Process) Close() error {
	var err error
	if p.mem != nil {
		err = p.mem.Close()
		p.mem = nil
	}
	if p.pidfd >= 0 {
		err = errors.Join(err, unix.Close(p.pidfd))
		p.pidfd = -1
	}
	return err
}

// Pid returns the process ID as seen from here.
func (p *Process) Pid() int { return p.pid }

// StartTime returns when the process was started, in clock ticks since boot;
// with the PID it names a process for good.
func (p *Process) StartTime() uint64 { return p.start }

// Alive says whether the process still runs: any of its threads.
func (p *Process) Alive() bool {
	if p.pidfd >= 0 {
		fds := []unix.PollFd{{Fd: int32(p.pidfd), Events: unix.POLLIN}}
		for {
			n, err := unix.Poll(fds, 0)
			if err != unix.EINTR {
				return err == nil && n == 0
			}
		}
	}
	st, err := readStat(p.pid, p.pid)
	return err == nil && st.startTime == p.start && (st.state != 'Z' || liveThread(p.pid) != 0)
}

// ending says, after a pause, whether a process that has no memory is to be looked at
// again: between a thread's giving it up and its end is a moment, in which Alive still
// says yes and path still leads to a leader that has ended.
func (p *Process) ending(tries int) bool {
	if tries >= 1000 || !p.Alive() {
		return false
	}
	pause(tries)
	return true
}

// openFile opens one of the process's files in /proc that go with its memory.
func (p *Process) openFile(name string, flags int) (*os.File, error) {
	for tries := 0; ; tries++ {
		f, err := os.OpenFile(p.path(name), flags, 0)
		if gone := errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH); !gone || !p.ending(tries) {
			return f, err
		}
	}
}

// openProgram opens the program that the process runs; Close closes its file too.
func (p *Process) openProgram() (*program, error) {
	file, err := p.openFile("exe", os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	f, err := elf.NewFile(file)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &program{f, file}, nil
}

// A program is an ELF file that is read.
type program struct {
	*elf.File
	file *os.File
}

// Close closes the file, which elf.File itself does only if it has opened it.
func (p *program) Close() error { return p.file.Close() }

// Exe returns the program's path as the process sees it, and whether that name
// has been removed or replaced since.
func (p *Process) Exe() (path string, deleted bool, err error) {
	path, err = os.Readlink(p.path("exe"))
	if err != nil {
		return "", false, p.gone(err)
	}
	path, deleted = strings.CutSuffix(path, deletedSuffix)
	return path, deleted, nil
}

// Comm returns the process's name of at most 15 bytes, empty if it has ended.
func (p *Process) Comm() string { return comm(p.pid) }

func comm(pid int) string {
	name, _ := ThreadName(pid, pid) // empty if it has ended
	return name
}

// maxCmdline bounds what is read of a command line. A process may tell the kernel that
// it is any part of its memory (PR_SET_MM_MAP), and each byte may be an argument.
const maxCmdline = 128 << 10

// Cmdline returns the command and its arguments, as far as 128 KiB reach.
func (p *Process) Cmdline() ([]string, error) {
	f, err := os.Open(p.path("cmdline"))
	if err != nil {
		return nil, p.gone(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxCmdline))
	if err != nil {
		return nil, p.gone(err)
	}
	if len(text) == 0 {
		return nil, nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00"), nil
}

// Maps returns the process's mappings in ascending order. The error wraps ErrTooMuch
// when a quarter of the memory that LimitMemory allows has no room for them.
func (p *Process) Maps() ([]Mapping, error) {
	for tries := 0; ; tries++ {
		maps, err := readMaps(p.path("maps"), p.memory)
		if err != nil {
			return nil, p.gone(err)
		}
		if len(maps) > 0 {
			return maps, nil
		}
		if !p.ending(tries) {
			return nil, fmt.Errorf("process %d: %w: it has no memory left", p.pid, ErrNoProcess)
		}
	}
}

// LimitMemory sets how many bytes may be kept of what the process makes the kernel
// tell of it; DefaultMemory when it is not called. It is to be called before others
// use the Process.
func (p *Process) LimitMemory(limit int64) {
	if limit > 0 {
		p.memory = limit
	}
}

// Auxv returns the auxiliary vector that the kernel gave the program.
func (p *Process) Auxv() (Auxv, error) {
	data, err := os.ReadFile(p.path("auxv"))
	if err != nil {
		return Auxv{}, p.gone(err)
	}
	a, err := ParseAuxv(data)
	if err != nil {
		return Auxv{}, fmt.Errorf("process %d: %w", p.pid, err)
	}
	return a, nil
}

// Status returns the status of the process's first thread.
func (p *Process) Status() (Status, error) { return readStatus(p.pid, p.pid) }

// ThreadStatus returns the status of one thread.
func (p *Process) ThreadStatus(tid int) (Status, error) { return readStatus(p.pid, tid) }

// ThreadInfo tells of one thread, what it does now among it.
func (p *Process) ThreadInfo(tid int) (ThreadInfo, error) { return p.threadInfo(tid) }

// Threads lists the threads that exist now; zombies and kernel workers too.
func (p *Process) Threads() ([]ThreadInfo, error) {
	tids, err := taskIDs(p.pid)
	if err != nil {
		return nil, err
	}
	out := make([]ThreadInfo, 0, len(tids))
	for _, tid := range tids {
		if info, err := p.threadInfo(tid); err == nil {
			out = append(out, info)
		}
	}
	return out, nil
}

func (p *Process) threadInfo(tid int) (ThreadInfo, error) {
	st, err := readStat(p.pid, tid)
	if err != nil {
		return ThreadInfo{}, err
	}
	info := ThreadInfo{
		TID: tid, NSTID: tid, Name: st.name, State: st.state, StartTime: st.startTime,
		Worker: st.worker(),
	}
	if !p.sameNS {
		s, err := readStatus(p.pid, tid)
		if err != nil {
			return ThreadInfo{}, err
		}
		if n := len(s.NSPIDs); n > 0 {
			info.NSTID = s.NSPIDs[n-1]
		}
	}
	return info, nil
}

// path names a /proc file of the process. Once the leader has ended, and the
// others go on, only theirs show the program and its memory.
func (p *Process) path(name string) string { return procPath(p.view(), name) }

// view is viewOf the process.
func (p *Process) view() int { return viewOf(p.pid) }

// viewOf returns the ID of a process's thread that has not ended: the leader if it can be.
func viewOf(pid int) int {
	if st, err := readStat(pid, pid); err != nil || st.state != 'Z' {
		return pid
	}
	if tid := liveThread(pid); tid != 0 {
		return tid
	}
	return pid
}
