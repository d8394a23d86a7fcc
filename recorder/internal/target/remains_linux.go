package target

import (
	"context"
	"crypto/hmac"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/callreel/callreel/internal/runtimedir"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/recovery"
	"github.com/callreel/callreel/recorder/internal/refusal"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// Remains is what a recorder has left in a process.
type Remains struct {
	Memory    sharedSpan // the recovery memory
	About     recovery.About
	Alive     bool // the recorder is at work
	Inherited bool // by fork, from a process that was recorded
	Signed    bool // by a recorder of this user's
	Record    *recovery.Record
}

// FindRemains looks for what a recorder has left in a process, or has there while it is at work; nil when there is nothing.
//
// A detach that was killed may have got as far as to the process's taking the memory away itself, which goes on without it: what is gone
// while it is read is looked for again.
func FindRemains(p *process.Process) (*Remains, error) {
	const (
		tries = 50
		rest  = 10 * time.Millisecond
	)
	for try := 0; ; try++ {
		l, err := lookForRemains(p)
		if !errors.Is(err, process.ErrNoMapping) || try == tries {
			return l, err
		}
		time.Sleep(rest)
	}
}

func lookForRemains(p *process.Process) (*Remains, error) {
	maps, err := p.Maps()
	if err != nil {
		return nil, err
	}
	return findRemainsIn(p, maps)
}

// findRemainsIn is FindRemains with the mappings at hand.
//
// A process may have mapped memory of another's that looks like a recorder's: a server that takes its clients' memfds does that. So what
// looks like recovery memory counts only if a recorder of this user's has signed it for this very process; or else if the process runs
// code of that recorder's: if what was noted of its arenas is mapped there, executable, from the memfds that were noted. Nobody can make
// another process do that but who may do to it anything as it is. What doesn't count is left alone.
func findRemainsIn(p *process.Process, maps []process.Mapping) (*Remains, error) {
	var key []byte
	var found *Remains
	var other error
	for i := range maps {
		m := &maps[i]
		if m.Path != recovery.MappingName || m.Perm != process.PermRead|process.PermShared || m.Offset != 0 {
			continue
		}
		if key == nil {
			key = keyIfAny()
		}
		l, err := suspect{p, maps, key}.examine(m)
		if l != nil && l.Signed && !l.Inherited {
			return l, err // whatever else has been sent to it
		}
		if found == nil && other == nil {
			found, other = l, err
		}
	}
	if found != nil || other != nil {
		return found, other
	}
	if m := arenaOfAnother(maps); m != nil {
		return nil, fmt.Errorf("callreel: process %d: %w: at %#x there is code of a recorder whose notes this callreel can't read: it is of another version; end it, or detach, with that version",
			p.Pid(), refusal.Err, m.Start)
	}
	return nil, nil
}

// keyIfAny returns the user's key, nil if there is none.
func keyIfAny() []byte {
	dir, err := runtimedir.Open()
	if err != nil {
		return nil
	}
	defer dir.Close()
	key, err := recovery.ReadKey(dir)
	if err != nil {
		return nil
	}
	return key
}

// arenaOfAnother finds code that carries our name.
func arenaOfAnother(maps []process.Mapping) *process.Mapping {
	for i := range maps {
		m := &maps[i]
		if m.Path == codeMapping && m.Perm&CodePerm == CodePerm || m.Perm&process.PermExec != 0 && m.Special == ArenaSpecial {
			return m
		}
	}
	return nil
}

// suspect is a process that may have memory of a recorder's, and what helps to find out.
type suspect struct {
	*process.Process
	maps []process.Mapping
	key  []byte
}

// examine reads what looks like recovery memory; nil if it doesn't count.
func (p suspect) examine(m *process.Mapping) (*Remains, error) {
	end := m.Start
	for i := range p.maps { // protections may have split it
		if x := &p.maps[i]; x.Inode == m.Inode && x.Dev == m.Dev && x.Start == end && x.Offset == end-m.Start {
			end = x.End
		}
	}
	header := make([]byte, recovery.RecordsOff)
	if end-m.Start <= recovery.RecordsOff {
		return nil, nil
	}
	if _, err := p.ReadAt(header, m.Start); err != nil {
		return nil, err
	}
	a, size, ok := recovery.ParseAbout(header)
	if !ok || size != end-m.Start || size > recovery.MostSize {
		return nil, nil
	}
	who, err := p.Identity()
	if err != nil {
		return nil, err
	}
	l := &Remains{Memory: sharedSpan{recovery.Span{Base: m.Start, Size: size}, m.Dev, m.Inode}, About: a, Inherited: !a.Target.Is(who)}
	l.Signed = p.key != nil && hmac.Equal(header[recovery.HdrSignature:][:32], recovery.SignatureOf(header, m.Dev, m.Inode, p.key))
	runs, err := p.runsArenas(l)
	if err != nil || !runs && (!l.Signed || l.Inherited) {
		return nil, err
	}
	if err := p.readRecords(l); err != nil {
		return nil, fmt.Errorf("callreel: process %d: %w", p.Pid(), err)
	}
	l.Record.Golang = a.Golang
	l.Alive = a.RecorderLives(binary.LittleEndian.Uint32(header[recovery.HdrOwner:]))
	return l, nil
}

// runsArenas says whether any arena of the first record is where that says, and can be nothing else.
func (p suspect) runsArenas(l *Remains) (bool, error) {
	const most = 1 << 20 // the first record has all arenas, and nothing else
	first, err := recovery.ReadRecords(min(l.Memory.Size-recovery.RecordsOff, most), 1, func(buf []byte, at uint64) error {
		_, err := p.ReadAt(buf, l.Memory.Base+recovery.RecordsOff+at)
		return err
	})
	if errors.Is(err, recovery.ErrRecord) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(first.Arenas, func(a recovery.Arena) bool {
		return isCertain(p.maps, a)
	}), nil
}

// isCertain says whether an arena is mapped there, and can be nothing else: a process may have code that it has made itself, too.
func isCertain(maps []process.Mapping, a recovery.Arena) bool {
	return isArena(maps, a) && (a.Inode != 0 || process.FindMapping(maps, a.Base).Special == ArenaSpecial)
}

// readRecords reads all records. What isn't signed may cost no more than what a million functions take.
func (p suspect) readRecords(l *Remains) (err error) {
	const unsigned = 128 << 20
	size := l.Memory.Size - recovery.RecordsOff
	if !l.Signed {
		size = min(size, unsigned)
	}
	l.Record, err = recovery.ReadRecords(size, 0, func(buf []byte, at uint64) error {
		_, err := p.ReadAt(buf, l.Memory.Base+recovery.RecordsOff+at)
		return err
	})
	return err
}

// rings finds the ring memory.
func (l *Remains) rings(maps []process.Mapping) (found sharedSpan, ok bool) {
	for i := range maps {
		m := &maps[i]
		if m.Dev != l.About.RingDev || m.Inode != l.About.RingIno || m.Path != ring.MappingName {
			continue
		}
		switch {
		case !ok && m.Offset == 0:
			found, ok = sharedSpan{recovery.Span{Base: m.Start, Size: m.Size()}, m.Dev, m.Inode}, true
		case ok && m.Start == found.Base+found.Size:
			found.Size += m.Size()
		}
	}
	return found, ok
}

// OpenedRings are the rings of a dead recorder, as they are in the process.
type OpenedRings struct {
	Size uint64 // bytes
	p    *process.Process
	base uint64
}

// OpenRings finds the ring memory that the signed header names.
func (l *Remains) OpenRings(p *process.Process) (*OpenedRings, error) {
	maps, err := p.Maps()
	if err != nil {
		return nil, err
	}
	m, found := l.rings(maps)
	if !found {
		return nil, fmt.Errorf("callreel: process %d: the rings aren't mapped any more", p.Pid())
	}
	return &OpenedRings{Size: m.Size, p: p, base: m.Base}, nil
}

// Read reads a piece of them. What is there may be anything.
func (r *OpenedRings) Read(buf []byte, off uint64) error {
	if off > r.Size || uint64(len(buf)) > r.Size-off {
		return fmt.Errorf("callreel: process %d: %d bytes at %#x of rings that have %#x", r.p.Pid(), len(buf), off, r.Size)
	}
	_, err := r.p.ReadAt(buf, r.base+off)
	return err
}

// CloseGates lets stubs write no more.
func (l *Remains) CloseGates(p *process.Process) error {
	for _, a := range l.Record.Arenas {
		// The gate is in the last page.
		if err := stub.CloseGate(p, a.Base+a.Size-PageSize); err != nil {
			return err
		}
	}
	return nil
}

// IsBusy is an error when the recorder is at work on the process.
func (l *Remains) IsBusy(p *process.Process) error {
	if !l.Alive || l.Inherited {
		return nil
	}
	where := ""
	if l.About.RecorderNS != process.OwnPIDNamespace() {
		where = " of another PID namespace"
	}
	return fmt.Errorf("callreel: process %d: %w by process %d%s", p.Pid(), ErrRecorded, l.About.Recorder, where)
}

// ArenaSpecial is what /proc/PID/maps shows for arenas that are in no memfd, where the kernel lets memory be named.
const ArenaSpecial = "[anon:callreel]"

// isArena says whether an arena is mapped there: code of its memfd, or of no file, and behind it its data.
func isArena(maps []process.Mapping, a recovery.Arena) bool {
	if a.Size <= dataSize || a.Base+a.Size < a.Base || a.Base%PageSize != 0 || a.Size%PageSize != 0 {
		return false
	}
	code, gate := process.FindMapping(maps, a.Base), process.FindMapping(maps, a.Base+a.Size-PageSize)
	if code == nil || gate == nil || code.Start != a.Base || code.End < a.Base+a.Size-dataSize || gate.Inode != 0 || gate.Perm != process.PermRead|process.PermWrite {
		return false
	}
	if a.Inode == 0 {
		return code.Inode == 0 && code.Perm == process.PermRead|process.PermExec
	}
	return code.Inode == a.Inode && code.Dev == a.Dev && code.Path == codeMapping && code.Perm == CodePerm
}

// Remove undoes what was left and verifies the text. Before what is mapped goes, but when nothing is written to it any more, before is called,
// if it isn't nil.
func (l *Remains) Remove(ctx context.Context, p *process.Process, before func()) (*Removed, error) {
	noted := len(l.Record.Patches)
	shared, err := l.prepare(p, before)
	if err != nil {
		return nil, err
	}
	u, err := undo(ctx, p, l.Record, shared, nil)
	if err != nil {
		return nil, err
	}
	return l.verify(p, noted, u)
}

// RemoveAtOnce is Remove for a process that ends before it is known what is to be undone: it is stopped first, for as long as all takes.
// It is tried once.
func (l *Remains) RemoveAtOnce(ctx context.Context, p *process.Process) (*Removed, error) {
	noted := len(l.Record.Patches)
	traits := traitsOf(l.Record.Golang)
	options := traits.stopOptions()
	options.AtOnce = true
	var u Undone
	var err error
	u.Stopped, err = p.Stop(ctx, options, func(st *process.Stopped) error {
		shared, err := l.prepare(p, nil)
		if err != nil {
			return err
		}
		w, err := prepareUndo(p, l.Record)
		if err != nil {
			return err
		}
		w.shared, u.foreign = shared, w.foreign
		w.judgeBy(nil)
		u.Kept, err = w.in(st)
		u.Odd = w.odd
		return err
	})
	if err != nil {
		return nil, err
	}
	return l.verify(p, noted, u)
}

// prepare finds out what of a record there is to be undone, and closes the gates.
func (l *Remains) prepare(p *process.Process, before func()) (shared []sharedSpan, err error) {
	// In a static program sites may be on all instructions that would do. They are looked for again when the text is
	// restored.
	if err := p.PrepareSyscalls(); err != nil && !(errors.Is(err, process.ErrNoGadget) && len(l.Record.Patches) > 0) {
		return nil, err
	}
	maps, err := p.Maps()
	if err != nil {
		return nil, err
	}
	// A recorder that died in mapping its arenas may not have got all of them, and then others have mapped there.
	l.Record.Arenas = slices.DeleteFunc(l.Record.Arenas, func(a recovery.Arena) bool {
		return !isArena(maps, a) || !l.Signed && !isCertain(maps, a)
	})
	if err := l.CloseGates(p); err != nil {
		return nil, err
	}
	if before != nil {
		before()
	}
	l.believeSlots(maps)
	if err := l.believeFiles(p, maps); err != nil {
		return nil, err
	}
	shared = []sharedSpan{l.Memory}
	if m, found := l.rings(maps); found {
		shared = append(shared, m)
	}
	l.Record.Forked = l.Inherited
	return shared, nil
}

// verify looks at the text once more. noted is of how many patches the record said.
func (l *Remains) verify(p *process.Process, noted int, u Undone) (*Removed, error) {
	d := &Removed{Sites: len(l.Record.Patches) - u.foreign, Stopped: u.Stopped, Left: u.Kept, Doubted: noted - len(l.Record.Patches), Odd: u.Odd}
	if u.Gone {
		d.TextVerified = true
		return d, nil
	}
	var err error
	d.TextVerified, err = verifyPatches(p, l.Record.Patches)
	for try := 0; (!d.TextVerified || err != nil) && p.Alive() && try < UndoRetries; try++ {
		time.Sleep(time.Millisecond) // a library came or went while it was read
		d.TextVerified, err = verifyPatches(p, l.Record.Patches)
	}
	return d, err
}

// Removed is what has been removed of a dead recorder's.
type Removed struct {
	Sites        int // restored
	TextVerified bool
	Stopped      time.Duration
	Left         string // why memory stays mapped, empty if it doesn't
	Doubted      int    // sites that were noted, but not restored: the file of their image has other bytes there
	Odd          int    // semaphores of markers that were left as they were, since somebody else had set them to less than was added
}

// FindDead finds what a recorder that died has left in a process. ErrNotRecorded when there is nothing, ErrRecorded when the recorder is alive.
func FindDead(p *process.Process) (*Remains, error) {
	l, err := FindRemains(p)
	if err != nil {
		return nil, err
	}
	if l == nil {
		return nil, fmt.Errorf("callreel: process %d: %w", p.Pid(), ErrNotRecorded)
	}
	if err := l.IsBusy(p); err != nil {
		return nil, fmt.Errorf("%w: end that one with SIGINT", err)
	}
	return l, nil
}
