package recorder

import (
	"context"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/target"
)

// Detach removes what a recorder that died has left in a process. ErrNotRecorded when there is nothing, ErrRecorded
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
	var file, why string
	forget := func() {}
	u, err := l.Remove(ctx, p, func() { file, why, forget = restOf(p, l) })
	if err != nil {
		return nil, err
	}
	if u.Left == "" {
		forget()
	}
	return &Detached{Sites: u.Sites, TextVerified: u.TextVerified, Stopped: u.Stopped, Left: u.Left, Doubted: u.Doubted, Odd: u.Odd,
		Dump: file, NoDump: why}, nil
}

// Find says whether a recorder is at work on a process, or has died there; nil if none has anything there.
func Find(p *process.Process) (*Presence, error) {
	l, err := target.FindRemains(p)
	if err != nil || l == nil {
		return nil, err
	}
	return &Presence{Recorder: l.About.Recorder, Alive: l.Alive && !l.Inherited}, nil
}
