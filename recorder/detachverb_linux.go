package recorder

import (
	"context"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/target"
)

// Detach removes what a recorder that died has left in a process. ErrNotRecorded when there is nothing, ErrRecorded
// when the recorder is alive.
func Detach(ctx context.Context, pid int) (*Detached, error) {
	d, err := target.Detach(ctx, pid)
	return (*Detached)(d), err
}

// Find says whether a recorder is at work on a process, or has died there; nil if none has anything there.
func Find(p *process.Process) (*Presence, error) {
	l, err := target.FindRemains(p)
	if err != nil || l == nil {
		return nil, err
	}
	return &Presence{Recorder: l.About.Recorder, Alive: l.Alive && !l.Inherited}, nil
}
