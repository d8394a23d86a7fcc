package target

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/recovery"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// mapper maps what a recording needs for the first time.
type mapper struct {
	s                *Target
	st               *process.Stopped
	undo             []process.Call // what takes away again what has been opened and mapped
	rec, rings, code uint64         // the target's descriptors
}

// open makes the memfds, and notes what is going to be mapped.
func (m *mapper) open(set ring.Setup) error {
	s := m.s
	s.began = time.Now()
	if err := s.findPrivileges(); err != nil {
		return err
	}
	var rec, rings process.Memfd
	var err error
	if m.rec, rec, err = m.memfd(recovery.MemfdName); err != nil {
		return err
	}
	defer unix.Close(rec.FD)
	if m.rings, rings, err = m.memfd(ring.MemfdName); err != nil {
		return err
	}
	s.FD = rings.FD
	if err := s.initMemory(set, rec, rings); err != nil {
		return err
	}
	if m.code, err = s.shareCode(m.st, s.Arenas); err != nil {
		return err
	}
	if m.code != noFile {
		m.undo = append(m.undo, closing(m.code))
	}
	return s.journal.Add(&recovery.Record{Arenas: spansOf(s.Arenas)})
}

func closing(fd uint64) process.Call {
	return process.Call{Number: unix.SYS_CLOSE, Args: [6]uint64{fd}}
}

func (m *mapper) memfd(name string) (fd uint64, own process.Memfd, err error) {
	fd, own, err = m.s.memfd(m.st, name, noExecMemfd)
	if err == nil {
		m.undo = append(m.undo, closing(fd))
	}
	return fd, own, err
}

// closed says that a descriptor has been closed.
func (m *mapper) closed(fd uint64) {
	m.undo = slices.DeleteFunc(m.undo, func(c process.Call) bool { return c.Number == unix.SYS_CLOSE && c.Args[0] == fd })
}

// mapMemory maps the recovery memory and the ring memory.
func (m *mapper) mapMemory(maps []process.Mapping) (err error) {
	s := m.s
	// One behind the other, so that neither takes a place of the arenas; the rings where huge pages of theirs can be huge pages here.
	hint, behind := farFrom(maps, s.rec.Size()+ring.HugePage+s.Size), uint64(0)
	if hint != 0 {
		behind = (hint + s.rec.Size() + ring.HugePage - 1) &^ (ring.HugePage - 1)
	}
	if s.rec.At, err = m.mapShared(mapping{fd: m.rec, size: s.rec.Size(), prot: unix.PROT_READ, hint: hint, what: "recovery records"}); err != nil {
		return err
	}
	// A process that may do more than others may not is not to be written to by what it forks, where nobody wants to follow that.
	s.Runtime.Ring, err = m.mapShared(mapping{fd: m.rings, size: s.Size, prot: unix.PROT_READ | unix.PROT_WRITE, hint: behind,
		alone: s.privileged && !s.Runtime.Follow, what: "rings"})
	return err
}

func (m *mapper) mapShared(what mapping) (uint64, error) {
	at, err := m.s.mapShared(m.st, what)
	if err == nil {
		m.closed(what.fd)
		m.undo = append(m.undo, process.Call{Number: unix.SYS_MUNMAP, Args: [6]uint64{at, what.size}})
	}
	return at, err
}

// mapArenas maps arenas, all or the first of them.
func (m *mapper) mapArenas(arenas []*Arena) error {
	m.closed(m.code) // whatever comes of it
	calls, err := m.s.mapArenas(m.st, arenas, m.code)
	m.undo = append(m.undo, calls...)
	return err
}
