package recorder

import (
	"context"
	"errors"
	"time"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/collect"
)

// alone is the family of a process whose children aren't followed. They have its text, and its stubs, which do nothing there.
type alone struct {
	*collect.Alone
	r     *recording
	users [4]int // of the process, when recording began
}

func newAlone(r *recording) alone {
	a := alone{Alone: collect.NewAlone(r.s), r: r}
	if st, err := r.s.Process.Status(); err == nil {
		a.users = st.UIDs
	}
	return a
}

func (alone) AwaitExecs(context.Context)           {}
func (alone) Detach(context.Context) (bool, error) { return true, nil }

// Rest restores the text of children that were forked meanwhile.
func (a alone) Rest(ctx context.Context, shared func() (shared, known bool)) (verified bool, err error) {
	const (
		most  = time.Second
		pause = 2 * time.Millisecond
	)
	verified = true
	for began := time.Now(); ; time.Sleep(pause) {
		is, known := shared()
		if known && !is && a.r.s.HeirsHaveRings() {
			return verified, nil
		}
		h, err := a.r.s.RemoveFromHeirs(ctx, a.users, a.r.since)
		verified = verified && h.TextVerified
		const keeps = "a process that process %d has forked meanwhile keeps "
		switch err := errors.Join(err, h.Failed); {
		case err != nil:
			a.r.notice(keeps+"its probes, which record nothing: %v", a.r.pid(), err)
		case h.Left != "":
			a.r.notice(keeps+"memory of callreel's, unused: %s", a.r.pid(), h.Left)
		case !is:
		case time.Since(began) > most:
			a.r.notice(keeps+"its probes, which record nothing, and was not found: 'callreel detach -p PID' restores it", a.r.pid())
		default:
			continue
		}
		return verified, nil
	}
}

// EndExecs tells that the process runs another program now, which has ended the recording.
func (a alone) EndExecs() {
	s := a.r.s
	if s.Runs() || !s.Process.Alive() {
		return
	}
	exe, err := process.Program(s.PID())
	if err != nil {
		exe = "another program"
	}
	a.r.notice("process %d runs %s now, which is not recorded: --follow records it, too", s.PID(), exe)
}
