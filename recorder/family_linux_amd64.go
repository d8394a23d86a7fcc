package recorder

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// family is what a recording whose children are followed knows of them. The forked ones write into its own rings, see
// probe's follow.go; one that replaces its program gets a recording of its own, see tree.
type family struct {
	d       *drain
	tree    *tree
	inner   int             // the first process's ID in its own namespace
	members map[int]*member // by process ID as seen from here; the first is not among them
	looked  time.Time       // for children and for holders of the rings
	held    bool            // somebody else had them then
	told    bool            // that following has ended
	left    bool            // the first process has ended, or replaced its program
}

// member is a forked child.
type member struct {
	p    *process.Process // nil if it had ended when it was met
	gone bool             // it has ended, or replaced its program
}

// How often families are looked at, besides the threads that write.
const (
	childrenInterval = 50 * time.Millisecond
	holdersInterval  = 300 * time.Millisecond
)

func (d *drain) newFamily() *family {
	f := &family{d: d, tree: d.r.tree, members: map[int]*member{}}
	if st, err := d.r.s.p.Status(); err == nil && len(st.NSPIDs) > 0 {
		f.inner = st.NSPIDs[len(st.NSPIDs)-1]
	}
	return f
}

// processOf returns which process a thread is of, by what it says of itself.
func (f *family) processOf(nspid int) int {
	own := f.d.r.s.p.Pid()
	if nspid == 0 || nspid == f.inner {
		return own
	}
	pid := nspid
	if !f.d.sameNS {
		pid = inNamespaceOf(own, nspid)
	}
	if m := f.members[pid]; pid != own && (m == nil || m.gone && f.isAnother(pid)) {
		f.meet(pid)
	}
	return pid
}

// isAnother says whether a process with the ID of one that has gone is of the family: IDs are used again.
func (f *family) isAnother(pid int) bool {
	p, err := process.Open(pid)
	if err != nil {
		return false
	}
	defer p.Close()
	return f.d.holds(p)
}

// meet takes a process in.
func (f *family) meet(pid int) *member {
	m := &member{}
	f.members[pid] = m
	f.tree.count(func(p *Processes) { p.Forked++ })
	p, err := process.Open(pid)
	if err != nil {
		m.gone = true // most children live but for a moment
		return m
	}
	m.p = p
	return m
}

// look finds out which of the processes have ended or replaced their programs. It returns false when all have.
func (f *family) look(firstLives bool) bool {
	if !firstLives && !f.left {
		f.left = true
		f.tree.replaced(f.d.r.s.p.Pid(), f.d.r)
	}
	some := firstLives
	for pid, m := range f.members {
		if m.gone {
			continue
		}
		if f.d.holds(m.p) {
			some = true
			continue
		}
		m.gone = true
		m.p.Close()
		f.tree.replaced(pid, f.d.r)
	}
	if !f.told && f.d.r.s.memory.FollowEnded() {
		f.told = true
		f.d.r.notice("a forked child restricts its own system calls (seccomp): children that have called nothing yet are not recorded any more")
	}
	now := time.Now()
	every := childrenInterval
	if !some {
		every = holdersInterval
	}
	if now.Sub(f.looked) < every {
		return some || f.held
	}
	f.looked = now
	f.children()
	if !some {
		// One that has called nothing yet is not known, and may be nobody's child any more.
		f.held = len(holders(f.d.r.s.fd, f.d.r.s.p.Pid())) > 0
	}
	return some || f.held
}

// holds says whether a process has the ring memory: it has neither ended nor replaced its program.
func (d *drain) holds(p *process.Process) bool {
	if !p.Alive() {
		return false
	}
	var word [8]byte
	_, err := p.ReadAt(word[:], d.r.s.rt.Ring)
	return err == nil && binary.LittleEndian.Uint64(word[:]) == ring.Magic
}

// children looks for children with programs that are nobody's recording: they were replaced by a bare system call.
func (f *family) children() {
	f.tree.lookBelow(f.d.r.s.p.Pid())
	for pid, m := range f.members {
		if !m.gone {
			f.tree.lookBelow(pid)
		}
	}
}

// threadsOf lists the threads of a process that is of the family, none when it has ended or replaced its program.
func (f *family) threadsOf(pid int) map[int]bool {
	if m := f.members[pid]; m == nil || m.gone {
		return nil
	}
	return tasksOf(pid)
}

func tasksOf(pid int) map[int]bool {
	entries, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil {
		return nil
	}
	live := make(map[int]bool, len(entries))
	for _, e := range entries {
		if tid, err := strconv.Atoi(e.Name()); err == nil {
			live[tid] = true
		}
	}
	return live
}

// detach restores the text of all forked children. Those that were forked before their parent's was restored are found by the
// rings that they hold; more of them can come only from those.
func (f *family) detach(ctx context.Context) error {
	const rounds = 20
	var failed []int
	var err error
	for range rounds {
		pids := slices.DeleteFunc(holders(f.d.r.s.fd, f.d.r.s.p.Pid()), func(pid int) bool { return slices.Contains(failed, pid) })
		if len(pids) == 0 {
			break
		}
		for _, pid := range pids {
			if e := f.detachOne(ctx, pid); e != nil {
				failed = append(failed, pid)
				err = errors.Join(err, e)
			}
		}
	}
	for _, m := range f.members {
		if m.p != nil && !m.gone {
			m.p.Close()
		}
	}
	return err
}

func (f *family) detachOne(ctx context.Context, pid int) error {
	p, err := process.Open(pid)
	if err != nil {
		return nil // it has ended
	}
	defer p.Close()
	l, err := findLeft(p)
	if err != nil || l == nil {
		if errors.Is(err, process.ErrNoProcess) || !p.Alive() {
			return nil
		}
		return err
	}
	d, err := l.remove(ctx, p)
	if err != nil {
		if !p.Alive() {
			return nil
		}
		return err
	}
	if !d.TextVerified {
		f.d.r.result.TextVerified = false
	}
	if d.Left != "" {
		f.d.r.notice("memory of callreel's stays mapped in process %d, unused: %s", pid, d.Left)
	}
	return nil
}

// holders lists the processes, but for one, that have mapped the ring memory behind fd.
func holders(fd, but int) []int {
	var found []int
	fi, err := os.Stat("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil {
		return nil
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	for _, pid := range allProcesses() {
		if pid != but && pid != os.Getpid() && hasMapping(pid, st.Ino) {
			found = append(found, pid)
		}
	}
	return found
}

// hasMapping says whether a process has mapped a recorder's ring memory with that inode number.
func hasMapping(pid int, inode uint64) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/maps")
	if err != nil || !strings.Contains(string(text), ring.MappingName) {
		return false
	}
	want := strconv.FormatUint(inode, 10)
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 5 && fields[5] == ring.MappingName && fields[4] == want {
			return true
		}
	}
	return false
}

func allProcesses() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// inNamespaceOf returns which process has an ID in the innermost namespace of another, the ID itself if none has any more.
func inNamespaceOf(like, nspid int) int {
	space, err := os.Readlink("/proc/" + strconv.Itoa(like) + "/ns/pid")
	if err != nil {
		return nspid
	}
	for _, pid := range allProcesses() {
		dir := "/proc/" + strconv.Itoa(pid)
		if link, err := os.Readlink(dir + "/ns/pid"); err != nil || link != space {
			continue
		}
		text, err := os.ReadFile(dir + "/status")
		if err != nil {
			continue
		}
		if st, err := process.ParseStatus(text); err == nil && len(st.NSPIDs) > 0 && st.NSPIDs[len(st.NSPIDs)-1] == nspid {
			return pid
		}
	}
	return nspid
}
