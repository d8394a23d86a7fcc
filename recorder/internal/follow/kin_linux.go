package follow

import (
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/recovery"
	"github.com/callreel/callreel/recorder/internal/target"
)

// kin tells processes of a family from strangers. Process IDs come out of the rings, in which the target can write whatever it likes,
// so that nothing is done to a process because somebody has named it. See docs/design/libraries.md, "Who belongs to a family".
type kin struct {
	first *process.Process // that recording began with
	uids  [4]int           // its user, when recording began
	since uint64           // clock ticks since boot: forked children that have the arenas aren't older
	code  []mappedAs       // the arenas with which recording began
	data  []mappedAs       // the rings and the recovery memory

	mu      sync.Mutex // guards what follows
	refused map[int]uint64
	looks   pace
}

// mappedAs is a mapping that a forked child has inherited.
type mappedAs struct {
	recovery.Span
	perm       process.Perm
	dev, inode uint64
	offset     uint64
}

// is says whether m is that mapping. Memory without a file has our name, where the kernel lets memory be named.
func (w *mappedAs) is(m *process.Mapping) bool {
	return m.Start == w.Base && m.Size() == w.Size && m.Dev == w.dev && m.Inode == w.inode && m.Perm == w.perm &&
		(w.inode != 0 && m.Offset == w.offset || w.inode == 0 && m.Special == target.ArenaSpecial)
}

// holder is a hold on a process: while it is alive its ID is its own.
type holder interface {
	Pid() int
	Alive() bool
}

// maxRefused bounds how many strangers are remembered.
const maxRefused = 4096

func newKin(s *target.Target, since uint64) *kin {
	k := &kin{first: s.Process, since: since, refused: map[int]uint64{}, uids: [4]int{-1, -1, -1, -1}}
	if st, err := s.Process.Status(); err == nil {
		k.uids = st.UIDs
	}
	at := uint64(0)
	for _, a := range s.Arenas {
		code := mappedAs{recovery.Span{Base: a.Base, Size: a.Size}, process.PermRead | process.PermExec, a.Dev, a.Inode, 0}
		if a.Inode != 0 {
			code.perm, code.offset = target.CodePerm, at
		}
		k.code = append(k.code, code)
		at += a.Size
	}
	for i, m := range s.Shared() {
		w := mappedAs{m.Span, process.PermRead | process.PermShared, m.Dev, m.Inode, 0}
		if i == 1 { // the rings
			w.perm |= process.PermWrite
		}
		k.data = append(k.data, w)
	}
	return k
}

// Verdicts on a process.
type verdict int

const (
	ended    verdict = iota // there is no such process, any more
	related                 // it is of the family
	stranger                // it is not, for all that is known
)

// judge says whether a process is of the family. anchor returns those that
// are for certain, nil for others. If it is, the caller is to close who.
func (k *kin) judge(pid int, anchor func(pid int) holder) (who *process.Handle, v verdict) {
	if pid == os.Getpid() {
		return nil, stranger
	}
	who, err := process.Hold(pid)
	switch {
	case errors.Is(err, process.ErrNoProcess):
		return nil, ended
	case err != nil:
		return nil, stranger
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if start, found := k.refused[pid]; found && start == who.StartTime() {
		who.Close()
		return nil, stranger
	}
	if descends(who, anchor) {
		return who, related
	}
	if who.StartTime() < k.since {
		return nil, k.refuse(who)
	}
	if !k.looks.may() { // it isn't remembered: it may be looked at later
		who.Close()
		return nil, stranger
	}
	began := time.Now()
	shares, has := k.shares(who)
	k.looks.took(time.Since(began))
	switch {
	case shares:
		return who, related
	case !has || !who.Alive():
		who.Close()
		return nil, ended
	}
	return nil, k.refuse(who)
}

// refuse remembers a stranger. Whose child a process is doesn't change for the better.
func (k *kin) refuse(who *process.Handle) verdict {
	if len(k.refused) >= maxRefused {
		clear(k.refused)
	}
	k.refused[who.Pid()] = who.StartTime()
	who.Close()
	return stranger
}

// maxGenerations bounds how far up the parents are looked at.
const maxGenerations = 64

// descends says whether a process is below an anchor. Each step is one that the kernel tells, between two processes of which
// both are alive after it was looked at, so that no ID is another's by then.
func descends(who *process.Handle, anchor func(pid int) holder) bool {
	chain := []holder{who}
	defer func() {
		for _, h := range chain[1:] {
			h.(*process.Handle).Close()
		}
	}()
	at := who
	for len(chain) < maxGenerations {
		parent, err := at.Parent()
		if err != nil || parent == 0 {
			return false
		}
		if a := anchor(parent); a != nil {
			again, err := at.Parent()
			return err == nil && again == parent && a.Alive() && allAlive(chain)
		}
		up, err := process.Hold(parent)
		if err != nil {
			return false
		}
		chain = append(chain, up)
		if again, err := at.Parent(); err != nil || again != parent {
			return false // it was adopted meanwhile: it has no parent of the family any more
		}
		at = up
	}
	return false
}

func allAlive(chain []holder) bool {
	return !slices.ContainsFunc(chain, func(h holder) bool { return !h.Alive() })
}

// shares says whether a process has what only a forked child of the recorded process has, or one that has taken pains to look like it:
// at the very addresses the recorder's code, executable and shared, and the ring memory, and behind each arena a page for its gate. A
// server that is sent the descriptors and maps them does so where and how it likes, and not for executing. It must also be no older
// than recording, and its user's be that of the recorded process, unless that is root's, who may be anybody.
// has is false for one that has no memory any more: it is about to end, though the kernel doesn't say so yet.
func (k *kin) shares(who *process.Handle) (shares, has bool) {
	if len(k.code) == 0 || who.StartTime() < k.since {
		return false, true
	}
	st, err := who.Status()
	if errors.Is(err, process.ErrNoProcess) {
		return false, false
	}
	if err != nil || st.UIDs != k.uids && k.uids[0] != 0 && k.uids[1] != 0 && k.uids[2] != 0 {
		return false, true
	}
	want := slices.Concat(k.code, k.data)
	last := uint64(0)
	for _, w := range want {
		last = max(last, w.Base+w.Size)
	}
	got, gates := 0, 0
	err = process.VisitMaps(who.Pid(), func(m *process.Mapping) bool {
		has = true
		for i := range want {
			w := &want[i]
			if w.is(m) {
				got++
			}
			if i < len(k.code) && m.Contains(w.Base+w.Size) && m.Inode == 0 && m.Perm == process.PermRead|process.PermWrite {
				gates++
			}
		}
		return m.End <= last // so that others' mappings don't cost anything
	})
	return err == nil && got == len(want) && gates == len(k.code) && who.Alive(), has || err != nil && !errors.Is(err, process.ErrNoProcess)
}

// pace keeps work that somebody else can ask for to a small share of the time.
type pace struct {
	next time.Time
}

// paceShare is the inverse of that share.
const paceShare = 20

// may says whether it is time.
func (p *pace) may() bool { return !time.Now().Before(p.next) }

// took says how long it took. Up to a tenth of a second of it may be done at once.
func (p *pace) took(d time.Duration) {
	const atOnce = 100 * time.Millisecond * paceShare
	now := time.Now()
	if earliest := now.Add(-atOnce); p.next.Before(earliest) {
		p.next = earliest
	}
	p.next = p.next.Add(paceShare * d)
}
