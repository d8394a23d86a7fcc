package arm64

import (
	"fmt"
	"testing"
	"time"

	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/reel"
)

// emulated is what the emulator's counter is now, which goes by the clock.
func emulated() uint64 { return uint64(time.Now().UnixNano()) / 16 }

// keep copies what the rings hold up to now, frozen, and returns each thread's runs.
func (d *driver) keep(k *ring.Snapshotter) map[int][]ring.Run {
	d.t.Helper()
	k.Freeze()
	all, err := k.Take(emulated())
	if err != nil {
		d.t.Fatal(err)
	}
	threads := map[int][]ring.Run{}
	for _, h := range all {
		threads[h.TID] = append(threads[h.TID], h)
	}
	k.Thaw()
	return threads
}

// contiguous returns a thread's last runs that have no gap between them, as one.
func contiguous(runs []ring.Run) (events []reel.Event, first uint32) {
	from := len(runs) - 1
	for from > 0 && runs[from-1].Seq+1 == runs[from].Seq {
		from--
	}
	for _, h := range runs[from:] {
		events = append(events, h.Events...)
	}
	return events, runs[from].Seq
}

// checkKept holds a thread's events, that end now, against what is true of the driver's calls: entry and exit of each call, from the same frame.
func checkKept(t *testing.T, who string, events []reel.Event, dropped uint64) {
	t.Helper()
	s := &tally{maxID: 8}
	if err := s.Append(events); err != nil {
		t.Fatal(err)
	}
	if s.unknown != 0 || s.untimed != 0 || s.backward != 0 {
		t.Errorf("%s: %d events of unknown functions, %d without a time, %d go back in time", who, s.unknown, s.untimed, s.backward)
	}
	const deepest = 2 * 8 // calls that were open when the oldest event was written, some of a handler
	if s.abandoned != 0 || s.unmatched > deepest+dropped {
		t.Errorf("%s: of %d events %d entries have no exit, %d exits no entry", who, len(events), s.abandoned, s.unmatched)
	}
}

func TestOverwritingKeepsEveryRegister(t *testing.T) {
	for name, s := range map[string]stubSetup{"inline": {}, "shared": {shared: true}, "old": {machine: oldMachine}, "SVE": {machine: smeMachine}} {
		t.Run(name, func(t *testing.T) {
			s.chunks, s.over = 2*ring.MinChunks, true
			d := startDriver(t, s)
			d.do("state %d", 3000)
			k := ring.NewSnapshotter(d.mem)
			k.Freeze()
			d.do("state %d", 3000) // drops
			k.Thaw()
			d.do("state %d", 1000)
		})
	}
}

// One thread's last events are all there, whatever the state of its chunk, and in the right number.
func TestTheLastEventsAreHeld(t *testing.T) {
	for _, m := range []machine{lseMachine, oldMachine} {
		d := startDriver(t, stubSetup{chunks: 16, over: true, machine: m})
		k := ring.NewSnapshotter(d.mem)
		for round := range 30 {
			d.do("calls %d", 1+round*977)
			events, first := contiguous(d.keep(k)[d.cmd.Process.Pid])
			made := int(d.made())
			if want := 2*made - int(first)*ring.ChunkEvents; len(events) != want {
				t.Fatalf("round %d: %d events from chunk %d on, want %d", round, len(events), first, want)
			}
			const held = 12*ring.ChunkEvents - ring.ChunkEvents // all but the reserve, less what is left of the last
			if len(events) < min(2*made, held) {
				t.Errorf("round %d: only %d events are held of %d", round, len(events), 2*made)
			}
			checkKept(t, fmt.Sprint("round ", round), events, 0)
		}
	}
}

// Copies while four threads call as fast as they can, with signals: each thread's events are whole, and end when the copy was made.
func TestCopiesOfBusyRingsAreWhole(t *testing.T) {
	for _, m := range []machine{lseMachine, oldMachine} {
		d := startDriver(t, stubSetup{chunks: 64, over: true, machine: m})
		k := ring.NewSnapshotter(d.mem)
		defer k.Close()
		d.do("alarm 500")
		d.send("threads 4 200000")
		ended := make(chan string, 1)
		go func() {
			line, _ := d.out.ReadString('\n')
			ended <- line
		}()
		copies := 0
		for done := false; !done; {
			select {
			case <-ended:
				done = true
			default:
			}
			for tid, runs := range d.keep(k) {
				events, _ := contiguous(runs)
				ring.InOrder(events)
				checkKept(t, fmt.Sprintf("copy %d, thread %d", copies, tid), events, k.Dropped(tid))
			}
			copies++
		}
		t.Logf("%d copies", copies)
		d.do("alarm 0")
	}
}

func TestThreadsWithoutAChunkDropAndCount(t *testing.T) {
	d := startDriver(t, stubSetup{chunks: ring.MinChunks, over: true}) // 6, and 2 in reserve
	k := ring.NewSnapshotter(d.mem)
	d.do("threads 40 20000")
	dropped, kept := uint64(0), 0
	k.Meet(func(tid, _ int, name string) {
		dropped += k.Dropped(tid)
		kept++
	})
	if kept < 6 {
		t.Errorf("%d dropped by %d threads", dropped, kept)
	}
}
