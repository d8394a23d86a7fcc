package target

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/recovery"
)

// Slots of imports are words of data, each written by eight bytes in one page while all threads are stopped: a recorder that is killed has written
// one or it hasn't. They are written behind the text and restored before it. So what leads into an arena is put back first. What slots lead
// to meanwhile is the noted stub: whoever cleans up restores a slot that has exactly that in it, and no other. The program, or another
// tool, may have written a slot since. That is left, and as whoever did so may have kept the stub's address to go on to, the stub stays.

// slotsOf lists the slots of an arena whose code is made, for the record.
func slotsOf(a *Arena, maps []process.Mapping) (list []recovery.Slot) {
	for i := range a.Code.Rebindings {
		b := &a.Code.Rebindings[i]
		x := recovery.Slot{Addr: b.Slot, Was: b.Was, Target: b.Target, Stub: b.Stub}
		if m := process.FindMapping(maps, b.Slot); m != nil {
			x.Dev, x.Inode = m.Dev, m.Inode
		}
		list = append(list, x)
	}
	return list
}

// isSlot says whether there is data at a slot's address that is the process's own, of the file that was noted.
func isSlot(maps []process.Mapping, x *recovery.Slot) bool {
	m := process.FindMapping(maps, x.Addr)
	return m != nil && m.Dev == x.Dev && m.Inode == x.Inode && x.Addr%8 == 0 && m.Perm&(process.PermShared|process.PermExec) == 0
}

func readSlot(p *process.Process, addr uint64) (uint64, error) {
	var b [8]byte
	_, err := p.ReadAt(b[:], addr)
	return binary.LittleEndian.Uint64(b[:]), err
}

// writeSlot writes a slot, of a page that may be read-only (RELRO), and looks that it is as it was written.
func writeSlot(p *process.Process, addr, v uint64) error {
	if _, err := p.WriteAt(binary.LittleEndian.AppendUint64(nil, v), addr); err != nil {
		return err
	}
	now, err := readSlot(p, addr)
	if err == nil && now != v {
		err = fmt.Errorf("callreel: process %d: the slot at %#x has %#x where %#x was written", p.Pid(), addr, now, v)
	}
	return err
}

// rebind leads the slots of a change to their stubs. What doesn't lead where it did when it was planned, or to where the loader has led it since,
// is left.
func (s *Target) rebind(c *Change, maps []process.Mapping) error {
	noted := make(map[uint64]*recovery.Slot, len(s.slots))
	for i := range s.slots {
		noted[s.slots[i].Stub] = &s.slots[i]
	}
	for _, im := range c.Images {
		if im.Unloadable && !im.IsThere(maps) {
			continue
		}
		for i := range im.Rebindings {
			x := noted[im.Rebindings[i].Stub]
			if x == nil || !isSlot(maps, x) {
				continue
			}
			now, err := readSlot(s.Process, x.Addr)
			switch {
			case err != nil:
				return err
			case now == x.Stub:
			case now != x.Was && now != x.Target:
				if s.Unrecorded != nil {
					s.Unrecorded(fmt.Errorf("the slot at %#x of %s was led elsewhere just now: its calls are not recorded", x.Addr, im.Module))
				}
			default:
				if err := writeSlot(s.Process, x.Addr, x.Stub); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// unbind leads slots back to where they led, in a process of which all threads are stopped, and returns those that somebody else has written. A
// library that went and came again has the same slots with other stubs; of those that came anew, and aren't recorded, anew tells.
func unbind(p *process.Process, list []recovery.Slot, maps []process.Mapping, anew map[FileID]bool) (others []recovery.Slot, err error) {
	at := map[uint64][]recovery.Slot{}
	var order []uint64
	for _, x := range list {
		if at[x.Addr] == nil {
			order = append(order, x.Addr)
		}
		at[x.Addr] = append(at[x.Addr], x)
	}
	for _, addr := range order {
		same := slices.DeleteFunc(at[addr], func(x recovery.Slot) bool { return !isSlot(maps, &x) })
		if len(same) == 0 {
			continue // its library has gone
		}
		now, err := readSlot(p, addr)
		if err != nil {
			return nil, err
		}
		ours := slices.IndexFunc(same, func(x recovery.Slot) bool { return now == x.Stub })
		switch {
		case ours >= 0:
			if err := writeSlot(p, addr, same[ours].Was); err != nil {
				return nil, err
			}
		case slices.ContainsFunc(same, func(x recovery.Slot) bool { return now == x.Was || now == x.Target }): // bound meanwhile, or never written
		case anew[FileID{same[0].Dev, same[0].Inode}]:
		default:
			others = append(others, same[len(same)-1])
		}
	}
	return others, nil
}

// cameAnew are the files with slots that also have patches of text, none of which is in place: the library went, and was loaded again. Whoever
// writes a slot doesn't restore text. It is to be asked before text is restored.
func cameAnew(p *process.Process, r *recovery.Record, maps []process.Mapping) map[FileID]bool {
	const most = 16 // patches of a file that are looked at
	anew := map[FileID]bool{}
	if len(r.Slots) == 0 {
		return anew
	}
	looked := map[FileID]int{}
	for i := range r.Patches {
		patch := &r.Patches[i]
		m := process.FindMapping(maps, patch.Addr)
		if m == nil || m.Inode == 0 {
			continue
		}
		id := FileID{m.Dev, m.Inode}
		if looked[id]++; looked[id] > most || looked[id] > 1 && !anew[id] {
			continue
		}
		b := make([]byte, len(patch.New()))
		_, err := p.ReadAt(b, patch.Addr)
		anew[id] = err == nil && string(b) == string(patch.Old())
	}
	return anew
}

// unbind leads the slots back, and notes where somebody else has written one.
func (w *undoWork) unbind() error {
	if len(w.r.Slots) == 0 {
		return nil
	}
	maps, err := w.p.Maps()
	if err != nil {
		return err
	}
	if !w.shared[0].isIn(maps) {
		return process.ErrExec
	}
	others, err := unbind(w.p, w.r.Slots, maps, w.anew)
	if err != nil || len(others) == 0 {
		return err
	}
	w.rebound = fmt.Sprintf("the slot at %#x was written by somebody else while it was recorded, who may go on to its stub", others[0].Addr)
	if n := len(others) - 1; n > 0 {
		w.rebound += fmt.Sprintf(" (and %d more)", n)
	}
	return nil
}

// believeSlots omits the slots that don't lead into one of the record's arenas, which are known to be, and those that would be led back to what
// is no code.
func (l *Remains) believeSlots(maps []process.Mapping) {
	var kept []recovery.Slot
	for _, x := range l.Record.Slots {
		m := process.FindMapping(maps, x.Was)
		if m != nil && m.Perm&process.PermExec != 0 && l.Record.InArena(x.Stub) && !l.Record.InArena(x.Was) {
			kept = append(kept, x)
		}
	}
	l.Record.Slots = kept
}
