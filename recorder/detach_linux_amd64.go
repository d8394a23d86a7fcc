package recorder

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	mapkeys "maps"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/probe"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// undoing is what one detach did.
type undoing struct {
	stopped time.Duration
	foreign int    // patches that somebody else had changed, left alone
	left    string // why arenas stay mapped, empty if they don't
	gone    bool   // the process has ended or replaced its program: there was nothing to undo
}

// undo restores the text of a process and unmaps what was mapped in it. Before it the gates are closed. The order is
// what makes it safe against our death at any instant and against threads inside stubs: sites first, so that no thread
// enters a stub again; then threads are let out of the stubs; then the islands, which lead there; then memory that
// nobody can come back to.
func undo(ctx context.Context, p *process.Process, r *recovery, ringAt, ringSize uint64, loose func(addr uint64) bool) (undoing, error) {
	w, err := prepareUndo(p, r)
	for try := 0; errors.Is(err, process.ErrNoMapping) && try < leftRetries; try++ { // a library went just then
		w, err = prepareUndo(p, r)
	}
	if err != nil {
		if !p.Alive() || errors.Is(err, process.ErrExec) || errors.Is(err, process.ErrNoProcess) {
			return undoing{gone: true}, nil
		}
		return undoing{}, err
	}
	w.ring, w.loose = span{ringAt, ringSize}, loose
	u := undoing{foreign: w.foreign}
	// A handler returns soon, as a rule, and then nothing of ours is left.
	for try := 0; ; try++ {
		w.last = try >= leftRetries
		d, serr := p.Stop(ctx, process.StopOptions{Timeout: process.PatientStopTimeout}, func(st *process.Stopped) (err error) {
			u.left, err = w.in(st)
			return err
		})
		u.stopped += d
		err = serr
		// Another recorder may be looking at the process, only to be turned away.
		again := err == nil && u.left != "" && !w.forbidden || errors.Is(err, process.ErrTraced)
		if !again || try >= leftRetries {
			break
		}
		time.Sleep(time.Millisecond << min(try, 6))
	}
	if errors.Is(err, process.ErrNoProcess) || errors.Is(err, process.ErrExec) {
		u.gone = true
		return u, nil
	}
	return u, err
}

// undoWork is what undo has to do while the process stands, made ready before.
type undoWork struct {
	p         *process.Process
	r         *recovery
	ring      span
	maps      []process.Mapping // as they were before pages was read
	loose     func(addr uint64) bool
	sites     []probe.Patch
	islands   []probe.Patch
	hops      map[uint64]bool   // addresses of the islands
	hosted    map[uint64]uint64 // where hosted islands lead, by their addresses
	pages     []page            // with the sites restored
	foreign   int
	forbidden bool // the process's seccomp filters don't let memory be unmapped
	restorers []uint64
	late      []probe.Patch // sites that are restored last, see splitLate
	last      bool          // it is the last try
}

func prepareUndo(p *process.Process, r *recovery) (*undoWork, error) {
	w := &undoWork{p: p, r: r}
	w.islands, w.sites = split(r.patches)
	w.sites, w.late = splitLate(p, r, w.sites)
	var err error
	if w.maps, err = p.Maps(); err != nil {
		return nil, err
	}
	if w.pages, w.foreign, err = restorePages(p, w.maps, w.sites); err != nil {
		return nil, err
	}
	w.restorers = findRestorers(p, w.maps, r.inArena)
	return w, nil
}

// findIslands finds out which islands are there. Where a library was may be code of another by now.
func (w *undoWork) findIslands(maps []process.Mapping) error {
	w.hops, w.hosted = map[uint64]bool{}, map[uint64]uint64{}
	there, err := w.there(maps, w.islands)
	for _, i := range there {
		w.hops[i.Addr] = true
	}
	if err != nil {
		return err
	}
	var hosted []probe.Patch
	for i := range w.sites {
		if s := &w.sites[i]; s.Hosted && len(s.New()) == 5 {
			hosted = append(hosted, *s)
		}
	}
	hosted, err = w.there(maps, hosted)
	for i := range hosted {
		s := &hosted[i]
		w.hosted[s.Addr] = s.Addr + 5 + uint64(int64(int32(binary.LittleEndian.Uint32(s.New()[1:]))))
	}
	return err
}

// there leaves out patches of libraries that may have gone, where they are not in place.
func (w *undoWork) there(maps []process.Mapping, patches []probe.Patch) ([]probe.Patch, error) {
	at := map[uint64]*page{}
	var pages []page
	for i := range patches {
		addr := patches[i].Addr &^ (pageSize - 1)
		if m := mappingAt(maps, addr); at[addr] == nil && w.loose(addr) && m != nil && m.Perm&process.PermExec != 0 {
			at[addr] = &page{}
			pages = append(pages, page{addr: addr, old: make([]byte, pageSize)})
		}
	}
	slices.SortFunc(pages, func(a, b page) int { return cmp.Compare(a.addr, b.addr) })
	if err := readPages(w.p, pages); err != nil {
		return nil, err
	}
	for i := range pages {
		at[pages[i].addr] = &pages[i]
	}
	return slices.DeleteFunc(slices.Clone(patches), func(p probe.Patch) bool {
		if !w.loose(p.Addr) {
			return false
		}
		pg, off := at[p.Addr&^(pageSize-1)], p.Addr&(pageSize-1)
		return pg == nil || crosses(&p) || !bytes.Equal(pg.old[off:][:len(p.New())], p.New())
	}), nil
}

// in does the work in a process that stands, and returns why memory had to be left mapped, empty if it wasn't. It can be
// done again.
func (w *undoWork) in(st *process.Stopped) (left string, err error) {
	maps, err := w.p.Maps()
	if err != nil {
		return "", err
	}
	if m := ringMapping(maps); m == nil || m.Start != w.ring.base {
		return "", process.ErrExec
	}
	// A library may have been unloaded since the pages were read, and another one be in its place.
	pages := sameMemory(w.pages, w.maps, maps)
	other, err := changed(w.p, pages, maps, w.loose)
	if err != nil {
		return "", err
	}
	if len(other) > 0 || len(pages) < len(w.pages) {
		if pages, w.foreign, err = restorePages(w.p, maps, w.sites); err != nil {
			return "", err
		}
	}
	if err := w.findIslands(maps); err != nil {
		return "", err
	}
	if left, err := w.leaveHosted(st, maps); err != nil || left != "" {
		return left, err
	}
	if err := w.restoreUpper(maps); err != nil {
		return "", err
	}
	if err := writePages(w.p, pages, newSide); err != nil {
		return "", err
	}
	inside := func(pc uint64) bool { return w.r.inArena(pc) || w.hops[pc] }
	stuck, err := letOut(st, inside)
	if err != nil {
		return "", err
	}
	frames, err := interruptedPCs(st, maps, w.restorers, w.r.golang, inside)
	if err != nil {
		return "", err
	}
	if len(frames) > 0 && len(w.late) > 0 && !w.last {
		// An unwinder may be at work there.
		return fmt.Sprintf("thread %d is in a signal handler that will return into a stub", frames[0].tid), nil
	}
	found, _, err := restorePages(w.p, maps, w.late)
	if err == nil {
		err = writePages(w.p, found, newSide)
	}
	if err != nil {
		return "", err
	}
	onIsland := false
	switch {
	case stuck != 0:
		left = fmt.Sprintf("thread %d did not leave a stub", stuck)
		onIsland = true // for all we know
	case len(frames) > 0:
		left = fmt.Sprintf("thread %d is in a signal handler that will return into a stub", frames[0].tid)
		onIsland = slices.ContainsFunc(frames, func(f interrupted) bool { return w.hops[f.pc] })
	}
	if onIsland {
		return left, nil // islands are in padding, where nothing else comes
	}
	text, _, err := restorePages(w.p, maps, w.islands)
	if err != nil {
		return left, err
	}
	if err := writePages(w.p, text, newSide); err != nil || left != "" {
		return left, err
	}
	err = unmap(st, w.r, w.ring.base, w.ring.size)
	if errors.Is(err, process.ErrSeccomp) {
		w.forbidden = true
	}
	if w.forbidden || errors.Is(err, process.ErrNoSafeThread) {
		return err.Error(), nil
	} else if err != nil {
		return "", err
	}
	return "", nil
}

// restoreUpper restores the sites of higher levels, the highest first, before the others.
func (w *undoWork) restoreUpper(maps []process.Mapping) error {
	byLevel := map[uint8][]probe.Patch{}
	for _, s := range w.sites {
		if s.Level > 1 {
			byLevel[s.Level] = append(byLevel[s.Level], s)
		}
	}
	for _, level := range slices.Backward(slices.Sorted(mapkeys.Keys(byLevel))) {
		pages, _, err := restorePages(w.p, maps, byLevel[level])
		if err != nil {
			return err
		}
		if err := writePages(w.p, pages, newSide); err != nil {
			return err
		}
	}
	return nil
}

// leaveHosted moves threads that stand on a hosted island to where it leads, and PCs likewise that signal handlers will return
// to: once the text is restored there may be the middle of an instruction.
func (w *undoWork) leaveHosted(st *process.Stopped, maps []process.Mapping) (left string, err error) {
	if len(w.hosted) == 0 {
		return "", nil
	}
	for _, t := range st.Threads() {
		regs, err := t.Regs()
		if err != nil {
			return "", err
		}
		to, on := w.hosted[regs.Rip]
		if !on {
			continue
		}
		if _, in, err := t.InSyscall(); err != nil || in {
			return fmt.Sprintf("thread %d is on its way out of a system call", t.TID), err
		}
		regs.Rip = to
		if err := t.SetRegs(regs); err != nil {
			return "", err
		}
	}
	frames, err := interruptedPCs(st, maps, w.restorers, w.r.golang, func(pc uint64) bool { return w.hosted[pc] != 0 })
	if err != nil {
		return "", err
	}
	for _, f := range frames {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], w.hosted[f.pc])
		if _, err := w.p.WriteAt(b[:], f.at); err != nil {
			return "", err
		}
	}
	return "", nil
}

// leftRetries is how often threads are looked at again that can come back into a stub: for half a second in all.
const leftRetries = 12

// letOut lets threads run on until they are out of the arenas, and returns one that didn't get out.
func letOut(st *process.Stopped, inside func(pc uint64) bool) (stuck int, err error) {
	const tries = 1000 // of some microseconds
	for _, t := range st.Threads() {
		regs, err := t.Regs()
		if err != nil {
			return 0, err
		}
		if !inside(regs.Rip) {
			continue
		}
		out, err := t.Nudge(tries, func(r *process.Regs) bool { return !inside(r.Rip) })
		if err != nil && !errors.Is(err, process.ErrReleased) {
			return 0, err
		}
		if !out && err == nil {
			stuck = t.TID
		}
	}
	return stuck, nil
}

// unmap takes the arenas and the ring memory out of the process.
func unmap(st *process.Stopped, r *recovery, ringAt, ringSize uint64) error {
	var calls []process.Call
	late := false
	for _, a := range append(r.arenas, span{ringAt, ringSize}) {
		calls = append(calls, process.Call{Number: unix.SYS_MUNMAP, Args: [6]uint64{a.base, a.size}})
	}
	for len(calls) > 0 {
		n := min(len(calls), process.MaxBatch)
		res, err := st.SyscallBatch(calls[:n])
		if errors.Is(err, process.ErrLate) {
			late = true // unmapped all the same, as a rule
		} else if err != nil {
			return err
		}
		for _, x := range res {
			if x.Errno != 0 {
				return fmt.Errorf("callreel: unmapping: %w", x.Errno)
			}
		}
		calls = calls[n:]
	}
	if !late {
		return nil
	}
	maps, err := st.Process().Maps()
	if m := ringMapping(maps); m != nil && m.Start == ringAt {
		return fmt.Errorf("callreel: unmapping: %w", process.ErrLate)
	}
	return err
}

// detach ends a session's hold.
func (s *session) detach(ctx context.Context) (undoing, error) {
	if !s.p.Alive() {
		return undoing{gone: true}, nil
	}
	var word [8]byte
	if _, err := s.p.ReadAt(word[:], s.rt.Ring); errors.Is(err, process.ErrExec) {
		return undoing{gone: true}, nil // what it runs now may be another's to record
	}
	if err := s.gate(0); err != nil && !s.p.Alive() {
		return undoing{gone: true}, nil
	}
	return undo(ctx, s.p, s.recovery(), s.rt.Ring, s.size, s.loose)
}

func (s *session) recovery() *recovery {
	r := &recovery{arenas: spansOf(s.arenas), golang: s.golang != nil}
	if !s.patched {
		return r
	}
	for _, a := range s.arenas {
		switch {
		case a.code == nil: // it came to nothing
		case r.patches == nil:
			r.patches = slices.Clip(a.code.Patches)
		default:
			r.patches = append(r.patches, a.code.Patches...)
		}
	}
	return r
}

// Detached is what Detach found and did.
type Detached struct {
	Sites        int // restored
	TextVerified bool
	Stopped      time.Duration
	Left         string // why arenas stay mapped, empty if they don't
}

// left is what a recorder has left in a process.
type left struct {
	base, size uint64
	recorder   int
	alive      bool // the recorder is at work
	inherited  bool // by fork, from a process that was recorded
	recovery   *recovery
}

// findLeft looks for the ring memory of a recorder, nil when there is none.
func findLeft(p *process.Process) (*left, error) {
	maps, err := p.Maps()
	if err != nil {
		return nil, err
	}
	m := ringMapping(maps)
	if m == nil {
		return nil, nil
	}
	end := m.Start
	for i := range maps { // protections may have split it
		if maps[i].Path == m.Path && maps[i].Inode == m.Inode && maps[i].Start == end {
			end = maps[i].End
		}
	}
	var hdr [ring.NextOff]byte
	if _, err := p.ReadAt(hdr[:4096], m.Start); err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	l := &left{base: m.Start, size: end - m.Start, recorder: int(le.Uint32(hdr[ring.HdrRecorderPID:]))}
	if le.Uint64(hdr[ring.HdrMagic:]) != ring.Magic {
		// A recorder that died before it had written anything: no text is changed.
		l.recovery = &recovery{}
		return l, nil
	}
	if v := le.Uint32(hdr[ring.HdrVersion:]); v != ring.Version {
		return nil, fmt.Errorf("callreel: process %d: a recorder of another version (layout %d, not %d) has left its probes; detach with that version", p.Pid(), v, ring.Version)
	}
	l.alive = recorderLives(l.recorder, le.Uint64(hdr[ring.HdrRecorderStart:]))
	l.inherited = int(le.Uint32(hdr[ring.HdrTargetPID:])) != p.Pid()
	off, size := le.Uint64(hdr[ring.HdrRecoveryOff:]), le.Uint64(hdr[ring.HdrRecoverySize:])
	if off > l.size || size > l.size-off {
		return nil, fmt.Errorf("callreel: process %d: the recovery records at %#x lie outside the ring memory", p.Pid(), off)
	}
	// None at all: it died before it changed text.
	l.recovery, err = readRecovery(size, func(buf []byte, at uint64) error {
		_, err := p.ReadAt(buf, l.base+off+at)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("callreel: process %d: %w", p.Pid(), err)
	}
	l.recovery.golang = le.Uint32(hdr[ring.HdrGo:]) != 0
	return l, nil
}

// Detach removes what a recorder that died has left in a process. ErrNotRecorded when there is nothing, ErrRecorded
// when the recorder is alive.
func Detach(ctx context.Context, pid int) (*Detached, error) {
	p, err := process.Open(pid)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	l, err := findLeft(p)
	if err != nil {
		return nil, err
	}
	if l == nil {
		return nil, fmt.Errorf("callreel: process %d: %w", pid, ErrNotRecorded)
	}
	if l.alive && !l.inherited {
		return nil, fmt.Errorf("callreel: process %d: %w by process %d: end that one with SIGINT", pid, ErrRecorded, l.recorder)
	}
	return l.remove(ctx, p)
}

// isArena says whether an arena is mapped there: code without a file or from a recorder's, and behind it one page of data.
func isArena(maps []process.Mapping, a span) bool {
	if a.size <= pageSize || a.base+a.size < a.base {
		return false
	}
	code, gate := mappingAt(maps, a.base), mappingAt(maps, a.base+a.size-pageSize)
	return code != nil && gate != nil && (code.Inode == 0 || code.Path == codeMapping) && gate.Inode == 0 && code.Start == a.base &&
		code.End >= a.base+a.size-pageSize && code.Perm&^process.PermShared == process.PermRead|process.PermExec && gate.Perm == process.PermRead|process.PermWrite
}

// remove undoes what was left and verifies the text.
func (l *left) remove(ctx context.Context, p *process.Process) (*Detached, error) {
	// In a static program sites may stand on all instructions that would do. They are looked for again when the text is
	// restored.
	if err := p.PrepareSyscalls(); err != nil && !(errors.Is(err, process.ErrNoGadget) && len(l.recovery.patches) > 0) {
		return nil, err
	}
	maps, err := p.Maps()
	if err != nil {
		return nil, err
	}
	// A recorder that died in mapping its arenas may not have got all of them, and then others have mapped there.
	l.recovery.arenas = slices.DeleteFunc(l.recovery.arenas, func(a span) bool { return !isArena(maps, a) })
	var zero [8]byte
	for _, a := range l.recovery.arenas {
		// The gate is in the last page.
		if _, err := p.WriteAt(zero[:], a.base+a.size-pageSize); err != nil {
			return nil, err
		}
	}
	u, err := undo(ctx, p, l.recovery, l.base, l.size, func(uint64) bool { return true })
	if err != nil {
		return nil, err
	}
	d := &Detached{Sites: len(l.recovery.patches) - u.foreign, Stopped: u.stopped, Left: u.left}
	if u.gone {
		d.TextVerified = true
		return d, nil
	}
	d.TextVerified, err = verifyPatches(p, l.recovery.patches)
	for try := 0; (!d.TextVerified || err != nil) && p.Alive() && try < leftRetries; try++ {
		time.Sleep(time.Millisecond) // a library came or went while it was read
		d.TextVerified, err = verifyPatches(p, l.recovery.patches)
	}
	return d, err
}

// verifyPatches compares the text of every image that was patched with its file.
func verifyPatches(p *process.Process, patches []probe.Patch) (bool, error) {
	maps, err := p.Maps()
	if err != nil {
		return false, err
	}
	type file struct{ dev, inode uint64 }
	seen := map[file]bool{}
	for i := range patches {
		m := mappingAt(maps, patches[i].Addr)
		if m == nil || m.Inode == 0 || m.Perm&process.PermExec == 0 || seen[file{m.Dev, m.Inode}] {
			continue // its library has gone
		}
		seen[file{m.Dev, m.Inode}] = true
		im, err := openImage(p, *m, maps)
		if err != nil {
			return false, err
		}
		if im == nil {
			continue
		}
		ok, err := im.verifyText(p)
		im.close()
		if err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}
