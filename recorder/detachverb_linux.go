package recorder

import (
	"context"
	"errors"
	"fmt"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/target"
)

// Detach removes what a recorder that died has left in a process, and in those that were forked from it. ErrNotRecorded when there is nothing, ErrRecorded
// when the recorder is alive.
func Detach(ctx context.Context, pid int) (*Detached, error) {
	p, err := process.OpenForCode(pid)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	l, err := target.FindDead(p)
	if err != nil {
		return nil, err
	}
	st, err := p.Status()
	if err != nil {
		return nil, err
	}
	var file, why string
	forget := func() {}
	u, err := l.Remove(ctx, p, func() { file, why, forget = restOf(p, l) })
	if err != nil {
		return nil, err
	}
	if u.Left == "" {
		forget()
	}
	d := &Detached{Sites: u.Sites, TextVerified: u.TextVerified, Stopped: u.Stopped, Left: u.Left, Doubted: u.Doubted, Odd: u.Odd,
		Dump: file, NoDump: why}
	if l.Inherited { // the process that was recorded is another one
		return d, nil
	}
	h, err := l.RemoveFromHeirs(ctx, pid, st.UIDs, 0)
	if err = errors.Join(err, h.Failed); err != nil {
		return nil, fmt.Errorf("process %d is restored, but not all that was forked from it: %w", pid, err)
	}
	d.Children, d.TextVerified = h.Processes, d.TextVerified && h.TextVerified
	if d.Left == "" {
		d.Left = h.Left
	}
	return d, nil
}

// Find says whether a recorder is at work on a process, or has died there; nil if none has anything there.
func Find(p *process.Process) (*Presence, error) {
	l, err := target.FindRemains(p)
	if err != nil || l == nil {
		return nil, err
	}
	return &Presence{Recorder: l.About.Recorder, Alive: l.Alive && !l.Inherited}, nil
}
