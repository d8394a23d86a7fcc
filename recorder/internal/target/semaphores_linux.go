package target

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/recovery"
)

// A program looks at a marker's semaphore before it makes the marker's arguments ready, or comes by the marker at all. It is counted up while
// sites are written, and down before text is restored, with all threads stopped: a program only reads it. Other recorders may count it, too;
// each adds one, and takes that away.
//
// What is done to it is noted in the recovery memory before and after, so a recorder may be killed at any instant. Whoever cleans up behind it
// can't write there. So it restores text first, and takes nothing off semaphores whose text it finds restored: if it is killed in
// between, a semaphore stays one too high, which costs the program the making of arguments; never one too low, which would blind another.

// uncounted says that a semaphore could not be counted up.
func (s *Target) uncounted(addr uint64, why string) {
	if s.Uncounted != nil {
		s.Uncounted(fmt.Errorf("the semaphore at %#x is not counted up (%s): its markers may never be passed", addr, why))
	}
}

// semaphoresOf lists the semaphores of an image whose patches are known, for the record.
func (s *Target) semaphoresOf(im *mapped.Image, maps []process.Mapping) (list []recovery.Semaphore) {
	if len(im.Sites) == 0 || len(im.Text) == 0 {
		return nil
	}
	site := im.Sites[len(im.Sites)-1].Addr
	for _, addr := range im.Semaphores {
		x := recovery.Semaphore{Addr: addr, Dev: im.Text[0].Dev, Inode: im.Text[0].Inode, Site: site}
		if !isCounter(maps, &x) {
			s.uncounted(addr, "it is not in data of its file that the program may write")
			continue
		}
		list = append(list, x)
	}
	return list
}

// isCounter says whether there is data at a semaphore's address that is the process's own copy of its file's.
func isCounter(maps []process.Mapping, x *recovery.Semaphore) bool {
	m := process.FindMapping(maps, x.Addr)
	return m != nil && m.Dev == x.Dev && m.Inode == x.Inode && m.Inode != 0 && x.Addr%2 == 0 && x.Addr+2 <= m.End &&
		m.Perm&process.PermWrite != 0 && m.Perm&process.PermShared == 0
}

// count reads a semaphore.
func count(p *process.Process, addr uint64) (uint16, error) {
	var b [2]byte
	_, err := p.ReadAt(b[:], addr)
	return binary.LittleEndian.Uint16(b[:]), err
}

// setCount writes one.
func setCount(p *process.Process, addr uint64, n uint16) error {
	_, err := p.WriteAt(binary.LittleEndian.AppendUint16(nil, n), addr)
	return err
}

// countUp counts the semaphores of images up whose sites have just been written.
func (s *Target) countUp(images []*mapped.Image, maps []process.Mapping) error {
	for i := range s.semaphores {
		x := &s.semaphores[i]
		if !isCounter(maps, x) || !slices.ContainsFunc(images, func(im *mapped.Image) bool { return slices.Contains(im.Semaphores, x.Addr) }) {
			continue
		}
		now, err := count(s.Process, x.Addr)
		if err != nil {
			return err
		}
		if now == math.MaxUint16 {
			s.uncounted(x.Addr, "it is as high as it can be")
			continue
		}
		x.Note(recovery.GoingUp.Changing(now))
		if err := setCount(s.Process, x.Addr, now+1); err != nil {
			return err
		}
		x.Note(recovery.Up)
	}
	return nil
}

// countDown takes what is ours off the semaphores of a process of which all threads are stopped.
func countDown(p *process.Process, list []recovery.Semaphore, maps []process.Mapping, forked bool) (odd int, err error) {
	for i := range list {
		x := &list[i]
		if !isCounter(maps, x) || !forked && x.State().Is() == recovery.Untouched {
			continue
		}
		now, err := count(p, x.Addr)
		if err != nil {
			return odd, err
		}
		if !forked && !x.Added(now) || now == 0 {
			if forked || x.State().Is() == recovery.Up { // somebody else has set it to less
				odd++
			}
			if !forked {
				x.Note(recovery.Untouched)
			}
			continue
		}
		if !forked {
			x.Note(recovery.GoingDown.Changing(now))
		}
		if err := setCount(p, x.Addr, now-1); err != nil {
			return odd, err
		}
		if !forked {
			x.Note(recovery.Untouched)
		}
	}
	return odd, nil
}

// inPlace leaves those of the record's semaphores whose site is there.
func inPlace(p *process.Process, r *recovery.Record) (list []recovery.Semaphore) {
	if len(r.Semaphores) == 0 {
		return nil
	}
	sites := map[uint64][]byte{}
	for i := range r.Patches {
		sites[r.Patches[i].Addr] = r.Patches[i].New()
	}
	for _, x := range r.Semaphores {
		want := sites[x.Site]
		got := make([]byte, len(want))
		if len(want) == 0 {
			continue
		}
		if _, err := p.ReadAt(got, x.Site); err == nil && string(got) == string(want) {
			list = append(list, x)
		}
	}
	return list
}

// believeSemaphores omits what is no semaphore by the notes of the file that is mapped there. Where a file can't be read any more a signed
// record is believed.
func (l *Remains) believeSemaphores(files *textFiles) error {
	notes := map[*mapped.Image]map[uint64]bool{}
	var kept []recovery.Semaphore
	for _, x := range l.Record.Semaphores {
		m := process.FindMapping(files.maps, x.Site) // text of the same file
		if m == nil || m.Dev != x.Dev || m.Inode != x.Inode || m.Perm&process.PermExec == 0 {
			continue
		}
		im, err := files.image(m)
		if err != nil {
			return err
		}
		if im == nil {
			if l.Signed {
				kept = append(kept, x)
			}
			continue
		}
		if notes[im] == nil {
			notes[im] = map[uint64]bool{}
			all, _ := mapped.Notes(im.Object) // those before the damage
			for i := range all {
				if all[i].Semaphore != 0 {
					notes[im][all[i].Semaphore+im.Slide] = true
				}
			}
		}
		if notes[im][x.Addr] {
			kept = append(kept, x)
		}
	}
	l.Record.Semaphores = kept
	return nil
}
