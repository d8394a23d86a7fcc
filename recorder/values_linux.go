package recorder

import (
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/reel"
)

// describeAll says in the reel what is recorded of all functions, whose IDs are the reel's.
func (r *recording) describeAll() error {
	to, takes := r.to.(ArgumentsTaker)
	if !takes {
		return nil
	}
	return r.captures.DescribeAll(to, r.told)
}

// AppendWith passes a thread's events on, with the values that they carry.
func (k *known) AppendWith(events []reel.Event, payloads []ring.Payload) error {
	events, payloads = k.switches.pick(&k.open, events, payloads)
	to, takes := k.to.(ArgumentsTaker)
	thread, does := k.DestinationThread.(ValuesTaker)
	if len(payloads) == 0 || !takes || !does {
		return k.append(events)
	}
	values := k.captures.Decode(events, payloads)
	if err := k.functions.Translate(events); err != nil {
		return err
	}
	if err := values.Describe(to, k.told, events); err != nil {
		return err
	}
	return thread.AppendWith(events, values.Sets)
}
