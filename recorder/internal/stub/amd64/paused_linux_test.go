package amd64

import (
	"testing"

	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// While recording is paused nothing is written, no thread is met, and all registers are kept; and behind it each call is recorded.
func TestNothingIsWrittenWhilePaused(t *testing.T) {
	for name, s := range templates {
		for _, held := range []bool{false, true} {
			if held {
				name += ", each process by itself"
			}
			t.Run(name, func(t *testing.T) {
				s.held, s.chunks = held, 256
				d := startDriver(t, s)
				pause := func(on bool) {
					if held {
						d.mem.setHeader(heldWord, uint64(btoi(on)))
					} else {
						d.mem.SetPaused(on)
					}
				}
				pause(true)
				d.do("state 200")
				d.do("calls 10000")
				d.round()
				if sum := d.drainer.Totals(); sum.Events != 0 || sum.Threads != 0 || d.number("room") != 0 {
					t.Errorf("%+v in a pause", sum)
				}
				pause(false)
				made := d.number("made")
				d.doDraining("calls 10000")
				d.round()
				if err := d.drainer.Finish(); err != nil {
					t.Fatal(err)
				}
				if sum := d.drainer.Totals(); sum.Entries != uint64(d.number("made")-made) || sum.Dropped != 0 {
					t.Errorf("%+v behind it", sum)
				}
			})
		}
	}
}

// Markers by which the program pauses its recording keep every register, obey at once, and are written whether it is paused or not; but not
// where the gate is closed.
func TestMarkersThatPauseKeepEveryRegister(t *testing.T) {
	for name, s := range map[string]stubSetup{
		"one process":     {},
		"each by itself":  {held: true},
		"no thread's own": {noTLS: true},
		"some threads":    {threads: true},
		"lossless":        {lossless: true},
	} {
		t.Run(name, func(t *testing.T) {
			s.says, s.ids, s.chunks = true, 8, ring.MinChunks
			d := startDriver(t, s)
			word := func() uint64 {
				if s.held {
					return d.mem.header(heldWord)
				}
				return d.mem.header(ring.PausedOff)
			}
			d.doDraining("state %d", 2000)
			d.mem.SetPaused(true)
			d.doDraining("state %d", 2000)
			d.round()
			if n := d.drainer.Totals().Marks; n < 30000 {
				t.Error("no markers were written")
			}
			d.mem.SetPaused(false)
			d.mem.SetPausedAtFirst(true)
			d.do("gate 0")
			d.do("state 100")
			// The last of the functions goes on.
			if w := word(); w != 0 || d.mem.PausedAtFirst() || d.mem.PausedSelf() {
				t.Errorf("%#x behind one that goes on", w)
			}
		})
	}
}

// A forked child that isn't followed leaves its parent's recording alone.
func TestAForkedChildDoesNotPauseItsParent(t *testing.T) {
	d := startDriver(t, stubSetup{says: true, ids: 8})
	d.mem.SetPausedAtFirst(true)
	if status := d.number("fork 1000"); status != 0 {
		t.Errorf("the child ended with status %#x", status)
	}
	if !d.mem.PausedAtFirst() || d.mem.PausedSelf() {
		t.Errorf("%#x", d.mem.header(ring.PausedOff))
	}
}

// Both of a program's stores are single bytes, and the recorder's bit is changed by an atomic operation on the word: none undoes another.
func TestPausesOfSeveralDoNotUndoEachOther(t *testing.T) {
	if ring.PausedSelf == ring.PausedAtFirst || ring.PausedByRecorder > 0xFF || ring.PausedSelf == 0 || ring.PausedAtFirst == 0 || stub.SayPause == stub.SayNothing {
		t.Error("they share a byte")
	}
}
