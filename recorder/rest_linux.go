package recorder

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/armed"
	"github.com/callreel/callreel/recorder/internal/rest"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/target"
)

// beginNote notes an armed recording, so that what its rings hold can be read when this recorder has been killed. It can do without.
func (r *recording) beginNote() {
	if r.opt.Armed == nil {
		return
	}
	n, err := r.makeNote()
	if err != nil {
		r.notice("if this recorder is killed, what the rings hold can't be dumped: %v", err)
		return
	}
	r.note = n
}

func (r *recording) makeNote() (*rest.Note, error) {
	h, err := r.header()
	if err != nil {
		return nil, err
	}
	folder, err := filepath.Abs(r.opt.Output)
	if err != nil {
		return nil, err
	}
	start, err := process.StartTime(r.pid(), r.pid())
	if err != nil {
		return nil, err
	}
	rings := r.s.RingFile
	return rest.Begin(rest.About{RingDev: rings.Dev, RingInode: rings.Inode, PID: r.pid(), Start: start, PIDNamespace: process.OwnPIDNamespace(),
		Folder: folder, Mode: r.opt.Mode, Began: r.began, Min: r.set.Min}, h)
}

// checkNote says if the note isn't whole.
func (r *recording) checkNote() {
	if r.note == nil {
		return
	}
	if err := r.note.Err(); err != nil {
		r.notice("if this recorder is killed, what the rings hold can't be dumped: %v", err)
		r.note.Close()
		r.note = nil
	}
}

// dumpRest writes what the rings of a dead recorder hold into the next dump of its folder. The error wraps fs.ErrNotExist where it was not
// armed. forget is called when the rings are gone.
func dumpRest(p *process.Process, l *target.Remains) (d Dumped, forget func(), err error) {
	forget = func() {}
	if !l.Signed || l.Inherited || l.Alive {
		return d, forget, fmt.Errorf("callreel: process %d: no armed recorder of this user's has died there: %w", p.Pid(), fs.ErrNotExist)
	}
	note, err := rest.Find(l.About.RingDev, l.About.RingIno)
	if err != nil {
		return d, forget, err
	}
	forget = note.Remove
	rings, err := l.OpenRings(p)
	if err != nil {
		return d, forget, errors.Join(err, note.Close())
	}
	made, err := dumpRings(armed.Rest{Process: p, Recorder: l.About.Recorder, Note: note}, rings)
	return Dumped(made), forget, errors.Join(err, note.Close())
}

func dumpRings(left armed.Rest, from *target.OpenedRings) (d armed.Dumped, err error) {
	if left.Rings, err = ring.ReadRest(from.Size, from.Read); err != nil {
		return d, err
	}
	if bytes, available := left.Rings.Bytes(), availableMemory(); bytes > available/2 {
		return d, fmt.Errorf("callreel: rings of %d MiB are more than half of the %d MiB of memory that are available", bytes>>20, available>>20)
	}
	return left.Dump()
}

// dumpLeft dumps what a dead recorder has left in a process, and leaves it there. It returns false if none has died there that was armed.
func dumpLeft(pid int) (d Dumped, found bool, err error) {
	p, err := process.OpenForCode(pid)
	if err != nil {
		return d, false, err
	}
	defer p.Close()
	l, err := target.FindRemains(p)
	if err != nil || l == nil {
		return d, false, err
	}
	d, _, err = dumpRest(p, l)
	if errors.Is(err, fs.ErrNotExist) {
		return d, false, nil
	}
	return d, true, err
}

// restOf dumps what a dead recorder's rings hold before they go, and says what came of it: both are empty if it was not armed. forget is to be
// called when they have gone.
func restOf(p *process.Process, l *target.Remains) (file, why string, forget func()) {
	d, forget, err := dumpRest(p, l)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", "", forget
	case err != nil:
		return "", err.Error(), forget
	}
	return d.File, "", forget
}
