package follow

import (
	"context"
	"fmt"
	"slices"

	"github.com/callreel/callreel/process"
)

// rights are what the kernel lets a process do, as far as it tells everybody, and where its IDs mean what. Processes that write into the
// same rings must have the same: what stands there makes the stubs of all of them write, and a thread's slot is found by its ID.
type rights struct {
	uids, gids [4]int
	groups     []int
	capable    uint64
	space      uint64 // its user namespace: what it is capable of, it is there
	ids        uint64 // its PID namespace (pid_namespaces(7))
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

// relative is a process that may be of the family.
type relative interface {
	statusOf
	StartTime() uint64
}

// rightsOf returns a process's rights, unknown ones if it ends.
func rightsOf(p statusOf) rights {
	st, err := p.Status()
	if err != nil {
		return rights{}
	}
	r := rights{uids: st.UIDs, gids: st.GIDs, groups: st.Groups, capable: st.Capable, known: true}
	for kind, to := range map[string]*uint64{"user": &r.space, "pid": &r.ids} {
		if *to, err = process.Namespace(p.Pid(), kind); err == nil {
			continue
		}
		if _, err := p.Status(); err != nil {
			return rights{} // it ended in between
		}
		*to = 0 // where there are no namespaces it is so for all
	}
	return r
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

// stays returns "" of a process that may write into the same rings as the first of the family, else why not.
func (f *Family) stays(who relative) string {
	r := rightsOf(who)
	switch first := f.target.PID(); {
	case !r.sameAs(&f.rights):
		return fmt.Sprintf("hasn't the rights of process %d any more, which it was forked from", first)
	case r.known && f.rights.known && r.ids != f.rights.ids && !f.serves(r.ids) && f.lingers(who):
		return fmt.Sprintf("is in another PID namespace than process %d, which it was forked from, so IDs mean other threads there", first)
	}
	return ""
}

// serves says whether the threads of a PID namespace that isn't the first process's may write into its rings. They are told apart by their
// IDs there, which begin at 1 in each: so those of one such namespace may, and none if the first process is itself in one of its own.
func (f *Family) serves(ids uint64) bool {
	if !f.sameNS {
		return false
	}
	if f.served == 0 {
		f.served = ids
	}
	f.met = f.met || f.served == ids
	return f.served == ids
}

// lingers says whether a process in another PID namespace was met at the last look, too. What is put into one mostly replaces its program
// at once, and is then recorded from the first instruction on.
func (f *Family) lingers(who relative) bool {
	f.elsewhere[who.Pid()] = who.StartTime()
	return f.elsewhereBefore[who.Pid()] == who.StartTime() && !f.tree.comes(who.Pid())
}

// lookElsewhere begins a look at processes in other PID namespaces.
func (f *Family) lookElsewhere() {
	f.elsewhereBefore, f.elsewhere = f.elsewhere, map[int]uint64{}
	if !f.met {
		f.served = 0
	}
	f.met = false
}

// part takes children out of the family whose rights aren't the family's any more. They lose its rings, and get a recording of their own.
func (f *Family) part() {
	if own := rightsOf(f.target.Process); own.known {
		f.rights = own
	}
	type leaver struct {
		who *process.Handle
		why string
	}
	var leave []leaver
	f.mu.Lock()
	for _, m := range f.members {
		if m.gone {
			continue
		}
		why := f.stays(m.p)
		if why == "" {
			continue
		}
		if who, err := m.p.Hold(); err == nil {
			m.leave(who.StartTime())
			f.ended++
			leave = append(leave, leaver{who, why})
		}
	}
	f.mu.Unlock()
	for _, l := range leave {
		f.setApart(l.who, l.why)
	}
}

// inherited looks at a child that has the rings and has called nothing yet. It takes who over.
func (f *Family) inherited(who *process.Handle) {
	why := f.stays(who)
	if why == "" {
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
	f.setApart(who, why)
}

// leave says that the process is no member any more.
func (m *member) leave(start uint64) {
	if m.p != nil {
		m.p.Close()
	}
	m.p, m.gone, m.apart = nil, true, start
}

// setApart restores a process that shall not have the rings any more, and has it recorded as a program of its own. why
// is told once. It takes who over.
func (f *Family) setApart(who *process.Handle, why string) {
	pid := who.Pid()
	if !f.parted[why] {
		f.parted[why] = true
		f.notice("process %d %s: such processes get rings of their own", pid, why)
	}
	f.tree.expect(pid)
	f.parting.Go(func() {
		kept, err := f.detachOne(context.WithoutCancel(f.tree.ctx), who, false)
		f.tree.came(pid)
		switch {
		case !who.Alive():
			who.Close()
		case err != nil || kept != "":
			f.notice("process %d %s, and it keeps those rings, into which it can write: %s", pid, why, whyKept(kept, err))
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
