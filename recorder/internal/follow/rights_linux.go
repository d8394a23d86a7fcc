package follow

import (
	"context"
	"slices"

	"github.com/callreel/callreel/process"
)

// rights are what the kernel lets a process do, as far as it tells everybody. Processes that write into the same rings must have the
// same: what stands there makes the stubs of all of them write.
type rights struct {
	uids, gids [4]int
	groups     []int
	capable    uint64
	space      uint64 // its user namespace: what it is capable of, it is there
	known      bool
}

// Capabilities with which a process takes any user, or any groups (capabilities(7)).
const (
	capSetgid = 1 << 6
	capSetuid = 1 << 7
)

// statusOf is what rights are read from.
type statusOf interface {
	Pid() int
	Status() (process.Status, error)
}

// rightsOf returns a process's rights, unknown ones if it ends.
func rightsOf(p statusOf) rights {
	st, err := p.Status()
	if err != nil {
		return rights{}
	}
	space, err := process.Namespace(p.Pid(), "user")
	if err != nil {
		if _, err := p.Status(); err != nil {
			return rights{} // it ended in between
		}
		space = 0 // where there are no namespaces it is so for all
	}
	return rights{uids: st.UIDs, gids: st.GIDs, groups: st.Groups, capable: st.Capable, space: space, known: true}
}

// covers says whether who has these rights can do all that who has the others can. Effective IDs come and go, as a file server's do; what
// counts is what a process can take again.
func (r *rights) covers(o *rights) bool {
	if !r.known || !o.known {
		return true // it has ended, and does nothing any more
	}
	if r.space != o.space || r.capable&o.capable != o.capable {
		return false
	}
	for _, id := range o.uids {
		if r.capable&capSetuid == 0 && !slices.Contains(r.uids[:], id) {
			return false
		}
	}
	for _, id := range slices.Concat(o.gids[:], o.groups) {
		if r.capable&capSetgid == 0 && !slices.Contains(r.gids[:], id) && !slices.Contains(r.groups, id) {
			return false
		}
	}
	return true
}

// sameAs says whether neither can do what the other can't.
func (r *rights) sameAs(o *rights) bool { return r.covers(o) && o.covers(r) }

// part takes children out of the family whose rights aren't the family's any more. They lose its rings, and get a recording of their own.
func (f *Family) part() {
	if own := rightsOf(f.target.Process); own.known {
		f.rights = own
	}
	var leave []*process.Handle
	f.mu.Lock()
	for _, m := range f.members {
		if m.gone {
			continue
		}
		r := rightsOf(m.p)
		if r.sameAs(&f.rights) {
			continue
		}
		if who, err := m.p.Hold(); err == nil {
			m.leave(who.StartTime())
			f.ended++
			leave = append(leave, who)
		}
	}
	f.mu.Unlock()
	for _, who := range leave {
		f.setApart(who)
	}
}

// inherited looks at a child that has the rings and has called nothing yet. It takes who over.
func (f *Family) inherited(who *process.Handle) {
	r := rightsOf(who)
	if r.sameAs(&f.rights) {
		who.Close()
		return
	}
	f.mu.Lock()
	if m := f.members[who.Pid()]; m != nil && m.apart == who.StartTime() {
		f.mu.Unlock()
		who.Close()
		return
	}
	f.tree.count(func(p *Counts) { p.Forked++ })
	m := &member{inner: who.Pid()}
	m.leave(who.StartTime())
	f.members[who.Pid()] = m
	f.ended++
	f.mu.Unlock()
	f.setApart(who)
}

// leave says that the process is no member any more.
func (m *member) leave(start uint64) {
	if m.p != nil {
		m.p.Close()
	}
	m.p, m.gone, m.apart = nil, true, start
}

// setApart restores a process that shall not have the rings any more, and has it recorded as a program of its own. It takes who over.
func (f *Family) setApart(who *process.Handle) {
	pid := who.Pid()
	if !f.parted {
		f.parted = true
		f.notice("process %d hasn't the rights of process %d any more, which it was forked from: such processes get rings of their own", pid, f.target.PID())
	}
	f.tree.expect(pid)
	f.parting.Go(func() {
		kept, err := f.detachOne(context.WithoutCancel(f.tree.ctx), who, false)
		f.tree.came(pid)
		switch {
		case !who.Alive():
			who.Close()
		case err != nil || kept != "":
			f.notice("process %d hasn't the rights of process %d any more, and keeps its rings, into which it can write: %s", pid, f.target.PID(), whyKept(kept, err))
			who.Close()
		default:
			f.tree.late(who)
		}
	})
}

func whyKept(kept string, err error) string {
	if err != nil {
		return err.Error()
	}
	return kept
}
