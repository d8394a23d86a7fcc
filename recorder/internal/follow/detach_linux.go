package follow

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/recovery"
	"github.com/callreel/callreel/recorder/internal/target"
)

// leaving is what came of leaving forked children.
type leaving struct {
	f    *Family
	done map[int]uint64 // when those were started that could not be left
	// unsettled says that some were still found in the last round.
	unsettled bool
	told      int
	errs      []error
}

// Detach restores the text of all forked children, and says whether it is the files' in all that are left. Those that were forked before
// their parent's was restored are found by what they have mapped; more of them can come only from those. Where none is found any more
// there may still be some, see Rest.
func (f *Family) Detach(ctx context.Context) (verified bool, err error) {
	const rounds = 20
	f.parting.Wait()
	f.leaving = &leaving{f: f, done: map[int]uint64{}}
	for round := 0; ; round++ {
		found := f.leaving.all(ctx, false)
		if found == 0 {
			break
		}
		if round == rounds {
			f.leaving.unsettled = true
			break
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.members {
		if !m.gone {
			m.p.Close()
			m.p, m.gone = nil, true
		}
	}
	return !f.changed.Load(), errors.Join(f.leaving.errs...)
}

// Rest sees to the children that Detach hasn't found: each had made the next, and ended, before it was looked at. shared says whether
// somebody still has the rings. It ends when nobody has them, or after seconds. verified says that no text is left that isn't the file's,
// for all that was seen then. It comes once, after the rings have been read to the end.
func (f *Family) Rest(ctx context.Context, shared func() (shared, known bool)) (verified bool, err error) {
	const (
		most  = 3 * time.Second
		watch = time.Second // at the end of that
		pause = 2 * time.Millisecond
	)
	l := f.leaving
	before := len(l.errs)
	var seen sighted
	var g glimpse
	for began := time.Now(); len(l.done) == 0; { // those that could not be left have the rings
		is, known := shared()
		if !known && l.unsettled {
			f.remain(&seen)
		}
		if !is || !known {
			break
		}
		since := time.Since(began)
		if since > most {
			f.remain(&seen)
			break
		}
		if since > most-watch {
			if g.sites == nil {
				g = glimpse{f.target.Runtime.Ring, f.target.Record().Patches}
			}
			seen.look(&g, f.target.PID())
		}
		if l.all(ctx, true) == 0 {
			time.Sleep(pause)
		}
	}
	return !f.changed.Load(), errors.Join(l.errs[before:]...)
}

// remain says what children keep. Their gates are closed, so that they run on and record nothing.
func (f *Family) remain(seen *sighted) {
	const enough = 10 // sights of processes without probes, to say that there are none
	const how = "processes there fork and end faster than they can be left, or can't be seen from here; 'callreel detach -p PID' leaves one that stays"
	own := f.target.PID()
	switch {
	case seen.probed == 0 && seen.clean >= enough:
		f.notice("memory of callreel's stays mapped, unused, in something that was forked from process %d (process %d had it): "+how, own, seen.last)
		return
	case seen.probed > 0:
		f.notice("something that was forked from process %d (process %d was such) keeps its probes, which record nothing any more: "+how, own, seen.last)
	default:
		f.notice("something that was forked from process %d, and was not found, keeps its probes, or callreel's memory, which record nothing any more: "+how, own)
	}
	f.changed.Store(true)
}

// all leaves all children that are found, and says how many.
func (l *leaving) all(ctx context.Context, atOnce bool) int {
	const notices = 5
	found := l.f.holders(l.done)
	defer closeAll(found)
	for _, who := range found {
		left, err := l.f.detachOne(ctx, who, atOnce)
		if err != nil || left != "" {
			l.done[who.Pid()] = who.StartTime()
		}
		if err != nil && len(l.errs) < notices {
			l.errs = append(l.errs, err)
		}
		if l.told++; left != "" && l.told <= notices {
			l.f.notice("memory of callreel's stays mapped in process %d, unused: %s", who.Pid(), left)
		}
	}
	return len(found)
}

// detachOne restores a child's text by what this recorder knows of it: the rings are the child's to write. atOnce is for one that will
// have ended otherwise.
func (f *Family) detachOne(ctx context.Context, who *process.Handle, atOnce bool) (kept string, err error) {
	p, err := process.Open(who.Pid())
	if err != nil {
		if !who.Alive() {
			err = nil // it has ended
		}
		return "", err
	}
	defer p.Close()
	if !who.Is(p) {
		return "", nil
	}
	var d *target.Removed
	if atOnce {
		d, err = remainsOf(f.target).RemoveAtOnce(ctx, p)
	}
	if !atOnce || (err != nil || d.Left != "") && p.Alive() {
		d, err = remainsOf(f.target).Remove(ctx, p, nil)
	}
	if err != nil {
		if errors.Is(err, process.ErrNoProcess) || !p.Alive() {
			return "", nil
		}
		return "", err
	}
	if !d.TextVerified {
		f.changed.Store(true)
	}
	return d.Left, nil
}

// remainsOf is what a recording leaves in forked children.
func remainsOf(s *target.Target) *target.Remains {
	about := recovery.About{Recorder: os.Getpid(), RingDev: s.RingFile.Dev, RingIno: s.RingFile.Inode, Golang: s.Go != nil}
	return &target.Remains{Memory: s.Shared()[0], About: about, Inherited: true, Signed: true, Record: s.Record()}
}
