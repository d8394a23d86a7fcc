package amd64

import (
	"fmt"
	"testing"

	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/reel"
)

// carried looks at what an exit has carried.
func (s *tally) carried(e *reel.Event, payload []byte) {
	k, ok := stub.DecodeKept(payload)
	if s.kept == nil {
		s.kept = map[uint32]int{}
	}
	want, keeps := s.keeps[e.ID()]
	switch {
	case !ok || !k.Of(e.Time, e.SP, e.Word):
		s.strange++ // as what is behind a signal handler's events
	case !e.IsExit() || !keeps || k.Second != want.Second:
		s.wrong = fmt.Sprintf("an event %+v carries %x", *e, payload)
	default:
		s.kept[e.ID()]++
	}
}

// keptForms are the forms that event code takes whose arguments are kept: of all calls, of two arguments, of calls that there are none of.
var keptForms = map[uint32]stub.Keep{1: {Slot: 0}, 2: {Slot: 1, Second: true}, 3: {Slot: ring.KeptSlots - 1, Least: 1<<32 - 1}, 4: {Slot: 5, Least: 1}}

func TestKeepingArgumentsKeepsEveryRegister(t *testing.T) {
	for name, s := range map[string]stubSetup{
		"plain":         {},
		"stack moved":   {spDelta: true},
		"lossless":      {lossless: true},
		"small chunks":  {divide: true, chunks: 64},
		"take back":     {min: true},
		"some threads":  {threads: true},
		"by the kernel": {noTLS: true},
		"by the stack":  {noTLS: true, stack: true},
		"described":     {noTLS: true, described: true},
	} {
		t.Run(name, func(t *testing.T) {
			s.keeps = keptForms
			if s.chunks == 0 {
				s.chunks = ring.MinChunks
			}
			d := startDriver(t, s)
			d.doDraining("state %d", 300)
			d.do("gate 0")
			d.do("state %d", 20)
			d.do("gate 1")
			if !s.lossless {
				d.do("state %d", 800) // the pool runs empty: drops
			}
			d.round()
			for _, k := range d.threads {
				if k.wrong != "" {
					t.Error(k.wrong)
				}
				if k.strange != 0 {
					t.Errorf("%d payloads aren't of the exits before them", k.strange)
				}
				if k.kept[1] == 0 || k.kept[2] == 0 || k.kept[4] == 0 || k.kept[3] != 0 || k.kept[5] != 0 {
					t.Errorf("exits carried arguments: %v", k.kept)
				}
			}
			if n := d.drainer.Totals().Events; n < 4000 {
				t.Errorf("only %d events", n)
			}
		})
	}
}
