package process

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// MemoryShared looks for another process that runs in the same memory: one that was
// made by clone(2) with CLONE_VM and without CLONE_THREAD. A Stop does not reach it,
// and refuses for its sake. A child of vfork(2) is one too for as long as it has not
// called execve; whoever gets one may look again.
//
// pid is 0 when there is none, and also when the kernel doesn't tell: kcmp(2) is not
// built in or not permitted.
func (p *Process) MemoryShared() (pid int, name string, err error) {
	var s sharing
	if err := s.look(p); err != nil {
		return 0, "", err
	}
	for _, other := range s.suspects {
		if s, ok := p.sharer(p.view(), other); ok {
			return s.TGID, s.Name, nil
		}
	}
	return 0, "", nil
}

// sharing is what is known of processes that share a process's memory. New ones have
// new process IDs, and the kernel says which it has given last, so that in the stop
// only those have to be looked at that are younger than a look before it.
type sharing struct {
	mu       sync.Mutex
	at       time.Time // of the look
	last     int       // the ID that was given last before it, 0 if unknown
	suspects []int     // processes that shared the memory then
}

const (
	// sharingFresh is how long a look counts: IDs come round again, at 10,000 forks
	// a second after three seconds where pid_max is 32768.
	sharingFresh = time.Second
	// sharingMargin is how many IDs may be given but not yet be seen in /proc.
	sharingMargin = 32
	// sharingMost is how many IDs are tried in a stop; looking through /proc costs
	// no more from there on.
	sharingMost = 4096
)

// look looks through /proc unless that was done just now.
func (s *sharing) look(p *Process) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := lastPID()
	if last > 0 && time.Since(s.at) < sharingFresh && last >= s.last && last-s.last < sharingMost/2 {
		return nil
	}
	at := time.Now()
	suspects, err := p.scanSharers()
	if err != nil {
		return err
	}
	s.at, s.last, s.suspects = at, last, suspects
	return nil
}

// candidates returns the processes to compare with.
func (s *sharing) candidates() ([]int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := lastPID()
	if s.last == 0 || last < s.last || last-s.last > sharingMost {
		return processIDs()
	}
	out := slices.Clone(s.suspects)
	for pid := max(s.last-sharingMargin, 1); pid <= last; pid++ {
		out = append(out, pid)
	}
	return out, nil
}

// checkUnshared makes sure, with all threads stopped, that nobody else runs in their
// memory.
func (s *Stopped) checkUnshared() error {
	candidates, err := s.p.sharing.candidates()
	if err != nil {
		return fmt.Errorf("process %d: %w", s.p.pid, err)
	}
	threads := s.Threads()
	if len(threads) == 0 {
		return nil
	}
	for _, pid := range candidates {
		if s.byTID[pid] != nil {
			continue
		}
		if other, ok := s.p.sharer(threads[0].TID, pid); ok {
			return fmt.Errorf("process %d: %w: process %d (%s), made by clone with CLONE_VM, runs the same code and would not be stopped; end that one first",
				s.p.pid, ErrMemoryShared, other.TGID, other.Name)
		}
	}
	return nil
}

// sharer says whether another process shares the memory of our thread tid.
func (p *Process) sharer(tid, pid int) (Status, bool) {
	if same, err := sameMemory(tid, pid); err != nil || !same {
		return Status{}, false
	}
	// Tasks that have no memory left are all the same to the kernel.
	if n, err := memorySize(pid); err != nil || n == 0 {
		return Status{}, false
	}
	s, err := readStatus(pid, pid)
	return s, err == nil && s.TGID != p.pid
}

// scanSharers looks at every process, but asks the kernel only about those whose
// memory has about our size: each question is subject to ptrace's permissions, and
// security modules log what they refuse.
func (p *Process) scanSharers() ([]int, error) {
	view := p.view()
	size, err := memorySize(view)
	if err != nil {
		return nil, p.gone(err)
	}
	pids, err := processIDs()
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", p.pid, err)
	}
	var out []int
	for _, pid := range pids {
		if pid == p.pid {
			continue
		}
		n, err := memorySize(pid)
		if err != nil || n == 0 || n < size-size/4 || n > size+size/4 { // it may grow meanwhile
			continue
		}
		if _, ok := p.sharer(view, pid); ok {
			out = append(out, pid)
		}
	}
	return out, nil
}

// sameMemory asks whether two tasks have one memory (kcmp(2), KCMP_VM).
func sameMemory(a, b int) (bool, error) {
	const kcmpVM = 1
	r, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(a), uintptr(b), kcmpVM, 0, 0, 0)
	if errno != 0 {
		return false, errno
	}
	return r == 0, nil
}

// memorySize returns the size of a process's address space in pages, 0 when it has
// none (proc_pid_statm(5)).
func memorySize(pid int) (uint64, error) {
	text, err := readProc(procPath(pid, "statm"))
	if err != nil {
		return 0, err
	}
	word, _, _ := bytes.Cut(text, []byte(" "))
	return strconv.ParseUint(string(word), 10, 64)
}

// lastPID returns the process or thread ID that the kernel has given last, as seen
// from here (proc_loadavg(5), the fifth field); 0 if nothing tells, as in a /proc that
// is mounted with subset=pid.
func lastPID() int {
	text, err := readProc("/proc/loadavg")
	fields := bytes.Fields(text)
	if err != nil || len(fields) < 5 {
		return 0
	}
	pid, err := strconv.Atoi(string(fields[4]))
	if err != nil {
		return 0
	}
	return pid
}

// processIDs lists all processes.
func processIDs() ([]int, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var out []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			out = append(out, pid)
		}
	}
	return out, nil
}

// DescriptorsShared looks for another process that shares the process's file descriptors: one that was made by clone(2) with CLONE_FILES
// and without CLONE_THREAD. A Stop does not reach it, and meanwhile it can put other files in the place of those that the target opens.
// pid is 0 when there is none, and also when the kernel doesn't tell, as for MemoryShared.
func (p *Process) DescriptorsShared() (pid int, name string, err error) {
	pids, err := processIDs()
	if err != nil {
		return 0, "", fmt.Errorf("process %d: %w", p.pid, err)
	}
	view, own := p.view(), os.Geteuid()
	for _, other := range pids {
		if other == p.pid || own != 0 && ownerOf(other) != own { // security modules log what they refuse
			continue
		}
		if same, err := sameDescriptors(view, other); err != nil || !same {
			continue
		}
		if s, err := readStatus(other, other); err == nil && s.TGID != p.pid {
			return s.TGID, s.Name, nil
		}
	}
	return 0, "", nil
}

// sameDescriptors asks whether two tasks have one table of descriptors (kcmp(2), KCMP_FILES).
func sameDescriptors(a, b int) (bool, error) {
	const kcmpFiles = 2
	r, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(a), uintptr(b), kcmpFiles, 0, 0, 0)
	if errno != 0 {
		return false, errno
	}
	return r == 0, nil
}

// ownerOf is the user of a process, -1 if there is none.
func ownerOf(pid int) int {
	var st unix.Stat_t
	if err := unix.Stat(procPath(pid, ""), &st); err != nil {
		return -1
	}
	return int(st.Uid)
}
