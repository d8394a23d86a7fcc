package follow

import (
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/target"
)

// Family is a process that is recorded, with its forked children. These write into the same rings, see stub/amd64's follow.go; one that
// replaces its program gets a recording of its own, see Tree.
type Family struct {
	target *target.Target
	tree   *Tree
	own    Recording
	notice func(format string, args ...any)
	kin    *kin
	sameNS bool      // the target's IDs are ours
	inner  int       // the first process's ID in its own namespace
	looked time.Time // for children and for holders of the rings
	rest   time.Duration
	others bool // somebody else had the rings mapped then
	told   bool // that following has ended
	gone   bool // the first process has ended, or replaced its program
	execs  *execs

	leaving *leaving

	rights  rights          // of the first process, when it was last seen
	parted  map[string]bool // what children lost the rings for, of which somebody has been told
	parting sync.WaitGroup
	changed atomic.Bool // a child's text could not be made what its file has

	// Of processes in other PID namespaces: the one that is served, whether this look has met one in there, which ones this look and the last
	// one have met of others, and when they started.
	served                     uint64
	met                        bool
	elsewhere, elsewhereBefore map[int]uint64

	mu        sync.Mutex      // guards what follows; the tree's may be taken while it is held
	members   map[int]*member // by process ID as seen from here; the first is not among them
	ended     int             // of them
	nested    nested
	strangers bool // one has been told of
}

// member is a forked child.
type member struct {
	p      *process.Process // nil if it is gone
	inner  int              // its ID in the innermost namespace that it is in
	nested bool             // that is not the one we are in
	rings  bool             // the rings have been seen in it
	gone   bool             // it has ended, replaced its program, or been set apart
	apart  uint64           // its start time, if it has been set apart: what it wrote before is still to be read
}

// How often families are looked at, besides the threads that write.
const (
	childrenInterval = 50 * time.Millisecond
	holdersInterval  = 300 * time.Millisecond
	// lookTimes is how many times as long as the last look for children took none is made then.
	lookTimes = 20
)

// maxEnded bounds how many children are remembered that have ended: of those a thread may be met yet.
const maxEnded = 1 << 14

// NewFamily returns the family of a process that has no children yet whose recording is own. since is a time before it was on, in clock
// ticks since boot.
func (t *Tree) NewFamily(s *target.Target, own Recording, since uint64) *Family {
	f := &Family{target: s, tree: t, own: own, notice: t.notice, kin: newKin(s, since), sameNS: s.IDsAreOurs(), members: map[int]*member{},
		rights: rightsOf(s.Process), parted: map[string]bool{}}
	if st, err := s.Process.Status(); err == nil && len(st.NSPIDs) > 0 {
		f.inner = st.NSPIDs[len(st.NSPIDs)-1]
	}
	return f
}

// anchor returns the process with that ID if it is certain to be of the family, else nil. The caller holds mu.
func (f *Family) anchor(pid int) holder {
	if pid == f.target.PID() {
		return f.target.Process
	}
	if m := f.members[pid]; m != nil && !m.gone {
		return m.p
	}
	return nil
}

// Of returns which process a thread is of. What it says of itself is believed of processes of the family, and of such that there
// are not any more, to which nothing can be done.
func (f *Family) Of(nspid int) int {
	own := f.target.PID()
	if nspid == 0 || nspid == f.inner || nspid >= ring.MaxTID {
		return own
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	pid, who, v := f.find(nspid)
	switch {
	case v == stranger:
		if !f.strangers {
			f.strangers = true
			f.notice("a thread says that it is of process %d, which is none that process %d has forked: its calls are recorded as that one's, and process %d is left alone", nspid, own, nspid)
		}
		return own
	case pid == own:
		who.Close()
	case v == ended:
		if f.members[pid] == nil {
			f.tree.count(func(p *Counts) { p.Forked++ })
			f.members[pid] = &member{gone: true} // most children live but for a moment
			f.ended++
			f.forget()
		}
	case f.members[pid] != nil && f.members[pid].apart == who.StartTime():
		who.Close()
	case f.members[pid] == nil || f.members[pid].gone:
		f.tree.count(func(p *Counts) { p.Forked++ })
		f.members[pid] = f.meet(who, nspid)
		who.Close()
	default:
		who.Close()
	}
	return pid
}

// find looks for the process of the family that has an ID as the target, or a child of it, sees it. The caller holds mu, and is to close
// who.
func (f *Family) find(nspid int) (pid int, who *process.Handle, v verdict) {
	v = ended
	if f.sameNS {
		if m := f.members[nspid]; m != nil && !m.gone && !m.nested {
			if who, err := m.p.Hold(); err == nil {
				return nspid, who, related
			}
		}
		if who, v = f.kin.judge(nspid, f.anchor); v == related {
			return nspid, who, v
		}
	}
	for pid, m := range f.members {
		if m.inner != nspid || m.gone {
			continue
		}
		if who, err := m.p.Hold(); err == nil {
			return pid, who, related
		}
	}
	who = f.nested.find(nspid, f, v != ended || !f.sameNS)
	if who == nil {
		return nspid, nil, v
	}
	return who.Pid(), who, related
}

// forget forgets children that have ended when there are many. The caller holds mu.
func (f *Family) forget() {
	if f.ended <= maxEnded {
		return
	}
	for pid, m := range f.members {
		if m.gone {
			delete(f.members, pid)
		}
	}
	f.ended = 0
}

// meet takes a process in.
func (f *Family) meet(who *process.Handle, nspid int) *member {
	m := &member{inner: nspid}
	p, err := process.Open(who.Pid())
	if err == nil && !who.Is(p) {
		err = errors.Join(process.ErrNoProcess, p.Close())
	}
	if err != nil {
		f.ended++
		return &member{gone: true}
	}
	m.p = p
	if st, err := p.Status(); err == nil {
		m.nested = len(st.NSPIDs) > 1
	}
	return m
}

// Look finds out which of the processes have ended or replaced their programs. It returns false when all have.
func (f *Family) Look() bool {
	firstRuns := f.target.Runs()
	if !firstRuns && !f.gone {
		f.gone = true
		f.tree.replaced(f.target.Process, f.own)
	}
	some := f.lookAtMembers() || firstRuns
	if !f.told && f.target.Memory.FollowEnded() {
		f.told = true
		f.notice("a forked child restricts its own system calls (seccomp): children that have called nothing yet are not recorded any more")
	}
	now := time.Now()
	every := childrenInterval
	if !some {
		every = holdersInterval
	}
	if now.Sub(f.looked) < max(every, f.rest) {
		return some || f.others
	}
	f.looked = now
	f.lookElsewhere()
	f.part()
	f.children()
	if !some {
		// One that has called nothing yet is not known, and may be nobody's child any more.
		found := f.holders(nil)
		f.others = len(found) > 0
		closeAll(found)
	}
	f.rest = lookTimes * time.Since(now)
	return some || f.others
}

// lookAtMembers says whether any of the forked children is still there.
func (f *Family) lookAtMembers() (some bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.members {
		if m.gone {
			continue
		}
		if f.holds(m) {
			some = true
			continue
		}
		m.gone = true
		f.ended++
		f.tree.replaced(m.p, f.own)
		m.p.Close()
		m.p = nil
	}
	f.forget()
	return some
}

// holds says whether a child has the ring memory: it has neither ended nor replaced its program. What the rings say is only looked at
// first, when it may have replaced its program already.
func (f *Family) holds(m *member) bool {
	if !m.p.Alive() {
		return false
	}
	var word [8]byte
	_, err := m.p.ReadAt(word[:], f.target.Runtime.Ring)
	m.rings = err == nil && (m.rings || binary.LittleEndian.Uint64(word[:]) == ring.Magic)
	return m.rings
}

// children looks for children with programs that are nobody's recording: they were replaced by a bare system call.
func (f *Family) children() {
	f.mu.Lock()
	anchors, skip := []holder{f.target.Process}, map[int]bool{}
	for pid, m := range f.members {
		if !m.gone {
			anchors, skip[pid] = append(anchors, m.p), true
		}
	}
	f.mu.Unlock()
	for _, a := range anchors { // only this goroutine closes them
		f.tree.lookBelow(a, skip, maxGenerations, f.inherited)
	}
}

// Threads lists the threads of a process that is of the family, none when it has ended or replaced its program.
func (f *Family) Threads(pid int) map[int]bool {
	if pid == f.target.PID() {
		if !f.target.Runs() {
			return nil
		}
		return target.ThreadSet(pid)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if m := f.members[pid]; m == nil || m.gone {
		return nil
	}
	return target.ThreadSet(pid)
}

// OuterTID is the ID, as seen from here, of a thread of a process of the family, by its ID for itself.
func (f *Family) OuterTID(pid, nstid int) int {
	if pid == f.target.PID() {
		if f.sameNS {
			return nstid
		}
		return target.OuterTID(f.target.Process, nstid)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.members[pid]
	if m == nil || m.gone || f.sameNS && !m.nested {
		return nstid
	}
	return target.OuterTID(m.p, nstid)
}

// Sees says whether there is a thread that has registered as one of process nspid, as far as that can be told by its IDs for itself.
func (f *Family) Sees(nspid, nstid int) bool {
	if nspid == 0 {
		nspid = f.target.PID()
	}
	return f.sameNS && !process.ThreadGone(nspid, nstid)
}

// holders returns the processes, but for the first and those in but, that have what forked children have. The caller is to close them.
func (f *Family) holders(but map[int]uint64) (found []*process.Handle) {
	own := f.target.PID()
	all, _ := process.IDs() // without them none is found
	// The youngest first: of processes that end soon those are the ones that are still there.
	for _, pid := range slices.Backward(all) {
		if pid == own || pid == os.Getpid() {
			continue
		}
		who, err := process.Hold(pid)
		if err != nil {
			continue
		}
		if start, is := but[pid]; is && start == who.StartTime() || !f.isOurs(who) {
			who.Close()
			continue
		}
		found = append(found, who)
	}
	return found
}

// isOurs says whether a process has what forked children have: one that was met and hasn't replaced its program, or one that proves it.
func (f *Family) isOurs(who *process.Handle) bool {
	f.mu.Lock()
	m := f.members[who.Pid()]
	member := m != nil && !m.gone && m.p.StartTime() == who.StartTime() && f.holds(m)
	f.mu.Unlock()
	if member {
		return true
	}
	shares, _ := f.kin.shares(who)
	return shares
}

func closeAll(list []*process.Handle) {
	for _, who := range list {
		who.Close()
	}
}
