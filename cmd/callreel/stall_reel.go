package main

import (
	"context"
	"errors"
	"time"

	"github.com/callreel/callreel/recorder"
	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/sampler"
)

const (
	// beforeStall is how much of what led to a stall is wanted besides.
	beforeStall = time.Second
	// dumpPatience is how long a recorder may take for a dump: meanwhile no stall is seen.
	dumpPatience = 10 * time.Second
)

// lastMoments asks the armed recorder of the process, if there is one, for a reel of the stall. It returns the file, or why there
// is none though there is a recorder.
func (f *stallFlags) lastMoments(ctx context.Context, s *sampler.Stall) (file, why string) {
	request := recorder.DumpRequest{
		Kind: reel.TriggerStall, Condition: "callreel stall --over " + f.over.String(), TID: s.TID, Keep: s.Duration + beforeStall, From: s.Start,
		Detail: string(s.State),
	}
	if s.Ongoing {
		request.Detail += ", and still"
	} else {
		request.To = s.Start.Add(s.Duration)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dumpPatience) // the last stall is reported when all has been ended
	defer cancel()
	d, err := recorder.AskForDump(ctx, int(f.pid), request)
	switch {
	case errors.Is(err, recorder.ErrNoRecorder), errors.Is(err, recorder.ErrUnsupported):
		return "", ""
	case err != nil:
		return "", err.Error()
	}
	return d.File, ""
}
