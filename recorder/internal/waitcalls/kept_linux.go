package waitcalls

import (
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/reel"
)

// Take takes what exits carry of kept arguments out of payloads, and leaves those of others. The events have their target's IDs. What the
// target has written that doesn't fit is left out.
func (s *Set) Take(events []reel.Event, payloads []ring.Payload) (kept []Kept, rest []ring.Payload) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rest = payloads[:0]
	for _, p := range payloads {
		e := &events[p.Event]
		call, ok := s.calls[e.ID()]
		if !ok || !e.IsExit() {
			rest = append(rest, p)
			continue
		}
		if k, ok := stub.DecodeKept(p.Data); ok && k.Of(e.Time, e.SP, e.Word) {
			kept = append(kept, Kept{call, k.Start, e.Time, k.Args})
		}
	}
	return kept, rest
}
