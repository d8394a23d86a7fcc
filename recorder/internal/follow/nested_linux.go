package follow

import (
	"time"

	"github.com/callreel/callreel/process"
)

// nested finds processes of a family that are in a PID namespace of their own, where IDs begin anew (pid_namespaces(7)). The kernel tells of a
// process which IDs it has in them, and not which process has an ID. Family.mu guards it.
type nested struct {
	known      map[int]int // where one was found last
	below, all pace
}

const (
	// maxKnown bounds how many are remembered.
	maxKnown = 4096
	// maxBelow bounds at how many processes below a family's one search looks.
	maxBelow = 4096
)

// find returns the process that has an ID in a namespace of its own, nil if none is found. The caller is to close it. One that asks again, as
// execvp(3) does for each folder of PATH, is found at once; else it is looked for below the family, and if everywhere says so among all
// processes, where it is if it is nobody's child any more.
func (n *nested) find(nspid int, f *Family, everywhere bool) *process.Handle {
	if pid, found := n.known[nspid]; found {
		if who := n.is(pid, nspid, f); who != nil {
			return who
		}
		delete(n.known, nspid)
	}
	if n.below.may() {
		began := time.Now()
		who := n.among(f.below(), nspid, f)
		n.below.took(time.Since(began))
		if who != nil {
			return who
		}
	}
	if !everywhere || !n.all.may() {
		return nil
	}
	began := time.Now()
	defer func() { n.all.took(time.Since(began)) }()
	all, _ := process.IDs() // without them none is found
	return n.among(all, nspid, f)
}

func (n *nested) among(pids []int, nspid int, f *Family) *process.Handle {
	for _, pid := range pids {
		who := n.is(pid, nspid, f)
		if who == nil {
			continue
		}
		if n.known == nil || len(n.known) >= maxKnown {
			n.known = map[int]int{}
		}
		n.known[nspid] = pid
		return who
	}
	return nil
}

// is returns a process if it is of the family and has that ID in a namespace of its own.
func (n *nested) is(pid, nspid int, f *Family) *process.Handle {
	st, err := process.StatusOf(pid, pid)
	if err != nil || len(st.NSPIDs) < 2 || st.NSPIDs[len(st.NSPIDs)-1] != nspid {
		return nil
	}
	who, v := f.kin.judge(pid, f.anchor)
	if v != related {
		return nil
	}
	return who
}

// below lists the processes below the family's, nearest first. The caller holds mu.
func (f *Family) below() []int {
	at := []int{f.target.PID()}
	for pid, m := range f.members {
		if !m.gone {
			at = append(at, pid)
		}
	}
	seen := map[int]bool{}
	var all []int
	for generation := 0; len(at) > 0 && generation < maxGenerations; generation++ {
		var next []int
		for _, pid := range at {
			children, _ := process.Children(pid) // none of one that has ended
			for _, child := range children {
				if len(all) == maxBelow {
					return all
				}
				if !seen[child] {
					seen[child] = true
					all, next = append(all, child), append(next, child)
				}
			}
		}
		at = next
	}
	return all
}
